"""What prose, tables and text in backticks call a command is one: the program knows it, and each of its options."""

import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from shop_directory.command_line import command_line
from shop_directory.settings.reading import installed_sides
from tests.people.docs.pages import PAGES, Page
from tests.support.real.sources import REPOSITORY

PROGRAM: Final = typer.main.get_command(command_line())
GROUPS: Final = frozenset(name for name, found in PROGRAM.commands.items() if hasattr(found, "commands"))  # type: ignore[attr-defined]  # the program is a group
_MODULE: Final = re.compile(r"\bpython -m ([\w.]+)")
_PATH: Final = re.compile(r"^(?:service|indexer|index_mappings|tests|bench|docs|\.ci)/[\w./-]+(?:::\w+)?$")
_SETTING: Final = re.compile(r"\bSHOP_DIRECTORY_[A-Z_]*[A-Z]\b(?!\.\.)")
SETTINGS: Final = {
    f"SHOP_DIRECTORY_{name.upper()}{file}"
    for side in installed_sides().values()
    for name in side.model_fields
    for file in ("", "_FILE")
}
# Where tests find the development data.
OF_OTHERS: Final = {"SHOP_DIRECTORY_DEV_DATA"}
_VARIABLE: Final = re.compile(r"^[A-Z_]+=\S*$")
_TARGET: Final = re.compile(r"^([a-z-]+):.*", re.MULTILINE)
TARGETS: Final = frozenset(_TARGET.findall((REPOSITORY / "Makefile").read_text(encoding="utf-8")))


def faults(words: list[str]) -> list[str]:
    """What of a command line the program does not know; the values of options and arguments may be anything."""
    found: Any = PROGRAM
    given = list(words)
    while given and hasattr(found, "commands"):
        word = given.pop(0)
        if word.startswith("-"):
            if word not in _options(found):
                return [word]
        elif word in {"…", "..."}:
            return []
        elif word not in found.commands:
            return [word]
        else:
            found = found.commands[word]
    return [word for word in given if word.startswith("-") and word.partition("=")[0] not in _options(found)]


def _options(found: Any) -> set[str]:  # noqa: ANN401 - a command of the library that typer brings along
    return {"--help", *(option for one in found.params for option in (*one.opts, *one.secondary_opts))}


def commands(page: Page) -> list[list[str]]:
    """The command lines of `shop-directory` on a page; its groups may be named without the program."""
    lines = []
    for phrase in page.phrases:
        words = shlex.split(phrase, comments=True) if phrase.count("'") % 2 == 0 else phrase.split()
        while words and _VARIABLE.match(words[0]):
            del words[0]
        if words and words[0].endswith("shop-directory") and not words[0].startswith("{"):
            lines.append(words[1:])
        elif len(words) > 1 and words[0] in GROUPS and words[1] not in {"=", "/"}:
            lines.append(words)
    return lines


def unknown(page: Page) -> set[str]:
    """What a page names and nobody has: commands and options, targets of make, modules, files and folders, settings."""
    made = [word for phrase in page.phrases if phrase.startswith("make ") for word in phrase.split()[1:]]
    modules = [found[1] for phrase in page.phrases if (found := _MODULE.search(phrase))]
    paths = [phrase.partition("::")[0] for phrase in page.phrases if _PATH.match(phrase)]
    return {
        *(" ".join(words) for words in commands(page) if faults(words)),
        *({word for word in made if "=" not in word and word.isidentifier()} - TARGETS),
        *(name for name in modules if not _is_there(REPOSITORY / name.replace(".", "/"))),
        *(name for name in paths if not (REPOSITORY / name).exists()),
        *(set(_SETTING.findall(page.text)) - SETTINGS - OF_OTHERS),
    }


def _is_there(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_every_command_target_module_file_and_setting_that_is_named_exists(page: Page) -> None:
    assert unknown(page) == set()


def test_a_command_an_option_and_a_group_that_do_not_exist_are_found() -> None:
    assert faults(["index", "status", "--json"]) == []
    assert faults(["index", "mend"]) == ["mend"]
    assert faults(["index", "status", "--all"]) == ["--all"]
    assert faults(["shops", "list"]) == ["shops"]
