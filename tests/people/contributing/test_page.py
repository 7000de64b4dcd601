"""CONTRIBUTING.md and CHANGELOG.md say what is there: tests that exist, and a version that is the project's."""

import re
import tomllib
from typing import Final

import tests.people.contributing.test_backends
import tests.people.contributing.test_fields
import tests.people.contributing.test_indices
import tests.people.contributing.test_rules
import tests.people.contributing.test_tools
from tests.people.contributing.page import PAGE, additions, is_there, named_tests
from tests.people.docs.pages import BY_PATH
from tests.support.real.sources import REPOSITORY

PLANTED: Final = {
    tests.people.contributing.test_backends.TITLE,
    tests.people.contributing.test_fields.TITLE,
    tests.people.contributing.test_indices.TITLE,
    tests.people.contributing.test_rules.TITLE,
    tests.people.contributing.test_tools.TITLE,
}
CHANGES: Final = BY_PATH["CHANGELOG.md"].text
MOST_LINES: Final = 150
_RELEASE: Final = re.compile(r"^## \[?(Unreleased|\d+\.\d+\.\d+)\]?(?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
_KINDS: Final = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_every_test_that_is_named_is_there() -> None:
    named = named_tests()
    assert len(named) > len(PLANTED)
    assert [f"{file}::{name}" for file, name in named if not is_there(file, name)] == []


def test_a_test_that_is_not_there_is_found_out() -> None:
    assert is_there("tests/people/contributing/test_page.py", "test_a_test_that_is_not_there_is_found_out")
    assert not is_there("tests/people/contributing/test_page.py", "test_nothing")
    assert not is_there("tests/people/contributing/test_nothing.py", "test_nothing")


def test_every_addition_is_planted_and_names_tests_that_force_the_rest_of_it() -> None:
    found = additions()
    assert found.keys() == PLANTED
    assert [title for title, guards in found.items() if not guards] == []


def test_the_page_is_short() -> None:
    assert len(PAGE.text.splitlines()) < MOST_LINES


def test_the_newest_release_is_the_version_of_the_project_and_changes_after_it_have_a_place() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    releases = _RELEASE.findall(CHANGES)
    assert [name for name, _ in releases][:2] == ["Unreleased", project["version"]]
    assert [name for name, date in releases if bool(date) == (name == "Unreleased")] == []
    assert re.findall(r"^## .*$", CHANGES, re.MULTILINE) == [found[0] for found in _RELEASE.finditer(CHANGES)]
    assert set(re.findall(r"^### (.*)$", CHANGES, re.MULTILINE)) <= _KINDS
