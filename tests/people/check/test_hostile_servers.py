"""Whatever a server sends, a run ends in time, reports what came as bounded text, and asks no other server."""

import asyncio
import io
import json
import re
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

import pytest
from rich.console import Console

from shop_directory.conformance.client import Bounds
from shop_directory.conformance.report import print_run, run_document
from shop_directory.conformance.rule import Outcome
from shop_directory.conformance.rules import RULES
from shop_directory.conformance.run import NoServiceError, RunOptions, run
from tests.people.check.breaking import ANY, Answered, answering
from tests.people.check.changes import body as bodied
from tests.people.check.stage import Stage

Spoken = Callable[[socketserver.StreamRequestHandler], None]

_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED: Final = _OK + b"transfer-encoding: chunked\r\n\r\n"
# Time enough for an answer that comes, however busy the machine is.
BOUNDS = Bounds(timeout=5.0, within=20.0, requests=50)
SHORT = Bounds(timeout=0.3, within=3.0, requests=50)
SECRET = "sd_a-token-of-this-test"
_JSON = b"content-type: application/json"


def endless(handler: socketserver.StreamRequestHandler) -> None:
    handler.wfile.write(CHUNKED)
    while True:
        handler.wfile.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")


def dripping(handler: socketserver.StreamRequestHandler) -> None:
    handler.wfile.write(_OK + b"content-length: 1000000\r\n\r\n")
    while True:
        handler.wfile.write(b" ")
        time.sleep(0.05)


def silent(handler: socketserver.StreamRequestHandler) -> None:
    handler.rfile.read()


def garbage(handler: socketserver.StreamRequestHandler) -> None:
    handler.wfile.write(b"\x00\xff\x16\x03\x01 hello\r\n\r\n" * 50)


def heads(handler: socketserver.StreamRequestHandler) -> None:
    handler.wfile.write(_OK)
    while True:
        handler.wfile.write(b"x-more: " + b"y" * 1000 + b"\r\n")


def cut_short(handler: socketserver.StreamRequestHandler) -> None:
    handler.wfile.write(_OK + b'content-length: 1000\r\n\r\n{"results": [')


def plain(status: bytes, body: bytes, *headers: bytes) -> Spoken:
    def speak(handler: socketserver.StreamRequestHandler) -> None:
        length = b"content-length: " + str(len(body)).encode()
        handler.wfile.write(b"\r\n".join((b"HTTP/1.1 " + status, length, *headers, b"connection: close", b"", body)))

    return speak


@contextmanager
def speaking(speak: Spoken) -> Iterator[tuple[str, list[bytes]]]:
    """A server on a loopback port; yields its base URL and the first line of each request that it got."""
    asked: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                asked.append(self.rfile.readline())
                while self.rfile.readline() not in {b"\r\n", b""}:
                    pass
                speak(self)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


def judged(base: str, bounds: Bounds = BOUNDS) -> tuple[str, float]:
    """What a run against it comes to, and the seconds that it takes."""
    began = time.monotonic()
    with pytest.raises(NoServiceError) as raised:
        asyncio.run(run(RunOptions(base, SECRET, bounds=bounds), RULES))
    return str(raised.value), time.monotonic() - began


@pytest.mark.parametrize(
    ("speak", "came"),
    [
        (endless, "more than 4,194,304 bytes"),
        (dripping, "no complete response within 0.3 seconds"),
        (silent, "no complete response within 0.3 seconds"),
        (garbage, "no HTTP response (RemoteProtocolError)"),
        (heads, "no HTTP response (RemoteProtocolError)"),
        (cut_short, "no HTTP response (RemoteProtocolError)"),
    ],
    ids=["endless", "dripping", "silent", "garbage", "heads", "cut short"],
)
def test_a_server_that_never_answers_completely_is_no_service_and_left_early(speak: Spoken, came: str) -> None:
    with speaking(speak) as (base, asked):
        printed, seconds = judged(base, SHORT if speak in {dripping, silent} else BOUNDS)
    assert printed == f"Nothing answers at {base}: {came}."
    assert (len(asked), seconds < BOUNDS.timeout) == (1, True)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Welcome</html>",
        b'"\xff\xfe"',
        b"[" * 100_000,
        b'{"results": {}}',
        b"\x1f\x8b\x08\x00garbage",
        b"",
        b"null",
    ],
    ids=["html", "no UTF-8", "deep", "other JSON", "compressed", "empty", "null"],
)
def test_what_answers_otherwise_is_no_shop_directory(body: bytes) -> None:
    with speaking(plain(b"200 OK", body, _JSON, b"content-encoding: gzip")) as (base, asked):
        printed, _ = judged(base)
    assert printed == f"Something answers at {base}, but it is not a Shop Directory."
    assert [line.split()[1] for line in asked] == [
        b"/health",
        b"/tool/find_shop",
        b"/tool/list_categories",
        b"/tool/list_coupons",
        b"/openapi.json",
    ]


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with speaking(plain(b"200 OK", b"{}", _JSON)) as (elsewhere, asked_elsewhere):
        target = f"location: {elsewhere}/tool/find_shop".encode()
        with speaking(plain(b"307 Temporary Redirect", b"", target)) as (base, asked):
            printed, _ = judged(base)
    assert printed == f"Something answers at {base}, but it is not a Shop Directory."
    assert (len(asked), asked_elsewhere) == (5, [])


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with speaking(plain(b"200 OK", b"{}", _JSON)) as (proxy, asked_proxy), speaking(cut_short) as (base, asked):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("http_proxy", proxy)
        judged(base)
    assert (len(asked), asked_proxy) == (1, [])


