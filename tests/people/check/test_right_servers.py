"""Right servers, ours on every world and others', break no rule; each broken one fails for what it breaks."""

import asyncio
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.types import ASGIApp

from indexer.sinks.opensearch.sink import OpenSearchSink
from service.app import create_app
from service.calls.dispatch import to_wire
from service.errors import InvalidInputError
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from service.tools.request import RequestT, validated
from service.tools.tool import ToolAnswer
from shop_directory.conformance.rule import Need, RuleOutcome
from shop_directory.conformance.rules import RULES, UNSEEN
from shop_directory.conformance.rules.calls import BEYOND
from shop_directory.conformance.run import Run, RunOptions, run
from shop_directory.search.opensearch.engine import OpenSearchBackend
from tests.people.check import broken_calls, broken_facts, broken_finding, broken_mcp, broken_operations, broken_shops
from tests.people.check.breaking import ANY, Answered, Asked, Changed, Document, Wrap, answering
from tests.people.check.broken_mcp import MCP, saying
from tests.people.check.stage import BASE, Stage, living, right_settings, staged
from tests.rules.proof import marks_of_source, read_manifest
from tests.support.catalogues import build_into, shop
from tests.support.emptying import unused_prefix
from tests.support.sample import SAMPLE
from tests.support.served import served, until_ready
from tests.support.worlds import embedded_world

