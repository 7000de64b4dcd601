"""The right service on every world: no rule is broken, and exactly those without a subject or an option are left out.

These runs test most sentences of the interface over REST, `/suggest` and both eras of MCP.
"""

import asyncio
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from indexer.sinks.opensearch.sink import OpenSearchSink
from service.app import create_app
from service.search.opensearch.engine import OpenSearchBackend
from service.settings.service import Settings
from shop_directory.conformance.rule import Need, Outcome
from shop_directory.conformance.rules import RULES
from shop_directory.conformance.run import Run, RunOptions, run
from tests.people.check.stage import BASE, Stage, living, right_settings, staged
from tests.support.catalogues import build_into, shop
from tests.support.emptying import delete_indices
from tests.support.sample import SAMPLE
from tests.support.served import served, until_ready
from tests.support.worlds import embedded_world

ALL: Final = {rule.id for rule in RULES}
# The build of these tests knows its commit, so that one sentence has no subject.
KNOWN_BUILD: Final = {"I75"}
# Those about shops under review judge the half that they can; this build does not know itself.
ASKED_BY_ANYBODY: Final = {"I55", "I57", "I74"}
# What one shop without coupons, offers, shipping and trust in one category can't show.
ONE_SHOP: Final = """
    A7 I14 I16 I17 I21 I22 I26 I28 I30 I38 I39 I40 I41 I46 I47 I48 I49 I50 I56 I64 I65 I66 I70 I71 I75 I77
    M11.other_lists
"""


@pytest.fixture
def run_of_world(request: pytest.FixtureRequest, stage: Stage, sample_index: Path, tmp_path: Path) -> Iterator[Run]:
    match request.param:
        case "embedded":
            yield stage.check()
        case "sockets":
            # Through the server and its fast paths, by those who have reported all this before.
            app = create_app(right_settings(sample_index, stage.folder))
            with served(app) as base:
                until_ready(base)
                yield asyncio.run(run(replace(stage.options, base=base), RULES))
        case "opensearch":
            url, prefix = request.getfixturevalue("opensearch_url"), f"test-{secrets.token_hex(6)}"
            sink = OpenSearchSink([url], prefix)
            try:
                build_into(sink, SAMPLE)
                with staged(sample_index, tmp_path, OpenSearchBackend([url], prefix, timeout=10.0)) as made:
                    yield made.check()
            finally:
                sink.close()
                delete_indices([url], prefix)
        case "nothing given":
            with living(create_app(Settings(data_dir=sample_index, request_timeout=10.0))) as (app, loop):
                yield Stage(app, RunOptions(BASE), loop, tmp_path).check()
        case "one shop":
            with staged(embedded_world(tmp_path, [shop("Vellumry", "vellumry.internal")]), tmp_path) as made:
                yield made.check()


# All rules of the check, as `test_rules_known` asserts.
@pytest.mark.rule(
    "I1", "I2", "I3", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I15", "I16", "I17", "I18",
    "I19", "I20", "I21", "I22", "I23", "I24", "I25", "I26", "I27", "I28", "I29", "I30", "I31", "I32", "I33", "I34",
    "I35", "I36", "I37", "I38", "I39", "I40", "I41", "I42", "I43", "I44", "I45", "I46", "I47", "I48", "I49", "I50",
    "I51", "I52", "I53", "I54", "I55", "I56", "I57", "I59", "I60", "I61", "I62", "I63", "I64", "I65", "I66", "I67",
    "I68", "I69", "I70", "I71", "I72", "I73", "I74", "I75", "I76", "I77", "I78", "I79", "I79.more_reads", "I80",
    "I81", "I82", "I83", "I84", "I85", "V2", "R1", "R1.bounds", "R2", "R3", "R3.query_string", "R4", "R5",
    "R5.credentials", "M3.hosts", "M3.wishes", "M6.nothing_left", "M6.word_counts", "M8", "M10", "M11",
    "M11.other_lists", "A1.offers", "A7", "A9", "A14", "E1", "E1.credentials", "E1.transport", "E2", "E2.credentials",
    "E2.protocol", "E4", "E5.request_id", "E6", "Q1", "Q2", "C1.http", "C2", "C3", "O1",
)  # fmt: skip
@pytest.mark.parametrize(
    ("run_of_world", "not_seen", "not_asked"),
    [
        ("embedded", KNOWN_BUILD, set()),
        ("sockets", KNOWN_BUILD, set()),
        pytest.param("opensearch", KNOWN_BUILD, set(), marks=pytest.mark.opensearch),
        ("nothing given", ASKED_BY_ANYBODY, {rule.id for rule in RULES if rule.needs}),
        ("one shop", set(ONE_SHOP.split()), set()),
    ],
    indirect=["run_of_world"],
)
def test_no_rule_is_broken_on_any_world(run_of_world: Run, not_seen: set[str], not_asked: set[str]) -> None:
    outcomes = {outcome: {verdict.rule.id for verdict in run_of_world.of(outcome)} for outcome in Outcome}
    assert [(verdict.rule.id, verdict.finding) for verdict in run_of_world.of(Outcome.FAILED)] == []
    assert (outcomes[Outcome.NOT_SEEN], outcomes[Outcome.NOT_ASKED]) == (not_seen, not_asked)
    assert outcomes[Outcome.PASSED] == ALL - not_seen - not_asked
    assert not run_of_world.unfinished


def test_without_the_word_to_write_no_report_is_sent(sample_index: Path, tmp_path: Path) -> None:
    with staged(sample_index, tmp_path) as stage:
        run = stage.check(options=replace(stage.options, write=False))
    assert {verdict.rule.id for verdict in run.of(Outcome.NOT_ASKED)} == {
        rule.id for rule in RULES if Need.WRITE in rule.needs
    }
    assert {verdict.reason for verdict in run.of(Outcome.NOT_ASKED)} == {"needs --write"}
    assert run.of(Outcome.FAILED) == ()
    with closing(sqlite3.connect(tmp_path / "reports.sqlite")) as reports:
        assert reports.execute("SELECT count(*) FROM reports").fetchone() == (0,)
