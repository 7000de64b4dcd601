"""A new rule: one line in the manifest, and tests that fail until another test proves it."""

from typing import Final

import pytest

from tests.people.contributing.page import guards
from tests.people.contributing.planting import Copy

TITLE: Final = "A new rule"
MANIFEST: Final = "tests/rules/manifest.toml"
LAST: Final = '  { id = "O1.degraded", scope = 2,'
RULE: Final = '  { id = "O2", scope = 1, statement = "The service has a colour." },\n'
COUNTS: Final = "tests/rules/test_rules_are_tested.py"
PROOF: Final = '''"""The colour of the service."""

import pytest


@pytest.mark.rule("O2")
def test_the_service_has_a_colour() -> None:
    colour = "green"
    assert colour == "green"
'''


@pytest.fixture
def planted(copy: Copy) -> Copy:
    """The manifest has one more rule."""
    lines = (copy.root / MANIFEST).read_text(encoding="utf-8").splitlines(keepends=True)
    (last,) = (line for line in lines if line.startswith(LAST))
    copy.put_behind(MANIFEST, last, RULE)
    return copy


def test_every_test_that_the_page_names_fails_until_the_rule_is_counted_and_proven(planted: Copy) -> None:
    tests = {guard.test for guard in guards(TITLE)}
    assert planted.failing(tests) == tests
    planted.replace(COUNTS, '"O": 1}', '"O": 2}')
    planted.write("tests/rules/test_colour.py", PROOF)
    assert planted.failing(tests) == set()
