"""HTTP itself: answers that are compressed, and connections on which something is not HTTP."""

import gzip
import json
import time
from socket import socket
from typing import Any, Final

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.http.middleware import HttpMiddleware
from tests.support.sample import SampleService
from tests.support.served import Reply, ask, get, post
from tests.support.wire import Era, call, connect, replies

PAGE: Final = {"query": "", "limit": 10}
# What differs between any two requests.
_OF_ONE_REQUEST: Final = frozenset({"x-request-id", "date", "ratelimit"})
FILE: Final = "/docs/assets/swagger-ui.css"


def _own(reply: Reply, *but: str) -> dict[str, str]:
    return {name: value for name, value in reply.headers.items() if name not in {*but, *_OF_ONE_REQUEST}}


@pytest.mark.rule("I5", "C2")
def test_a_page_of_shops_is_the_same_and_shorter(sample: SampleService) -> None:
    plain = post(sample.base, "/tool/find_shop", PAGE)
    packed = post(sample.base, "/tool/find_shop", PAGE, accept_encoding="br, gzip;q=0.5")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 2
    assert _own(packed) == {
        **_own(plain), "content-encoding": "gzip", "content-length": str(len(packed.body)), "vary": "Accept-Encoding",
    }  # fmt: skip
    assert packed.body == post(sample.base, "/tool/find_shop", PAGE, accept_encoding="gzip").body


@pytest.mark.parametrize("accepted", ["", "identity", "br, zstd", "gzip;q=0", "GZIP; q=0.0", "*", "xgzip"])
def test_who_does_not_accept_gzip_gets_none(sample: SampleService, accepted: str) -> None:
    reply = post(sample.base, "/tool/find_shop", PAGE, accept_encoding=accepted)
    assert (reply.headers.get("content-encoding"), len(reply.json["results"])) == (None, 10)


def test_a_short_answer_stays_as_it_is(sample: SampleService) -> None:
    reply = post(sample.base, "/tool/get_shop", {"shop_domain": "nobody.internal"}, accept_encoding="gzip")
    assert (reply.status, reply.json["code"]) == (404, "shop_not_found")
    assert {"content-encoding", "vary"} & set(reply.headers) == set()


@pytest.mark.rule("I5")
@pytest.mark.parametrize("era", list(Era))
@pytest.mark.parametrize("plain_call", [True, False])
def test_results_over_mcp_are_compressed_on_the_fast_path_and_by_the_sdk(
    sample: SampleService, era: Era, *, plain_call: bool
) -> None:
    # With a header of the protocol that is not known here, the SDK answers.
    headers = {"accept_encoding": "gzip", **({} if plain_call else {"mcp_param_any": "x"})}
    reply = call(sample.base, era, "find_shop", json.dumps(PAGE).encode(), **headers)
    assert reply.headers["content-encoding"] == "gzip"
    document = json.loads(gzip.decompress(reply.body))
    (content,) = document["result"]["content"]
    assert content["text"].encode() == post(sample.base, "/tool/find_shop", PAGE).body


@pytest.mark.rule("C1.http")
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("limit", ["", "&limit=20"])
def test_suggestions_are_not_compressed_on_any_path(sample: SampleService, method: str, limit: str) -> None:
    plain, asked = (
        ask(sample.base, method, f"/suggest?q=s{limit}", headers=headers)
        for headers in ({}, {"accept-encoding": "gzip"})
    )
    assert (asked.body, _own(asked)) == (plain.body, _own(plain))
    assert {"content-encoding", "vary"} & set(asked.headers) == set()