BREAKAGES: Final = tuple(
    breakage
    for module in (broken_calls, broken_facts, broken_finding, broken_mcp, broken_operations, broken_shops)
    for breakage in module.BREAKAGES
)
ALL: Final = {rule.id for rule in RULES}
# The build of these tests knows its commit, so that one sentence has no subject.
KNOWN_BUILD: Final = {"I75"}
# Those about shops under review judge the half that they can; this build does not know itself.
ASKED_BY_ANYBODY: Final = {"I55", "I57", "I74", "F8"}
# What one shop without coupons, offers, shipping and trust in one category can't show.
ONE_SHOP: Final = """
    A7 F3 F6 F7 I14 I16 I17 I21 I22 I26 I28 I30 I38 I39 I40 I41 I46 I47 I48 I49 I50 I56 I64 I65 I66 I70 I71 I75 I77
    M6.broader M11.other_lists
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
            url = request.getfixturevalue("opensearch_url")
            with unused_prefix(url) as prefix, closing(OpenSearchSink([url], prefix)) as sink:
                build_into(sink, SAMPLE)
                with staged(sample_index, tmp_path, OpenSearchBackend([url], prefix, timeout=10.0)) as made:
                    yield made.check()
        case "nothing given":
            with living(create_app(Settings(data_dir=sample_index, request_timeout=10.0))) as (app, loop):
                yield Stage(app, RunOptions(BASE), loop, tmp_path).check()
        case "one shop":
            with staged(embedded_world(tmp_path, [shop("Vellumry", "vellumry.internal")]), tmp_path) as made:
                yield made.check()


@pytest.mark.fast
# All rules of the check, as `test_rules_known` asserts.
@pytest.mark.rule(
    "I1", "I2", "I3", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I15", "I16", "I17", "I18",
    "I19", "I20", "I21", "I22", "I23", "I24", "I25", "I26", "I27", "I28", "I29", "I30", "I31", "I32", "I33", "I34",
    "I35", "I36", "I37", "I38", "I39", "I40", "I41", "I42", "I43", "I44", "I45", "I46", "I47", "I48", "I49", "I50",
    "I51", "I52", "I53", "I54", "I55", "I56", "I57", "I59", "I60", "I61", "I62", "I63", "I64", "I65", "I66", "I67",
    "I68", "I69", "I70", "I71", "I72", "I73", "I74", "I75", "I76", "I77", "I78", "I79", "I79.more_reads", "I80",
    "I81", "I82", "I83", "I84", "I85", "V2", "R1", "R1.bounds", "R2", "R3", "R3.query_string", "R4", "R5",
    "R5.credentials", "M3.hosts", "M3.wishes", "M6.nothing_left", "M6.word_counts", "M6.broader", "M8", "M10",
    "M11", "M11.other_lists", "A1.offers", "A7", "A9", "A14", "F1", "F3", "F5", "F6", "F7", "F8", "E1",
    "E1.credentials", "E1.transport", "E2", "E2.credentials", "E2.protocol", "E4", "E5.request_id", "E6", "Q1", "Q2",
    "C1.http", "C2", "C3", "O1", "F17", "F21",
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
    outcomes = {outcome: {verdict.rule.id for verdict in run_of_world.of(outcome)} for outcome in RuleOutcome}
    assert [(verdict.rule.id, verdict.finding) for verdict in run_of_world.of(RuleOutcome.FAILED)] == []
    assert (outcomes[RuleOutcome.NOT_SEEN], outcomes[RuleOutcome.NOT_ASKED]) == (not_seen, not_asked)
    assert outcomes[RuleOutcome.PASSED] == ALL - not_seen - not_asked
    assert not run_of_world.unfinished


def test_without_the_word_to_write_no_report_is_sent(sample_index: Path, tmp_path: Path) -> None:
    with staged(sample_index, tmp_path) as stage:
        run = stage.check(options=replace(stage.options, write=False))
    assert {verdict.rule.id for verdict in run.of(RuleOutcome.NOT_ASKED)} == {
        rule.id for rule in RULES if Need.WRITE in rule.needs
    }
    assert {verdict.reason for verdict in run.of(RuleOutcome.NOT_ASKED)} == {"needs --write"}
    assert run.of(RuleOutcome.FAILED) == ()
    with closing(sqlite3.connect(tmp_path / "reports.sqlite")) as reports:
        assert reports.execute("SELECT count(*) FROM reports").fetchone() == (0,)


SESSION: Final = (b"mcp-session-id", b"one-of-this-test")
_BEYOND: Final = frozenset(
    {"did_you_mean", "word_counts", "broader", "aliases_total", "excluded", "unsettled_count", "next_cursor", "facets"}
)
_PARAMETERS: Final = frozenset({"shop_domains", "facets", "categories", "countries", "cursor"})
_HANDSHAKE: Final = (b"mcp-protocol-version", b"2025-11-25")


def _as_events(answered: Answered) -> None:
    if not answered.body:
        return
    begun, rest = answered.body[:1], answered.body[1:]
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
    lines = (b": hello", b"", b"event: message", b"data: " + note, b"", b"id: 2", b"data: " + begun, b"data:" + rest)
    answered.body = b"\r\n".join((*lines, b"", b""))
    answered.set_header(b"content-type", b"text/event-stream; charset=utf-8")


def _with_sessions(app: ASGIApp) -> ASGIApp:
    """Sessions for the era of handshakes: requests without one, or before it is initialized, are refused."""
    confirmed = False

    def before(asked: Asked) -> None:
        nonlocal confirmed
        if asked.path == MCP and SESSION in asked.headers:
            confirmed |= asked.arguments.get("method") == "notifications/initialized"
        elif asked.path == MCP and _HANDSHAKE in asked.headers:
            asked.body = b""
        if asked.path == MCP and asked.arguments.get("method") == "tools/call" and SESSION in asked.headers:
            assert confirmed

    def after(answered: Answered) -> None:
        if answered.asked.path == MCP and answered.asked.arguments.get("method") == "initialize":
            answered.headers.append(SESSION)

    return Changed(app, before=before, after=after)


def _behind_a_proxy(answered: Answered) -> None:
    answered.headers += [(b"via", b"1.1 edge"), (b"x-edge-request", secrets.token_hex(8).encode())]


def _without_fields_beyond(answer: ToolAnswer) -> Document:
    document = _without(to_wire(answer))
    if "results" in document:
        document["results"] = [_without(found) for found in document["results"]]
    return document


def _without_parameters_beyond(model: type[RequestT], arguments: dict[str, Any]) -> RequestT:
    """The request, unless it has a parameter that is beyond the interface."""
    if _PARAMETERS & arguments.keys():
        raise InvalidInputError("This tool has no such field.")
    return validated(model, arguments)


def _without(document: Document) -> Document:
    return {name: value for name, value in document.items() if name not in _BEYOND}


def _out_of_quota(times: int) -> Callable[[ASGIApp], ASGIApp]:
    left = times

    def change(answered: Answered) -> None:
        nonlocal left
        if left > 0:
            left -= 1
            text = '{"code":"quota_exceeded","detail":"Try again in 1 seconds."}'
            result = {"isError": True, "content": [{"type": "text", "text": text}]}
            answered.document = {"jsonrpc": "2.0", "id": 1, "result": result}

    return saying(change, method="tools/call")


@pytest.mark.parametrize(
    "wrap",
    [answering(MCP, _as_events), _with_sessions, answering(ANY, _behind_a_proxy, None)],
    ids=["streams", "sessions", "proxy"],
)
def test_streams_sessions_and_the_marks_of_a_proxy_break_no_rule(
    stage: Stage, wrap: Callable[[ASGIApp], ASGIApp]
) -> None:
    found = stage.check(wrap=wrap)
    assert [(verdict.rule.id, verdict.finding) for verdict in found.of(RuleOutcome.FAILED)] == []
    assert len(found.of(RuleOutcome.PASSED)) > len(RULES) - 10


@pytest.mark.rule("A14", "F8", "F17", "I1")
def test_a_service_without_what_is_beyond_the_interface_is_whole(
    sample_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("service.app", "service.parts"):
        monkeypatch.setattr(f"{module}.REGISTRY", tuple(tool for tool in REGISTRY if tool.name not in BEYOND))
    monkeypatch.setattr("service.calls.dispatch.to_wire", _without_fields_beyond)
    monkeypatch.setattr("service.calls.dispatch.validated", _without_parameters_beyond)
    with staged(sample_index, tmp_path) as plain:
        found = plain.check()
    assert [(verdict.rule.id, verdict.finding) for verdict in found.of(RuleOutcome.FAILED)] == []
    not_seen = {verdict.rule.id for verdict in found.of(RuleOutcome.NOT_SEEN)}
    assert not_seen == {"A14", "A7", "F1", "F3", "F5", "F6", "F7", "F8", "F17", "I75", "M6.broader", "M6.word_counts"}


def test_without_the_key_the_closed_endpoints_are_not_seen_and_still_guarded(stage: Stage) -> None:
    options = replace(stage.options, ops_key=None)
    rules = [rule for rule in RULES if rule.id in {"I76", "I77", "I81"}]
    outcomes = {verdict.rule.id: verdict.outcome for verdict in stage.check(rules, options=options).verdicts}
    assert outcomes == {"I76": RuleOutcome.NOT_SEEN, "I77": RuleOutcome.NOT_SEEN, "I81": RuleOutcome.PASSED}


@pytest.mark.parametrize(("refused", "outcome"), [(2, RuleOutcome.PASSED), (1_000, RuleOutcome.NOT_ASKED)])
def test_a_call_over_mcp_that_the_quota_refuses_is_asked_again_and_at_last_not_judged(
    stage: Stage, refused: int, outcome: RuleOutcome
) -> None:
    rules = [rule for rule in RULES if rule.id in {"I5", "E2", "V2"}]
    found = stage.check(rules, _out_of_quota(refused))
    assert {verdict.outcome for verdict in found.verdicts} == {outcome}
    assert found.unfinished == (outcome is RuleOutcome.NOT_ASKED)


@pytest.mark.parametrize(
    ("rule_id", "wrap"), [pytest.param(rule_id, wrap, id=f"{rule_id} {how}") for rule_id, how, wrap in BREAKAGES]
)
def test_a_broken_server_fails_for_what_it_breaks(stage: Stage, rule_id: str, wrap: Wrap) -> None:
    found = stage.check([rule for rule in RULES if rule.id == rule_id], wrap)
    assert [verdict.outcome for verdict in found.verdicts] == [RuleOutcome.FAILED]


MANIFEST = {rule.id for rule in read_manifest()}


@pytest.mark.fast
def test_every_sentence_of_the_interface_is_checked_or_listed_as_unseen_and_none_is_both() -> None:
    checked = [rule.id for rule in RULES]
    sentences = {rule_id for rule_id in MANIFEST if rule_id.startswith("I")}
    assert {rule_id for rule_id in checked if rule_id.startswith("I")} | set(UNSEEN) == sentences
    assert set(checked) & set(UNSEEN) == set()
    assert len(set(checked)) == len(checked)


@pytest.mark.fast
def test_every_rule_of_check_is_one_of_the_manifest() -> None:
    assert {rule.id for rule in RULES} - MANIFEST == set()


@pytest.mark.fast
def test_every_rule_of_check_is_a_mark_of_the_test_that_runs_it_on_every_world() -> None:
    marks = marks_of_source(Path(__file__).read_text(encoding="utf-8"), "test_right_servers.py")
    (test,) = [test for test in marks.tests if test.location.endswith(" test_no_rule_is_broken_on_any_world")]
    assert (test.rules, test.asserts) == (frozenset(rule.id for rule in RULES), True)


def test_what_cannot_be_seen_from_outside_is_little_and_has_its_reason() -> None:
    assert set(UNSEEN) == {"I4", "I58"}
    assert all(reason.endswith(".") for reason in UNSEEN.values())


def test_no_rule_is_without_a_server_that_breaks_it() -> None:
    assert {rule.id for rule in RULES} - {rule_id for rule_id, _, _ in BREAKAGES} == set()
