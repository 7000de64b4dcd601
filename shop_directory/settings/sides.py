"""The settings of all installed sides, found by entry points, so that nothing imports both sides.

Unknown variables are reported by name, as a misspelt setting would otherwise be ignored silently.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Final

from shop_directory.settings.reading import (
    FILE,
    PREFIX,
    EnvironmentSettings,
    environment_variables,
    is_secret,
    variable,
)

GROUP: Final = "shop_directory.settings"

_MIN_SIMILARITY: Final = 0.8
# Read by tests and benchmarks only, so it is not a misspelt setting.
_DEVELOPMENT_VARIABLES: Final = frozenset((f"{PREFIX}DEV_DATA",))


def installed_sides() -> Mapping[str, type[EnvironmentSettings]]:
    """The settings by side.

    Raises:
        ImportError: a side is installed only in part.
    """
    return {entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def known_variables(kind: type[EnvironmentSettings]) -> Iterator[str]:
    """All variables of the settings."""
    for name, field in kind.model_fields.items():
        yield variable(name)
        if is_secret(field):
            yield variable(name) + FILE


def unknown_variables(own: type[EnvironmentSettings]) -> tuple[str, ...]:
    """A message for each variable that is set and unknown to all sides, with the one that may be meant.

    The other side is loaded only if some variables are unknown to `own`, the settings of the calling side.
    """
    unknown = environment_variables().keys() - set(known_variables(own)) - _DEVELOPMENT_VARIABLES
    if not unknown:
        return ()
    try:
        known = {name for kind in (own, *installed_sides().values()) for name in known_variables(kind)}
    except ImportError:
        return ()  # the missing part may define them
    return tuple(_message(name, known) for name in sorted(unknown - known))


def _message(name: str, known: set[str]) -> str:
    if name.removesuffix(FILE) in known:
        return f"{name} is ignored: only secret settings can be in a file."
    suffixes = [each.removeprefix(PREFIX) for each in sorted(known)]
    close = get_close_matches(name.removeprefix(PREFIX), suffixes, n=1, cutoff=_MIN_SIMILARITY)
    meant = f" Is {PREFIX}{close[0]} meant?" if close else ""
    return f"{name} is not a setting and is ignored.{meant}"
