"""The effective settings with their sources, for operators; secrets are hidden."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr
from pydantic_core import to_jsonable_python

from shop_directory.settings.reading import (
    EnvironmentSettings,
    environment_variables,
    is_secret,
    secret_files,
    variable,
)

HIDDEN: Final = "(hidden)"


@dataclass(frozen=True, slots=True)
class Effective:
    """The effective value of one setting.

    Attributes:
        variable: its environment variable.
        value: a JSON value; `HIDDEN` for a secret that is set, None for a secret that is not.
        source: `option`, `environment`, `file` or `default`.
    """

    variable: str
    value: Any
    source: str


def effective(settings: EnvironmentSettings, options: Collection[str] = ()) -> tuple[Effective, ...]:
    """All settings as loaded from the current environment, in the order of their definition.

    `options` are the names of settings from the command line.
    """
    environment, files = environment_variables(), secret_files(type(settings))

    def source(name: str) -> str:
        if name in options:
            return "option"
        if variable(name) in environment:
            return "environment"
        return "file" if name in files else "default"

    return tuple(
        Effective(variable(name), _shown(getattr(settings, name), secret=is_secret(field)), source(name))
        for name, field in type(settings).model_fields.items()
    )


def as_lines(settings: Iterable[Effective]) -> str:
    """One line for each setting."""
    lines = [(one.variable, _text(one.value), one.source) for one in settings]
    widths = [max(len(line[column]) for line in lines) for column in (0, 2)]
    return "\n".join(f"{name:<{widths[0]}}  {source:<{widths[1]}}  {value}".rstrip() for name, value, source in lines)


def as_wire(settings: Iterable[Effective]) -> dict[str, dict[str, Any]]:
    """By variable, as `--json` prints it."""
    return {one.variable: {"value": one.value, "source": one.source} for one in settings}


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
