"""CONTRIBUTING.md and CHANGELOG.md say what is there: tests that exist, and a version that is the project's."""

import re
import tomllib
from typing import Final

from tests.people.docs.pages import BY_PATH
from tests.rules.proof import marks_of_tree
from tests.support.real.sources import REPOSITORY

PAGE: Final = BY_PATH["CONTRIBUTING.md"]
CHANGES: Final = BY_PATH["CHANGELOG.md"].text
MOST_LINES: Final = 150
_RELEASE: Final = re.compile(r"^## \[?(Unreleased|\d+\.\d+\.\d+)\]?(?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
_KINDS: Final = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_every_test_that_is_named_is_there() -> None:
    tests = marks_of_tree(REPOSITORY / "tests").tests
    there = {(test.location.split(":")[0], test.location.split(" ")[-1]) for test in tests}
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.text))
    assert named
    assert named - there == set()


def test_the_page_is_short() -> None:
    assert len(PAGE.text.splitlines()) < MOST_LINES


def test_the_newest_release_is_the_version_of_the_project_and_changes_after_it_have_a_place() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    releases = _RELEASE.findall(CHANGES)
    assert [name for name, _ in releases][:2] == ["Unreleased", project["version"]]
    assert [name for name, date in releases if bool(date) == (name == "Unreleased")] == []
    assert re.findall(r"^## .*$", CHANGES, re.MULTILINE) == [found[0] for found in _RELEASE.finditer(CHANGES)]
    assert set(re.findall(r"^### (.*)$", CHANGES, re.MULTILINE)) <= _KINDS
