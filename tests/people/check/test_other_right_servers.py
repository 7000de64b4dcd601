"""Servers that keep the interface in another way than this project's service are right too."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from starlette.types import ASGIApp

from service.calls.dispatch import to_wire
from service.tools.registry import REGISTRY
from service.tools.tool import ToolAnswer
from shop_directory.conformance.rule import Outcome
from shop_directory.conformance.rules import RULES
from tests.people.check.breaking import ANY, Answered, Asked, Changed, Document, answering
from tests.people.check.broken_mcp import MCP, saying
from tests.people.check.stage import Stage, staged

SESSION: Final = (b"mcp-session-id", b"one-of-this-test")
_BEYOND: Final = frozenset({"did_you_mean", "word_counts", "aliases_total", "excluded"})
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
    assert [(verdict.rule.id, verdict.finding) for verdict in found.of(Outcome.FAILED)] == []
    assert len(found.of(Outcome.PASSED)) > len(RULES) - 10


@pytest.mark.rule("A14", "I1")
def test_a_service_without_what_is_beyond_the_interface_is_whole(
    sample_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("service.app", "service.parts"):
        monkeypatch.setattr(f"{module}.REGISTRY", tuple(tool for tool in REGISTRY if tool.name != "get_shops"))
    monkeypatch.setattr("service.calls.dispatch.to_wire", _without_fields_beyond)
    with staged(sample_index, tmp_path) as plain:
        found = plain.check()
    assert [(verdict.rule.id, verdict.finding) for verdict in found.of(Outcome.FAILED)] == []
    assert {verdict.rule.id for verdict in found.of(Outcome.NOT_SEEN)} == {"A14", "A7", "I75", "M6.word_counts"}


def test_without_the_key_the_closed_endpoints_are_not_seen_and_still_guarded(stage: Stage) -> None:
    options = replace(stage.options, ops_key=None)
    rules = [rule for rule in RULES if rule.id in {"I76", "I77", "I81"}]
    outcomes = {verdict.rule.id: verdict.outcome for verdict in stage.check(rules, options=options).verdicts}
    assert outcomes == {"I76": Outcome.NOT_SEEN, "I77": Outcome.NOT_SEEN, "I81": Outcome.PASSED}


@pytest.mark.parametrize(("refused", "outcome"), [(2, Outcome.PASSED), (1_000, Outcome.NOT_ASKED)])
def test_a_call_over_mcp_that_the_quota_refuses_is_asked_again_and_at_last_not_judged(
    stage: Stage, refused: int, outcome: Outcome
) -> None:
    rules = [rule for rule in RULES if rule.id in {"I5", "E2", "V2"}]
    found = stage.check(rules, _out_of_quota(refused))
    assert {verdict.outcome for verdict in found.verdicts} == {outcome}
    assert found.unfinished == (outcome is Outcome.NOT_ASKED)
