"""docs/commands.md is what the program says, and the program says enough."""

import re
from typing import Any, Final

import pytest

from shop_directory.settings.commands import MEANINGS
from shop_directory.settings.reading import EnvironmentSettings, installed_sides, variable
from tests.people.commands.page import Description, all_descriptions, command_descriptions, commands_page
from tests.support.real.sources import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "commands.md"
COMMANDS: Final = command_descriptions()
_ENVIRONMENT: Final = re.compile(r"\[env: (\w+)\]")


def named(command: Description) -> str:
    return command.words.removeprefix("shop-directory ").replace(" ", "-")


def test_the_page_is_what_the_program_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert commands_page() == page, "write it again by `make commands`"
    titles = re.findall(r"^## (shop-directory.*)$", page, re.MULTILINE)
    assert titles == [command.words for command in all_descriptions()]
    assert {"serve", "mcp", "config", "version", "index build", "token new", "rechecks claim"} <= {
        title.removeprefix("shop-directory ") for title in titles
    }


@pytest.mark.parametrize("command", COMMANDS, ids=named)
def test_a_command_has_a_summary_of_one_sentence_examples_and_exit_codes_of_the_table(command: Description) -> None:
    assert re.fullmatch(r"[A-Z][^.]*\.", command.summary), command.summary
    assert [example for example in command.examples if command.words not in example] == []
    assert command.examples
    numbers = [number for number, _ in command.codes]
    assert numbers[:1] == [0]
    assert sorted(set(numbers)) == numbers
    assert set(numbers) <= set(map(int, MEANINGS))


@pytest.mark.parametrize("command", all_descriptions(), ids=named)
def test_every_option_says_in_a_sentence_what_it_is_for(command: Description) -> None:
    silent = [one.names for one in command.parameters if not re.match(r"[A-Za-z].*\.( \[env: \w+\])?$", one.help)]
    assert silent == []


@pytest.mark.parametrize("command", all_descriptions(), ids=named)
def test_a_variable_that_an_option_names_is_a_setting_with_the_default_that_help_shows(command: Description) -> None:
    settings: dict[str, tuple[type[EnvironmentSettings], str]] = {
        variable(name): (kind, name) for kind in installed_sides().values() for name in kind.model_fields
    }
    for one in command.parameters:
        for found in _ENVIRONMENT.findall(one.help):
            kind, name = settings[found]
            default = kind.model_fields[name].get_default(call_default_factory=True)
            if found == "SHOP_DIRECTORY_STATE_DIR":
                assert (default, one.default) == (None, "alongside the embedded index")
            else:
                assert one.default == shown(default), found


def shown(default: Any) -> str:  # noqa: ANN401 - any setting
    if default is None:
        return ""
    return str(default.get_secret_value() if hasattr(default, "get_secret_value") else default)
