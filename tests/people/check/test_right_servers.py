"""The right service passes: on both engines, with everything given and with nothing, on much data and on little."""

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from indexer.sinks.opensearch.sink import OpenSearchSink
from service.search.opensearch.engine import OpenSearchBackend
from shop_directory.conformance.rule import Need, Outcome
from shop_directory.conformance.rules import RULES
from shop_directory.conformance.run import Run, RunOptions
from tests.people.check.stage import Stage, staged
from tests.support.catalogues import build_into, shop
from tests.support.emptying import delete_indices
from tests.support.sample import SAMPLE
from tests.support.worlds import embedded_world

ALL = {rule.id for rule in RULES}
# The build of these tests knows its commit, so that one sentence has no subject.
UNSEEN = {"I75"}
# What one shop without coupons, offers, shipping and trust in one category can't show.
BARE = """
    A7 I14 I16 I17 I21 I22 I26 I28 I30 I38 I39 I40 I41 I46 I47 I48 I49 I50 I56 I64 I65 I66 I70 I71 I75 I77
    M11.other_lists
"""


@pytest.fixture(scope="module")
def opensearch_stage(
    opensearch_url: str, sample_index: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """The right service over a real OpenSearch."""
    prefix = f"test-{secrets.token_hex(6)}"
    sink = OpenSearchSink([opensearch_url], prefix)
    try:
        build_into(sink, SAMPLE)
        backend = OpenSearchBackend([opensearch_url], prefix, timeout=10.0)
        with staged(sample_index, tmp_path_factory.mktemp("stage"), backend) as made:
            yield made
    finally:
        sink.close()
        delete_indices([opensearch_url], prefix)


def _outcomes(run: Run) -> dict[Outcome, set[str]]:
    return {outcome: {verdict.rule.id for verdict in run.of(outcome)} for outcome in Outcome}


def _expect_all_held(run: Run) -> None:
    assert [(verdict.rule.id, verdict.finding) for verdict in run.of(Outcome.FAILED)] == []
    assert _outcomes(run) == {
        Outcome.PASSED: ALL - UNSEEN,
        Outcome.FAILED: set(),
        Outcome.NOT_SEEN: UNSEEN,
        Outcome.NOT_ASKED: set(),
    }
    assert not run.unfinished


def test_the_service_keeps_every_rule_on_the_embedded_engine(stage: Stage) -> None:
    _expect_all_held(stage.check())


def test_the_service_keeps_every_rule_a_second_time_after_its_own_reports(stage: Stage) -> None:
    _expect_all_held(stage.check())


@pytest.mark.opensearch
def test_the_service_keeps_every_rule_over_opensearch(opensearch_stage: Stage) -> None:
    _expect_all_held(opensearch_stage.check())


def test_with_nothing_given_what_needs_more_is_not_asked_and_the_rest_holds(stage: Stage) -> None:
    run = stage.check(options=RunOptions(stage.options.base))
    outcomes = _outcomes(run)
    assert outcomes[Outcome.FAILED] == set()
    assert outcomes[Outcome.NOT_ASKED] == {rule.id for rule in RULES if rule.needs}
    # Those that look at shops under review, or behind the operations key, judge the half that they can.
    assert outcomes[Outcome.NOT_SEEN] == UNSEEN | {"I55", "I57", "I76", "I77"}
    assert {verdict.reason for verdict in run.of(Outcome.NOT_ASKED)} >= {"needs --token", "needs --under-review"}


def test_without_the_word_to_write_no_report_is_sent(sample_index: Path, tmp_path: Path) -> None:
    with staged(sample_index, tmp_path) as stage:
        options = RunOptions(stage.options.base, stage.options.token, stage.options.ops_key, stage.options.under_review)
        run = stage.check(options=options)
    assert {verdict.rule.id for verdict in run.of(Outcome.NOT_ASKED)} == {
        rule.id for rule in RULES if Need.WRITE in rule.needs
    }
    assert run.of(Outcome.FAILED) == ()
    with closing(sqlite3.connect(tmp_path / "reports.sqlite")) as reports:
        assert reports.execute("SELECT count(*) FROM reports").fetchone() == (0,)


def test_where_there_is_one_bare_shop_nothing_fails_and_what_it_cannot_show_is_not_seen(tmp_path: Path) -> None:
    index = embedded_world(tmp_path, [shop("Vellumry", "vellumry.internal")])
    with staged(index, tmp_path) as stage:
        outcomes = _outcomes(stage.check())
    assert (outcomes[Outcome.FAILED], outcomes[Outcome.NOT_ASKED]) == (set(), set())
    assert outcomes[Outcome.NOT_SEEN] == set(BARE.split())
