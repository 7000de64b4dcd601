"""Scripts and styles as they are sent: the modules of a script in one file, without comments and superfluous space.

The sources are plain modules. A bundle puts each before those that import it, in one scope, so that a browser makes one
request; a top-level name that two modules share is an error that no test of the page survives.
"""

import re
from collections.abc import Mapping
from typing import Final

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "[./a-z]*/([a-z]+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)
# Texts and regular expressions are copied as they are; in between, comments and space go.
_PART: Final = re.compile(
    r"""(?P<comment>//[^\n]*|/\*[^*]*\*/)|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`"""
    r"""|(?<=[(,=:\[!&|?])[ ]?/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/)|(?P<space>\s+)"""
)
# After these no statement ends; an empty text is the beginning.
_OPEN: Final = "{([,;"
_WORD_OR_SIGN: Final = (re.compile(r"[\w$]"), re.compile(r"[+-]"))


def bundled(entry: str, modules: Mapping[str, str]) -> str:
    """One script of a module and all that it imports.

    Args:
        entry: the module's name, such as `main.js`.
        modules: sources by name; names are unique, whatever folder an import names.

    Raises:
        KeyError: an import names no module.
    """
    names = modules_of(entry, modules)
    return compact_script("".join(_EXPORT.sub("", _IMPORT.sub("", modules[name])) for name in names))


def modules_of(entry: str, modules: Mapping[str, str]) -> tuple[str, ...]:
    """The names of a module and of all that it imports, each behind what it imports itself."""
    found: dict[str, None] = {}
    entered: set[str] = set()

    def visit(name: str) -> None:
        if name in entered:
            return
        entered.add(name)
        for imported in _IMPORT.findall(modules[name]):
            visit(imported)
        found[name] = None

    visit(entry)
    return tuple(found)


def compact_script(source: str) -> str:
    """A script without comments and indentation. Line breaks stay where a statement may end with one."""
    # The space around a comment is one space only once the comment is gone.
    return re.sub(r"\n+", "\n", _PART.sub(_compact, _PART.sub(_compact, source))).strip() + "\n"


def _compact(part: re.Match[str]) -> str:
    if part["text"]:
        return part["text"]
    if part["comment"]:
        return ""
    before, after = part.string[part.start() - 1 : part.start()], part.string[part.end() : part.end() + 1]
    if "\n" in part["space"]:
        return "" if before in _OPEN else "\n"
    return " " if any(kind.match(before) and kind.match(after) for kind in _WORD_OR_SIGN) else ""


def compact_style(source: str) -> str:
    """A style sheet without indentation, and without space around what needs none."""
    return re.sub(r"\s*([{};,>])\s*|(:)\s+|\n+\s*", lambda part: part[1] or part[2] or "\n", source).strip() + "\n"


def compact_lines(source: str) -> str:
    """Markup without indentation."""
    return "".join(f"{line.strip()}\n" for line in source.splitlines() if line.strip())
