"""The settings of all sides that are installed, found by entry points, so that nothing imports both sides.

A variable that none of them knows is told of by name: a misspelt setting would be passed over in silence.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Final

from shop_directory.settings.reading import FILE, PREFIX, EnvironmentSettings, is_secret, set_variables, variable

GROUP: Final = "shop_directory.settings"

_ALIKE: Final = 0.8
# Read by tests and benchmarks only: who develops has it set, and no setting is misspelt.
_OF_DEVELOPMENT: Final = frozenset((f"{PREFIX}DEV_DATA",))


def installed_sides() -> Mapping[str, type[EnvironmentSettings]]:
    """The settings by side.

    Raises:
        ImportError: a side is installed only in part.
    """
    found = sorted(entry_points(group=GROUP), key=lambda one: one.name)
    return {one.name: one.load() for one in found}


def known_variables(kind: type[EnvironmentSettings]) -> Iterator[str]:
    """All variables that the settings are read from."""
    for name, field in kind.model_fields.items():
        yield variable(name)
        if is_secret(field):
            yield variable(name) + FILE


def unknown_variables(own: type[EnvironmentSettings]) -> tuple[str, ...]:
    """A sentence for each variable that is set and that no side knows, with the one that may be meant.

    Args:
        own: the settings of the side that asks; the other is looked at only if these leave something over.
    """
    left = set_variables().keys() - set(known_variables(own)) - _OF_DEVELOPMENT
    if not left:
        return ()
    try:
        known = {found for kind in (own, *installed_sides().values()) for found in known_variables(kind)}
    except ImportError:
        return ()  # what the missing part would know can't be told
    return tuple(_told(name, known) for name in sorted(left - known))


def _told(name: str, known: set[str]) -> str:
    if name.removesuffix(FILE) in known:
        return f"{name} is passed over: only secret settings can be in a file."
    suffixes = [found.removeprefix(PREFIX) for found in sorted(known)]
    close = get_close_matches(name.removeprefix(PREFIX), suffixes, n=1, cutoff=_ALIKE)
    meant = f" Is {PREFIX}{close[0]} meant?" if close else ""
    return f"{name} is not a setting and is passed over.{meant}"
