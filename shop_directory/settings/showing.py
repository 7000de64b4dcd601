"""Effective settings as operators see them: each with where it comes from, and no secret among them."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr
from pydantic_core import to_jsonable_python

from shop_directory.settings.reading import EnvironmentSettings, is_secret, secret_files, set_variables, variable

HIDDEN: Final = "(hidden)"


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting.

    Attributes:
        variable: its variable.
        value: as JSON has it; `HIDDEN` for a secret that is set, None for one that is not.
        source: `option`, `environment`, `file` or `default`.
    """

    variable: str
    value: Any
    source: str


def effective(settings: EnvironmentSettings, options: Collection[str] = ()) -> tuple[Effective, ...]:
    """All settings, in their own order.

    Args:
        settings: as they were loaded from the environment of now.
        options: the names of those that the command line gave.
    """
    there, files = set_variables(), secret_files(type(settings))

    def source(name: str) -> str:
        if name in options:
            return "option"
        if variable(name) in there:
            return "environment"
        return "file" if name in files else "default"

    return tuple(
        Effective(variable(name), _shown(getattr(settings, name), secret=is_secret(field)), source(name))
        for name, field in type(settings).model_fields.items()
    )


def as_lines(found: Iterable[Effective]) -> str:
    """One line a setting."""
    lines = [(one.variable, _text(one.value), one.source) for one in found]
    widths = [max(len(line[column]) for line in lines) for column in (0, 2)]
    return "\n".join(f"{name:<{widths[0]}}  {source:<{widths[1]}}  {value}".rstrip() for name, value, source in lines)


def as_wire(found: Iterable[Effective]) -> dict[str, dict[str, Any]]:
    """By variable, as `--json` prints it."""
    return {one.variable: {"value": one.value, "source": one.source} for one in found}


def _shown(value: object, *, secret: bool) -> Any:  # noqa: ANN401 - any JSON value
    if secret or isinstance(value, SecretStr):
        return None if value is None else HIDDEN
    return to_jsonable_python(value)


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if value is None:
        return ""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
