"""The bound of a request's head is the one that is documented, however the head arrives and whichever path answers."""

import pytest

from tests.support.problems import problem
from tests.support.wire import exchange

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


@pytest.mark.rule("E6", "E1")
def test_a_head_behind_another_request(base: str) -> None:
    first = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    statuses = [
        [reply.status for reply in exchange(base, first + head_of(size))] for size in (BOUND, BOUND + 100, 120_000)
    ]
    assert statuses[0] == [200, 200]
    assert [found[-1] for found in statuses[1:]] == [400, 400]


@pytest.mark.rule("E6")
def test_many_requests_in_one_piece_are_no_long_head(base: str) -> None:
    one = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-filler: " + b"a" * 900 + b"\r\n\r\n"
    replies = exchange(base, one * 150 + head_of(2_000))
    assert [reply.status for reply in replies] == [200] * 151
