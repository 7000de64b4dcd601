"""The rules of `check` against the manifest: every sentence of the interface is checked, or listed with the reason."""

import ast
from pathlib import Path

from shop_directory.conformance.rules import RULES, UNSEEN
from tests.people.check import test_right_servers
from tests.people.check.broken import BREAKAGES
from tests.rules.proof import marks_of_source, read_manifest
from tests.support.real.sources import REPOSITORY

CHECK = REPOSITORY / "shop_directory" / "conformance"
MANIFEST = {rule.id for rule in read_manifest()}


def test_every_sentence_of_the_interface_is_checked_or_listed_as_unseen_and_none_is_both() -> None:
    checked = [rule.id for rule in RULES]
    sentences = {rule_id for rule_id in MANIFEST if rule_id.startswith("I")}
    assert {rule_id for rule_id in checked if rule_id.startswith("I")} | set(UNSEEN) == sentences
    assert set(checked) & set(UNSEEN) == set()
    assert len(set(checked)) == len(checked)


def test_every_rule_of_check_is_one_of_the_manifest() -> None:
    assert {rule.id for rule in RULES} - MANIFEST == set()


def test_every_rule_of_check_is_a_mark_of_the_test_that_runs_it_on_every_world() -> None:
    marks = marks_of_source(Path(test_right_servers.__file__).read_text(encoding="utf-8"), "test_right_servers.py")
    (test,) = [test for test in marks.tests if test.rules]
    assert (test.rules, test.asserts) == (frozenset(rule.id for rule in RULES), True)


def test_what_cannot_be_seen_from_outside_is_little_and_has_its_reason() -> None:
    assert set(UNSEEN) == {"I4", "I58"}
    assert all(reason.endswith(".") for reason in UNSEEN.values())


def test_no_rule_is_without_a_server_that_breaks_it() -> None:
    assert {rule.id for rule in RULES} - {breakage.rule for breakage in BREAKAGES} == set()


def test_check_imports_nothing_of_this_project_but_itself_and_what_all_commands_share() -> None:
    ours = {"service", "indexer", "index_mappings", "shop_directory"}
    found = set()
    for path in CHECK.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    found |= {name.name for name in names}
                case ast.ImportFrom(module=str(module)):
                    found.add(module)
    foreign = {
        name for name in found if name.split(".")[0] in ours and not name.startswith("shop_directory.conformance")
    }
    assert foreign == {"shop_directory.settings.commands"}
