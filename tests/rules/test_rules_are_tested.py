"""Every rule has a test, and every rule that a test names is one.

The tests' source is read: the outcome does not depend on which tests were selected to run.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Final

from tests.rules.proof import disorder, marks_of_tree, read_manifest, unknown_rules, unproved_rules

TESTS: Final = Path(__file__).parent.parent
RULE_ID: Final = re.compile(r"^(I\d+|[A-Z]\d+)(\.[a-z_]+)?$")

# How many rules each section of the decisions has, so that none is lost here; the interface's own come first.
DECISIONS: Final = {"V": 3, "R": 5, "X": 4, "M": 11, "A": 14, "E": 6, "Q": 5, "G": 4, "C": 3, "O": 1}
SCOPES: Final = range(1, 7)


def test_every_rule_that_a_test_names_exists() -> None:
    unknown = unknown_rules(read_manifest(), marks_of_tree(TESTS))
    assert not unknown, unknown


def test_every_rule_has_a_test_that_asserts() -> None:
    unproved = unproved_rules(read_manifest(), marks_of_tree(TESTS))
    assert not unproved, unproved


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
