"""Generates docs/settings.md from the settings: `shop-directory config --markdown > docs/settings.md`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from shop_directory.settings.reading import FILE, MAX_SECRET_BYTES, EnvironmentSettings, is_secret, variable

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


def settings_page(sides: Mapping[str, type[EnvironmentSettings]]) -> str:
    """The whole page, in Markdown, of the settings by side."""
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
    return names, field.description or "", "".join(_default(field)), field.title or ""


def _default(field: FieldInfo) -> Iterator[str]:
    value: Any = field.get_default(call_default_factory=True)
    if is_secret(field):
        yield "none" if value is None else f"`{value.get_secret_value()}`"
        return
    shown = to_jsonable_python(value)
    if isinstance(shown, list):
        shown = ",".join(map(str, shown))
    if shown is None or shown == "":
        yield "none"
        return
    yield f"`{shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)}`"