def test_a_quota_that_is_used_up_for_long_ends_the_run_unjudged() -> None:
    with speaking(plain(b"429 Too Many Requests", b"{}", b"retry-after: 999999999999")) as (base, _):
        printed, seconds = judged(base)
    assert (
        printed == "The service cannot be checked: the quota for this request is used up for another 999999999 seconds."
    )
    assert seconds < BOUNDS.timeout


def test_a_quota_that_is_never_there_again_ends_with_the_time_of_the_run() -> None:
    with speaking(plain(b"429 Too Many Requests", b"{}", b"retry-after: 0")) as (base, _):
        printed, seconds = judged(base, replace(BOUNDS, within=1.0))
    assert printed == "The service cannot be checked: the run has used its 1 seconds."
    assert seconds < BOUNDS.timeout


HOSTILE = {
    "huge": b'{"id": "' + b"x" * 5_000_000 + b'"}',
    "no UTF-8": b'{"id": "\xff\xfe"}',
    "deep": b'{"id": ' * 900 + b"1" + b"}" * 900,
    "deep arrays": b'{"id": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    "lone surrogate": b'{"id": "\\ud800"}',
    "large numbers": b'{"id": 1e999, "offers": 99999999999999999999999999999999}',
    "names twice": b'{"id": "a", "id": {"id": []}}',
    "an array": b"[1, 2, 3]",
    "a number": b"17",
    "nothing": b"",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_body_breaks_rules_and_not_the_run(stage: Stage, body: bytes) -> None:
    rules = [rule for rule in RULES if rule.id in {"I9", "I11", "I54"}]
    found = stage.check(rules, answering("/tool/get_shop", bodied(body)))
    assert len(found.of(Outcome.FAILED)) == len(rules)
    assert len(json.dumps(run_document(found, ()))) < 10_000


@pytest.mark.parametrize("name", ["deep", "an array", "nothing"])
def test_hostile_bodies_everywhere_but_at_one_tool_leave_every_rule_judged(stage: Stage, name: str) -> None:
    def change(answered: Answered) -> None:
        if answered.asked.path not in {"/tool/find_shop", "/health"}:
            answered.body = HOSTILE[name]

    found = stage.check(wrap=answering(ANY, change, None))
    assert len(found.verdicts) == len(RULES)
    assert len(found.of(Outcome.FAILED)) > len(RULES) / 2
    assert [verdict for verdict in found.of(Outcome.FAILED) if verdict.finding is None] == []


def test_what_came_is_shown_as_text_without_control_characters_and_without_credentials(stage: Stage) -> None:
    token = stage.options.token
    assert token is not None

    def change(answered: Answered) -> None:
        sent = dict(answered.asked.headers)
        answered.document = {"id": f"\x1b[2J\u202e[bold]{sent.get(b'x-api-token', b'').decode()}[/bold]", "name": []}

    rules = [rule for rule in RULES if rule.id in {"I9", "I54"}]
    found = stage.check(rules, answering("/tool/get_shop", change))
    assert [verdict.outcome for verdict in found.verdicts] == [Outcome.FAILED, Outcome.FAILED]
    shown = io.StringIO()
    print_run(found, (token,), Console(width=200, file=shown, color_system=None))
    printed = shown.getvalue() + json.dumps(run_document(found, (token,)), ensure_ascii=False)
    assert "[hidden]" in printed
    assert (token in printed, "\x1b" in printed, "\u202e" in printed) == (False, False, False)
    assert "[bold]" in printed


def test_the_request_is_reported_without_the_token(stage: Stage) -> None:
    rules = [rule for rule in RULES if rule.id == "I54"]
    found = stage.check(rules, answering("/tool/get_shop", bodied(b"[]")))
    finding = found.verdicts[0].finding
    assert finding is not None
    assert re.fullmatch(r'POST /tool/get_shop {"shop_domain":"[^"]+"} \(with x-api-token\)', finding.request)
    assert (finding.expected, finding.actual) == ("the body: an object", "body = []")
