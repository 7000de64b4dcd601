"""Every rule has a test that asserts, and the reader of marks that says so."""

import re
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

from tests.rules.proof import (
    Marks,
    Rule,
    disorder,
    marks_of_source,
    marks_of_tree,
    read_manifest,
    unknown_rules,
    unproved_rules,
)
from tests.stages import is_fast

FILE = "tests/test_it.py"


def _read(source: str, file: str = FILE) -> Marks:
    return marks_of_source(dedent(source), file)


def _rules(*ids: str) -> list[Rule]:
    return [Rule(rule_id, 1, f"Says {rule_id}.") for rule_id in ids]


@pytest.mark.parametrize(
    ("body", "asserts"),
    [
        ("assert found", True),
        ("with pytest.raises(ValueError): find()", True),
        ("assert_same_answer(found)", True),
        ("self.assert_same_answer(found)", True),
        ("for shop in shops:\n    if shop: assert shop.id", True),
        ("find()", False),
        ("assert True", False),
        ("assert (found, 'always true')", False),
        ("asserted(found)", False),
    ],
)
def test_only_a_test_that_can_fail_asserts(body: str, *, asserts: bool) -> None:
    assert [test.asserts for test in _read(f"def test_a():\n  {body}").tests] == [asserts]


def test_unproved_rules_are_reported_together_with_their_statements() -> None:
    marks = _read("""
        @pytest.mark.rule("M1")
        def test_proves():
            assert found

        @pytest.mark.rule("M2")
        def test_idles():
            find()
    """)
    assert unproved_rules(_rules("M1", "M2", "M3"), marks) == (
        "M2                 Says M2. [named without an assertion by tests/test_it.py:7 test_idles]\n"
        "M3                 Says M3."
    )
    assert unproved_rules(_rules("M1"), marks) == ""


TESTS: Final = Path(__file__).parent.parent
RULE_ID: Final = re.compile(r"^(I\d+|[A-Z]\d+)(\.[a-z_]+)?$")

# How many rules each section of the decisions has, so that none is lost here; the interface's own come first.
DECISIONS: Final = {"V": 4, "R": 5, "X": 4, "M": 11, "A": 14, "F": 22, "E": 6, "Q": 5, "G": 4, "C": 3, "O": 1}
SCOPES: Final = range(1, 7)


def test_every_rule_that_a_test_names_exists() -> None:
    unknown = unknown_rules(read_manifest(), marks_of_tree(TESTS))
    assert not unknown, unknown


def test_every_rule_has_a_test_that_asserts() -> None:
    unproved = unproved_rules(read_manifest(), marks_of_tree(TESTS))
    assert not unproved, unproved


# An index with replicas needs a cluster, and the quality of answers needs the development data.
LEFT_TO_OTHER_STAGES: Final = {"G1.replica", "M9.quality"}


def test_make_test_proves_every_rule_but_two() -> None:
    marks = marks_of_tree(TESTS)
    fast = [test for test in marks.tests if is_fast(TESTS.parent / test.file, test.stage_marks)]
    left_out = {rule.id for rule in read_manifest() if unproved_rules([rule], Marks(tuple(fast), ()))}
    assert left_out == LEFT_TO_OTHER_STAGES


def test_rule_ids_have_one_form() -> None:
    assert [rule.id for rule in read_manifest() if not RULE_ID.match(rule.id)] == []


def test_rule_ids_are_unique_and_in_order() -> None:
    assert list(disorder(read_manifest(), "I" + "".join(DECISIONS))) == []


def test_every_decision_is_in_the_manifest() -> None:
    whole = Counter(rule.id[0] for rule in read_manifest() if "." not in rule.id)
    assert {letter: number for letter, number in whole.items() if letter != "I"} == DECISIONS


def test_every_rule_has_a_scope_and_a_statement_of_its_own() -> None:
    rules = read_manifest()
    assert [rule.id for rule in rules if rule.scope not in SCOPES or not rule.statement.endswith(".")] == []
    assert [text for text, number in Counter(rule.statement for rule in rules).items() if number > 1] == []
