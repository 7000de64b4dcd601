"""Bundling of scripts and styles: the modules of a script in one file, without comments and superfluous space.

A bundle has each module before those that import it, all in one scope. Top-level names must therefore be unique; a
duplicate is a syntax error, which every page test finds.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "[./a-z]*/([a-z]+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)
# Strings and regular expressions are copied unchanged. Between them, comments, space, and the last semicolon of a block
# and comma of a list are removed, and some words are replaced.
_PART: Final = re.compile(
    r"""(?P<dropped>//[^\n]*|/\*[^*]*\*/|;\s*(?=\})|,\s*(?=[\])}]))|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`"""
    r"""|(?<=[(,=:\[!&|?])[ ]?/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/)"""
    r"""|(?P<word>\b(?:const|true|false)\b)|(?P<space>\s+)"""
)
# No line break is needed after these characters, nor after the empty string, the beginning of the script. A statement
# that ends in a closing brace and is not a block has its semicolon.
_OPEN: Final = "{([,;}"
# No statement begins with these characters, nor with the empty string, the end of the script.
_GOING_ON: Final = "})]?:.|&="
_SHORTER: Final = {"const": "let", "true": "!0", "false": "!1"}
_WORD_OR_SIGN: Final = (re.compile(r"[\w$]"), re.compile(r"[+-]"))


def bundled(entry: str, modules: Mapping[str, str]) -> str:
    """One script of a module, such as `main.js`, and all modules that it imports, without cycles.

    Names of modules are unique, whatever folder an import names; KeyError: an import names no module.
    """
    parts: dict[str, str] = {}  # by name, in their order

    def add(name: str) -> None:
        for imported in _IMPORT.findall(modules[name]):
            if imported not in parts:
                add(imported)
        parts[name] = compact_script(_EXPORT.sub("", _IMPORT.sub("", modules[name])))

    add(entry)
    return "".join(parts.values())


@lru_cache(maxsize=64)
def compact_script(source: str) -> str:
    """A script without comments, indentation, the last semicolon of a block and the last comma of a list.

    Line breaks stay if they may end a statement. A block must not end in an empty statement, such as `while (next());`.
    """
    # Twice, as the space before and after a comment is joined by the first run.
    return re.sub(r"\n+", "\n", _PART.sub(_compact, _PART.sub(_compact, source))).strip() + "\n"


def _compact(part: re.Match[str]) -> str:
    if part["text"]:
        return part["text"]
    if part["dropped"]:
        return ""
    if part["word"]:
        return _SHORTER[part["word"]]
    before, after = part.string[part.start() - 1 : part.start()], part.string[part.end() : part.end() + 1]
    if "\n" in part["space"]:
        return "" if before in _OPEN or after in _GOING_ON else "\n"
    return " " if any(kind.match(before) and kind.match(after) for kind in _WORD_OR_SIGN) else ""


def compact_style(source: str) -> str:
    """A style sheet without indentation, superfluous space and the last semicolon of a rule."""
    compact = re.sub(r"\s*([{};,>])\s*|(:)\s+|\n+\s*", lambda part: part[1] or part[2] or "\n", source)
    return compact.replace(";}", "}").strip() + "\n"


def compact_lines(source: str) -> str:
    """Markup without indentation."""
    return "".join(f"{line.strip()}\n" for line in source.splitlines() if line.strip())
