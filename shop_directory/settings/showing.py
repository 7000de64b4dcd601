"""Shows settings: those in effect with their sources, for operators, and all of them as the page docs/settings.md.

Secrets are hidden. `make settings` writes the page by `shop-directory config --markdown`.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from shop_directory.settings.reading import (
    FILE,
    MAX_SECRET_BYTES,
    EnvironmentSettings,
    environment_variables,
    is_secret,
    secret_files,
    variable,
)

HIDDEN: Final = "(hidden)"
_INTRODUCTION: Final = f"""\
# Settings

Made from the code by `make settings`: change the settings there, not this file.

All settings are environment variables, read once at the start; an empty one counts as not set. Options of a command
take precedence. The service (`serve`, `mcp`, `token`, `rechecks`) and the indexer (`index`) read the same environment
and ignore each other's settings. A value that is wrong, or contradicts another, stops the start with exit code 2 and a
message that names the variable and never the value. `serve`, `mcp`, `index` and `config` warn on standard error about
unknown `SHOP_DIRECTORY_` variables and suggest the one that may be meant.

A secret setting can be in a file instead, as containers provide secrets: a variable with `{FILE}` at the end of its
name holds the path of the file. The file is UTF-8 of at most {MAX_SECRET_BYTES:,} bytes; a final newline is ignored. It
is read once, at the start. A file that is empty or can't be read is refused, and so is setting both variables.

`shop-directory config` prints the effective settings and where each comes from, with secrets hidden; `--json` prints
them for programs, and `shop-directory serve --print-config` takes the options of `serve` into account."""
_HEADER: Final = ("variable", "must be", "default", "what it is for")


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
    """All settings in the order of their definition; `options` names those from the command line."""
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


def settings_page(sides: Mapping[str, type[EnvironmentSettings]]) -> str:
    """The whole page, in Markdown; the settings are given by side."""
    ordered = sorted(sides.items(), reverse=True)
    common = set.intersection(*(set(kind.model_fields) for _, kind in ordered))
    first = ordered[0][1]
    parts = [_INTRODUCTION, "## Both sides", _table(first, [name for name in first.model_fields if name in common])]
    for side, kind in ordered:
        parts += [f"## The {side}", _table(kind, [name for name in kind.model_fields if name not in common])]
    return "\n\n".join(parts) + "\n"


def _table(kind: type[EnvironmentSettings], names: Iterable[str]) -> str:
    lines = [_HEADER, tuple("---" for _ in _HEADER), *(_row(name, kind.model_fields[name]) for name in names)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _row(name: str, field: FieldInfo) -> tuple[str, str, str, str]:
    names = f"`{variable(name)}`" + (f", secret: or `{variable(name)}{FILE}`" if is_secret(field) else "")
    return names, field.description or "", _default(field), field.title or ""


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    text = _text(to_jsonable_python(value))
    return f"`{text}`" if text else "none"