def test_each_form_of_a_file_has_a_strong_tag_of_its_own(sample: SampleService) -> None:
    plain, packed = get(sample.base, FILE), get(sample.base, FILE, accept_encoding="gzip")
    tags = plain.headers["etag"], packed.headers["etag"]
    assert gzip.decompress(packed.body) == plain.body
    assert (len(set(tags)), [tag.startswith('"') for tag in tags]) == (2, [True, True])
    assert [reply.headers["vary"] for reply in (plain, packed)] == ["Accept-Encoding"] * 2
    for accepted, own, other in (("identity", *tags), ("gzip", *reversed(tags))):
        same = get(sample.base, FILE, accept_encoding=accepted, if_none_match=own)
        assert (same.status, same.body, same.headers["etag"], same.headers["vary"]) == (
            304,
            b"",
            own,
            "Accept-Encoding",
        )
        assert "content-encoding" not in same.headers
        assert get(sample.base, FILE, accept_encoding=accepted, if_none_match=other).status == 200


@pytest.mark.rule("I68", "I73")
@pytest.mark.parametrize("accepted", ["identity", "gzip"])
@pytest.mark.parametrize(
    "path",
    ["/", "/openapi.json", "/llms.txt", FILE, "/assets/icon.svg", "/health", "/ready", "/version", "/suggest?q=harb"],
)
def test_head_is_answered_as_get(sample: SampleService, path: str, accepted: str) -> None:
    whole, head = (ask(sample.base, method, path, headers={"accept-encoding": accepted}) for method in ("GET", "HEAD"))
    expected = _own(whole)
    if path == "/" and accepted == "gzip":
        del expected["content-length"]  # the page is made for each request, and compressed only where it is sent
    assert (head.status, head.body, _own(head)) == (200, b"", expected)


async def _sent(parts: list[bytes], kind: bytes) -> list[Message]:
    seen: list[Message] = []

    async def app(_: Scope, __: Receive, send: Send) -> None:
        headers = [(b"content-type", kind), (b"content-length", b"%d" % sum(map(len, parts)))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for index, part in enumerate(parts):
            before = len(seen)
            await send({"type": "http.response.body", "body": part, "more_body": index + 1 < len(parts)})
            assert len(seen) > before

    async def send(message: Message) -> None:
        seen.append(message)

    async def receive() -> Any:  # noqa: ANN401 - never asked
        raise AssertionError

    scope = {"type": "http", "method": "GET", "path": "/mcp", "headers": [(b"accept-encoding", b"gzip")]}
    await HttpMiddleware(app)(scope, receive, send)
    return seen


async def test_events_are_sent_one_by_one_as_they_come() -> None:
    parts = [b"data: 1\n\n", b"data: 2\n\n", b"x" * 5_000]
    start, *bodies = await _sent(parts, b"text/event-stream")
    assert [body["body"] for body in bodies] == parts
    headers = dict(start["headers"])
    assert (headers[b"content-type"], headers[b"content-length"]) == (b"text/event-stream", b"5018")
    assert {b"content-encoding", b"vary"} & set(headers) == set()


async def test_an_answer_in_parts_is_compressed_part_by_part() -> None:
    parts = [b"x" * 2_000, b"y" * 2_000]
    start, *bodies = await _sent(parts, b"application/json")
    assert gzip.decompress(b"".join(body["body"] for body in bodies)) == b"".join(parts)
    assert (len(bodies), b"content-length" in dict(start["headers"])) == (2, False)


HOST: Final = b" HTTP/1.1\r\nhost: shops.internal\r\n"
HEALTH: Final = b"GET /health" + HOST + b"\r\n"
LAST: Final = b"GET /health" + HOST + b"connection: close\r\n\r\n"
SUGGEST: Final = b"GET /suggest?q=boo" + HOST + b"\r\n"
_BODY: Final = b'{"query": "book"}'
FIND: Final = (
    b"POST /tool/find_shop"
    + HOST
    + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_BODY)
    + _BODY
)
CHUNKED: Final = (
    b"POST /tool/find_shop" + HOST + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n"
)
# The application asks for the rest of a body when the connection has been refused already.
EXPECTED: Final = CHUNKED.replace(b"content-type", b"expect: 100-continue\r\ncontent-type")
GARBAGE: Final = b"\x00\x01\r\n\r\n"
# Where a head begins in the middle of a read, it is counted from the next read on.
LONG: Final = b"GET /health HTTP/1.1\r\nx: " + b"x" * 132_000


