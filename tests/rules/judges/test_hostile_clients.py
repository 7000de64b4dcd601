"""Clients that lie, stall, flood and break the rules, and the bound of a request's head: no 500, no hang."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from typing import Final

import pytest

from service.server.http_server import HttpProtocol
from service.tools.registry import REGISTRY
from tests.support.served import Reply, get, post
from tests.support.wire import connect, exchange, problem

BEGUN: Final = b"POST /tool/find_shop HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
IMPOSSIBLE_LENGTHS: Final = (
    "content-length: -1", "content-length: 1x", "content-length: 0x0c", "content-length: 99999999999999999999999999",
    "content-length: 12\r\ncontent-length: 13", "content-length: 12, 13",
    "transfer-encoding: chunked\r\ncontent-length: 12", "content-length: 12\r\ntransfer-encoding: chunked",
    "transfer-encoding: chunked, gzip", "transfer-encoding: xchunked", "transfer-encoding : chunked",
    "transfer-encoding: chunked\r\n\r\nzz\r\n", "transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "transfer-encoding: chunked\r\n\r\n-5\r\n",
)  # fmt: skip
STALLED: Final = (
    b"",
    b"\r\n",
    b"POST /tool/find_shop HT",
    BEGUN,
    BEGUN + b"content-length: 12\r\n\r\n",
    BEGUN + b'content-length: 12\r\n\r\n{"que',
    BEGUN + b"transfer-encoding: chunked\r\n\r\nc\r\n{",
    BEGUN.replace(b"/tool/find_shop", b"/mcp") + b"accept: */*\r\ncontent-length: 9\r\n\r\n{",
)
TARGETS: Final = (*(f"/tool/{tool.name}" for tool in REGISTRY), "/mcp")
PROBLEM: Final = "application/problem+json"
# What is not HTTP at all gets the same words whatever it is.
NOT_HTTP: Final = (400, PROBLEM, "invalid_input")
CLOSE: Final = "host: localhost\r\nconnection: close\r\n"
BODY: Final = b'{"query":""}'
# Without a token these are not even asked for their body (R5).
TOKEN_ONLY: Final = frozenset(f"/tool/{tool.name}" for tool in REGISTRY if tool.token != "optional")


@pytest.fixture(autouse=True)
def _served_as_ever(base: str, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    started = time.monotonic()
    assert get(base, "/health").summary == (200, "application/json", {"status": "ok"})
    assert post(base, "/tool/list_categories", {}).json["total_count"] == 3
    assert time.monotonic() - started < 2
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    # A task that a browser of earlier tests left behind is collected at any time.
    assert [error for error in errors if "playwright" not in error] == []


@pytest.mark.rule("E6", "E1", "R5")
@pytest.mark.parametrize("length", IMPOSSIBLE_LENGTHS)
@pytest.mark.parametrize("transport", TARGETS)
def test_a_length_that_cannot_be_right_is_refused_once_and_for_all(base: str, transport: str, length: str) -> None:
    replies = exchange(base, _post(transport, length, BODY), finish=True)
    assert [_summary(reply) for reply in replies] == [NOT_HTTP]


@pytest.mark.rule("E6", "R5")
@pytest.mark.parametrize("transport", TARGETS)
@pytest.mark.parametrize("declared", [65_537, 9_999_999_999, 2**63 - 1])
def test_a_body_that_is_announced_too_large_is_refused_unread(base: str, transport: str, declared: int) -> None:
    (reply,) = exchange(base, _post(transport, f"content-length: {declared}", BODY))
    assert _summary(reply) == _too_large(transport)


@pytest.mark.rule("E6", "R5")
@pytest.mark.parametrize("transport", TARGETS)
def test_a_body_without_end_is_cut_off(base: str, transport: str) -> None:
    chunks = repeat(b"1000\r\n" + b" " * 4_096 + b"\r\n", 1_000)
    replies = exchange(base, _post(transport, "transfer-encoding: chunked", b""), *chunks, pause=0.001)
    assert [_summary(reply) for reply in replies] == [_too_large(transport)]


@pytest.mark.rule("E6", "E1")
@pytest.mark.parametrize("transport", TARGETS)
def test_a_body_that_ends_before_its_length_is_not_taken_for_a_whole_one(base: str, transport: str) -> None:
    assert exchange(base, _post(transport, "content-length: 50", BODY), finish=True) == []


@pytest.mark.rule("I2")
@pytest.mark.parametrize("line", ["content-length: 12", "transfer-encoding: chunked"])
def test_a_slow_body_is_waited_for(base: str, line: str) -> None:
    chunked = line.startswith("transfer")
    letters = [b"1\r\n%c\r\n" % letter if chunked else b"%c" % letter for letter in BODY]
    replies = exchange(base, _post("/tool/find_shop", line, b""), *letters, *([b"0\r\n\r\n"] * chunked), pause=0.03)
    assert [(reply.status, reply.json["total_count"]) for reply in replies] == [(200, 3)]


@pytest.mark.rule("E6")
@pytest.mark.parametrize("begun", STALLED)
def test_clients_that_stall_do_not_delay_others(base: str, begun: bytes) -> None:
    with ExitStack() as stalled:
        for _ in range(100):
            stalled.enter_context(connect(base)).sendall(begun)
        started = time.monotonic()
        replies = [post(base, "/tool/find_shop", {"query": ""}) for _ in range(5)]
        assert [(reply.status, reply.json["total_count"]) for reply in replies] == [(200, 3)] * 5
        assert time.monotonic() - started < 2


@pytest.mark.rule("E6")
@pytest.mark.parametrize(
    "pieces",
    [
        *([begun] for begun in STALLED),
        [BEGUN, *repeat(b"x: y\r\n", 200)],
        [BEGUN + b"content-length: 1000\r\n\r\n", *repeat(b" ", 200)],
    ],
)
def test_clients_that_never_come_to_the_point_are_hung_up_on(
    base: str, pieces: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpProtocol, "receive_seconds", 0.5)
    started = time.monotonic()
    assert exchange(base, *pieces, pause=0.05) == []
    assert time.monotonic() - started < 5


@pytest.mark.rule("E6", "E1")
@pytest.mark.parametrize("path", ["/health", "/suggest?q=a", "/nothing"])
@pytest.mark.parametrize("header", ["a:", "x-{}: y", "cookie: {}={}", "accept: */*", "if-none-match: {}"])
def test_ten_thousand_headers_are_read_or_refused(base: str, path: str, header: str) -> None:
    lines = "".join(f"{header.format(number, number)}\r\n" for number in range(10_000))
    (reply,) = exchange(base, f"GET {path} HTTP/1.1\r\n{CLOSE}{lines}\r\n".encode())
    assert reply.status in {200, 400, 404}
    assert len(reply.headers["x-request-id"]) == 32


@pytest.mark.rule("E6", "E1", "R3")
@pytest.mark.parametrize(
    "target",
    [
        "/suggest?q=" + "a" * 60_000,
        "/suggest?" + "q=a&" * 10_000,
        "/suggest?q=" + "%F0%9F%9B%92" * 4_000,
        "/suggest?q=" + "a" * 1_000_000,
        "/" + "a" * 1_000_000,
    ],
    ids=lambda target: f"{target[:20]} and so on, {len(target)}",
)
def test_no_address_is_too_long_or_too_broken_to_be_refused(base: str, target: str) -> None:
    (reply,) = exchange(base, f"GET {target} HTTP/1.1\r\n{CLOSE}\r\n".encode())
    assert _summary(reply) == NOT_HTTP


@pytest.mark.rule("I73")
@pytest.mark.parametrize(
    "head",
    [
        "GET /health HTTP/1.0\r\n",
        "GET /health HTTP/1.0\r\nconnection: close\r\n",
        "GET http://elsewhere.example/health HTTP/1.1\r\n" + CLOSE,
        f"GET /health HTTP/1.1\r\n{CLOSE}upgrade: websocket\r\n",
        f"GET /health HTTP/1.1\r\n{CLOSE}upgrade: h2c\r\n",
        f"GET /health HTTP/1.1\r\n{CLOSE}expect: the impossible\r\n",
    ],
)
def test_old_and_fanciful_clients_are_answered(base: str, head: str) -> None:
    (reply,) = exchange(base, f"{head}\r\n".encode())
    assert reply.summary == (200, "application/json", {"status": "ok"})


def _post(transport: str, length: str, body: bytes) -> bytes:
    fields = f"{CLOSE}content-type: application/json\r\naccept: application/json\r\n{length}"
    return f"POST {transport} HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body


def _summary(reply: Reply) -> tuple[int, str | None, str | int]:
    document = json.loads(reply.body)
    code = document["error"]["code"] if "error" in document else document["code"]
    return reply.status, reply.headers.get("content-type"), code


def _too_large(transport: str) -> tuple[int, str, str | int]:
    if transport in TOKEN_ONLY:
        return 401, PROBLEM, "token_required"
    return (413, "application/json", -32600) if transport == "/mcp" else (413, PROBLEM, "body_too_large")


BOUND = 65_536
HEALTH = "/health"
# Answered by the fast path of the protocol where the connection goes on, otherwise by the application.
SUGGEST = "/suggest?q=boo"
_TOO_LONG = problem(
    400,
    "invalid_input",
    "The request is not valid HTTP, its method is unknown, or its head is too long. Percent-encode # and what is not"
    " ASCII in the address.",
)


def head_of(size: int, lines: int = 1, filler: str = "a", target: str = HEALTH, connection: str = "close") -> bytes:
    """A GET of so many bytes, its surplus shared by some headers."""
    bare = f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: {connection}\r\n"
    surplus = size - len(bare) - len("\r\n")
    each, rest = divmod(surplus, lines)
    fields = [f"x-{number:04d}: " for number in range(lines)]
    filled = [each + (rest if not number else 0) - len(field) - 2 for number, field in enumerate(fields)]
    whole = bare + "".join(f"{field}{filler * count}\r\n" for field, count in zip(fields, filled, strict=True)) + "\r\n"
    assert len(whole) == size
    return whole.encode()


@pytest.mark.rule("E6", "E1")
@pytest.mark.parametrize("target", [HEALTH, SUGGEST])
@pytest.mark.parametrize("connection", ["keep-alive", "close"])
@pytest.mark.parametrize(("lines", "filler"), [(1, "a"), (40, " ")])
def test_a_head_beyond_the_bound_is_refused_on_each_path_and_ends_the_connection(
    base: str, lines: int, filler: str, target: str, connection: str
) -> None:
    last = head_of(200)
    (whole, *others) = exchange(base, head_of(BOUND, lines, filler, target, connection) + last)
    assert (whole.status, [reply.status for reply in others]) == (200, [200] if connection == "keep-alive" else [])
    for size in (BOUND + 1, 120_000):
        (refused,) = exchange(base, head_of(size, lines, filler, target, connection) + last)
        assert refused.summary == (400, "application/problem+json", _TOO_LONG)
        assert refused.headers["connection"] == "close"


@pytest.mark.rule("E6", "E1")
@pytest.mark.parametrize(("size", "status"), [(BOUND, 200), (BOUND + 1, 400), (120_000, 400)])
def test_a_head_that_is_sent_in_many_small_pieces(base: str, size: int, status: int) -> None:
    whole = head_of(size)
    pieces = [whole[at : at + 4_000] for at in range(0, size, 4_000)]
    assert [reply.status for reply in exchange(base, *pieces, pause=0.005)] == [status]


@pytest.mark.rule("E6")
def test_many_requests_in_one_piece_are_no_long_head(base: str) -> None:
    one = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-filler: " + b"a" * 900 + b"\r\n\r\n"
    replies = exchange(base, one * 150 + head_of(2_000))
    assert [reply.status for reply in replies] == [200] * 151
