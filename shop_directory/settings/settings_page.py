"""docs/settings.md, made from the settings themselves: `shop-directory config --markdown > docs/settings.md`.

What operators read is what is checked at the start, so nothing is described twice and nothing can go stale.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from shop_directory.settings.reading import FILE, MOST_SECRET_BYTES, EnvironmentSettings, is_secret, variable

_INTRODUCTION: Final = f"""\
# Settings

Made from the code by `make settings`: change the settings there, not this file.

All settings are environment variables, read once at the start; an empty one is as good as none. Options of a command
come before them. The service (`serve`, `mcp`, `token`, `rechecks`) and the indexer (`index`) read the same environment
and take from it what is theirs. A value that is wrong, alone or together with another, stops the start with exit code 2
and a sentence that names the variable and never the value. `serve`, `mcp`, `index` and `config` tell on standard error
of a `SHOP_DIRECTORY_` variable that nobody knows, with the one that may be meant.

A secret setting can be put into a file instead, as containers do it: with `{FILE}` at the end of its name, the variable
holds the file's path. The file is UTF-8 of at most {MOST_SECRET_BYTES:,} bytes; one newline at its end does not count.
It is read once, at the start. One that is empty or can't be read is refused, and so are both variables at once.

`shop-directory config` prints what is in effect and where each value comes from, with secrets hidden; `--json` prints
it for programs, and `shop-directory serve --print-config` takes the options of `serve` into account."""
_HEADS: Final = ("variable", "must be", "default", "what it is for")


def settings_page(sides: Mapping[str, type[EnvironmentSettings]]) -> str:
    """The whole page, in Markdown.

    Args:
        sides: the settings by side.
    """
    ordered = sorted(sides.items(), reverse=True)
    of_all = set.intersection(*(set(kind.model_fields) for _, kind in ordered))
    first = ordered[0][1]
    parts = [_INTRODUCTION, "## Both sides", _table(first, [name for name in first.model_fields if name in of_all])]
    for side, kind in ordered:
        parts += [f"## The {side}", _table(kind, [name for name in kind.model_fields if name not in of_all])]
    return "\n\n".join(parts) + "\n"


def _table(kind: type[EnvironmentSettings], names: Iterable[str]) -> str:
    lines = [_HEADS, tuple("---" for _ in _HEADS), *(_row(name, kind.model_fields[name]) for name in names)]
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