def _answers(base: str, *parts: bytes) -> list[tuple[int, str]]:
    """Send the parts, one write each, and read to the end: each answer's status and a field by which it is known."""
    with connect(base) as connection:
        for part in parts:
            connection.sendall(part)
        answers = replies(b"".join(iter(lambda: connection.recv(65_536), b"")))
    if answers[-1].status == 400:
        assert answers[-1].headers["connection"] == "close"
    return [(reply.status, next(field for field in _KNOWN_BY if field in reply.json)) for reply in answers]


_KNOWN_BY: Final = ("code", "results", "shops", "status")
_HEALTH: Final = (200, "status")
_SUGGEST: Final = (200, "shops")
_FOUND: Final = (200, "results")
_REFUSED: Final = (400, "code")


@pytest.mark.rule("E1", "E5")
@pytest.mark.parametrize(
    ("whole", "answered"),
    [
        ([HEALTH], [_HEALTH]),
        ([SUGGEST], [_SUGGEST]),
        ([FIND, HEALTH, SUGGEST, FIND], [_FOUND, _HEALTH, _SUGGEST, _FOUND]),
        ([SUGGEST, FIND, SUGGEST], [_SUGGEST, _FOUND, _SUGGEST]),
    ],
)
@pytest.mark.parametrize(
    "broken",
    [GARBAGE, CHUNKED, EXPECTED, LONG],
    ids=["garbage", "a broken body", "a broken body that is asked for", "a head too long"],
)
@pytest.mark.parametrize("together", [True, False], ids=["in one write", "in several"])
def test_what_came_whole_before_it_is_answered_first(
    base: str, whole: list[bytes], answered: list[tuple[int, str]], broken: bytes, *, together: bool
) -> None:
    parts = [b"".join(whole) + broken] if together else [*whole, broken]
    assert _answers(base, *parts) == [*answered, _REFUSED]


@pytest.mark.rule("E1", "E5")
@pytest.mark.parametrize("broken", [GARBAGE, CHUNKED, LONG], ids=["garbage", "a broken body", "a head too long"])
def test_a_client_that_still_sends_can_read_why_it_is_refused(base: str, broken: bytes) -> None:
    with connect(base) as connection:
        connection.sendall(broken)
        received = connection.recv(1)
        connection.sendall(b"x" * 400_000)
        received += b"".join(iter(lambda: connection.recv(65_536), b""))
        assert [reply.status for reply in replies(received)] == [400]
        # The server waits no longer than a second for the client to close the connection.
        with pytest.raises(ConnectionError):
            _send_for(5.0, connection)


def _send_for(seconds: float, connection: socket) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection.sendall(b"x")
        time.sleep(0.05)


@pytest.mark.rule("E1", "E5")
def test_what_comes_behind_it_is_not_read(base: str) -> None:
    assert _answers(base, FIND + GARBAGE + HEALTH) == [_FOUND, _REFUSED]


@pytest.mark.rule("E1", "I69")
@pytest.mark.parametrize(
    "target", [b"/suggest?q=boo#k", b"/suggest?q=boo#", b"/suggest#?q=boo", b"/health#x", b"/#", b"/nowhere#"]
)
def test_a_fragment_in_the_request_target_is_refused_on_every_path(base: str, target: bytes) -> None:
    # Where it is answered, the connection goes on, and so does the test, to the last request.
    request = b"GET " + target + HOST + b"\r\n" + LAST
    assert _answers(base, request) == [_REFUSED]
    # Behind a request with the same head, which the server may not parse once more.
    assert _answers(base, SUGGEST, request) == [_SUGGEST, _REFUSED]
