"""A connection on which something is not HTTP: what came whole before it is answered, then it is refused and closed."""

import time
from socket import socket
from typing import Final

import pytest

from tests.support.wire import connect, replies

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
