"""The table of connections with its bounds, and the writer of what a tick has for each of them."""

import asyncio
import resource
from collections.abc import Iterator

import pytest

from service.runtime.caller import Proxies
from service.server.connections import (
    Connection,
    ConnectionBounds,
    ConnectionTable,
    TickTransport,
    TickWriter,
    bounds_within,
    raise_descriptor_limit,
)
from tests.rules.limits.clocks import HandClock

A, B = "192.0.2.1", "192.0.2.2"


class World:
    def __init__(self, most: int, per_address: int, *trusted: str) -> None:
        self.clock = HandClock()
        self.table = ConnectionTable(ConnectionBounds(most, per_address, Proxies(trusted)), self.clock)
        self.closed: list[str] = []

    def connect(self, name: str, peer: str | None = A) -> Connection | None:
        return self.table.add(peer, lambda: self.closed.append(name))

    def connected(self, name: str, peer: str | None = A) -> Connection:
        connection = self.connect(name, peer)
        assert connection is not None
        return connection


@pytest.mark.rule("E6")
def test_beyond_the_bound_of_an_address_its_own_connection_that_waited_longest_is_closed() -> None:
    world = World(10, 2)
    world.connected("other", B)
    first = world.connected("first")
    world.connected("second")
    world.table.mark_busy(first)
    world.table.mark_idle(first)
    world.connected("third")
    world.connected("fourth")
    assert world.closed == ["second", "first"]


@pytest.mark.rule("E6")
def test_beyond_the_bound_of_all_the_connection_that_waited_longest_is_closed_whose_ever_it_is() -> None:
    world = World(2, 2)
    world.connected("a", A)
    world.connected("b", B)
    world.connected("c", B)
    assert world.closed == ["a"]


@pytest.mark.rule("E6")
def test_a_connection_with_a_request_that_is_not_answered_is_never_closed_for_another_one() -> None:
    world = World(10, 2)
    busy = [world.connected(name) for name in ("first", "second")]
    for connection in busy:
        world.table.mark_busy(connection)
    refused = world.connect("third")
    world.table.mark_idle(busy[1])
    assert (refused, world.closed) == (None, [])
    world.connected("fourth")
    assert world.closed == ["second"]


def test_a_closed_connection_makes_room_once() -> None:
    world = World(2, 1)
    first = world.connected("a")
    world.table.remove(first)
    world.table.remove(first)
    world.table.mark_idle(first)
    world.connected("b")
    assert world.closed == []
    world.connected("c")
    assert world.closed == ["b"]


@pytest.mark.rule("Q2", "E6")
def test_addresses_of_one_64_and_an_ipv4_address_written_as_ipv6_are_one() -> None:
    world = World(10, 1)
    for peer in ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1", "::ffff:192.0.2.1", A):
        world.connected(peer, peer)
    assert world.closed == ["2001:db8::1", "::ffff:192.0.2.1"]


@pytest.mark.rule("Q3")
def test_trusted_proxies_and_unix_sockets_have_the_bound_of_all_only() -> None:
    world = World(4, 1, "192.0.2.0/24")
    for name in ("a", "b"):
        world.connected(name, A)
        world.connected(f"unix {name}", None)
    assert world.closed == []
    world.connected("c", A)
    assert world.closed == ["a"]


def test_the_log_says_once_in_ten_seconds_which_bound_is_reached(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10, 1)
    for _ in range(5):
        world.connected("a")
    world.clock.pass_seconds(10)
    world.connected("a")
    lines = [record.message for record in caplog.records]
    assert lines == ["the bound on connections per address is reached: idle connections are closed for new ones"] * 2


def test_only_so_many_refused_connections_stay_open() -> None:
    table = ConnectionTable(ConnectionBounds())
    assert [table.reserve_refusal() for _ in range(65)] == [True] * 64 + [False]
    table.release_refusal()
    assert table.reserve_refusal()


@pytest.mark.parametrize(
    ("descriptors", "bounds"),
    [
        (20_000, ConnectionBounds(10_000, 1_000)),
        (4_096, ConnectionBounds(3_840, 1_000)),
        (1_024, ConnectionBounds(768, 384)),
        (300, ConnectionBounds(150, 75)),
    ],
)
def test_descriptors_less_a_reserve_bound_the_connections(descriptors: int, bounds: ConnectionBounds) -> None:
    assert bounds_within(descriptors, ConnectionBounds()) == bounds


@pytest.fixture
def soft_limit() -> Iterator[tuple[int, int]]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield limits
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_the_soft_limit_of_descriptors_is_raised_to_the_hard_one(soft_limit: tuple[int, int]) -> None:
    _, hard = soft_limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    assert raise_descriptor_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 1_048_576)


class Wire(asyncio.Transport):
    def __init__(self, out: list[bytes]) -> None:
        super().__init__()
        self.out = out
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.out.append(bytes(data))

    def close(self) -> None:
        self.closed = True


class Queue:
    """A queue with what left it; a log line follows each flush."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.writer = TickWriter(lambda: self.out.append(b"logged"))

    def wire(self) -> Wire:
        return Wire(self.out)


async def test_responses_wait_for_the_end_of_the_tick_and_are_logged_when_all_are_written() -> None:
    queue = Queue()
    first, second = queue.wire(), queue.wire()
    queue.writer.write(first, b"one, ")
    queue.writer.write(second, b"two")
    queue.writer.write(first, b"three")
    seen: list[bytes] = []
    # A task that starts later runs later.
    asyncio.get_running_loop().call_soon(lambda: seen.extend(queue.out))
    assert queue.out == []
    await asyncio.sleep(0)
    assert queue.out == seen == [b"one, three", b"two", b"logged"]


async def test_a_part_of_a_longer_response_is_written_at_the_end_of_its_tick() -> None:
    queue = Queue()
    transport = TickTransport(queue.wire(), queue.writer)
    for part in (b"head", b"first part", b"second part"):
        transport.write(part)
        await asyncio.sleep(0)
    assert queue.out == [b"head", b"logged", b"first part", b"logged", b"second part", b"logged"]


async def test_nothing_is_written_to_a_connection_that_has_ended_and_the_rest_is_logged() -> None:
    queue = Queue()
    leaving, staying = queue.wire(), queue.wire()
    queue.writer.write(leaving, b"too late")
    queue.writer.write(staying, b"two")
    leaving.close()
    await asyncio.sleep(0)
    assert queue.out == [b"two", b"logged"]


async def test_a_connection_is_closed_behind_what_was_written() -> None:
    queue = Queue()
    wire = queue.wire()
    transport = TickTransport(wire, queue.writer)
    transport.write(b"last")
    transport.close()
    await asyncio.sleep(0)
    assert (queue.out, transport.is_closing(), wire.closed) == ([b"last", b"logged"], True, True)


async def test_no_more_than_64_writes_and_64_kibibytes_wait() -> None:
    queue = Queue()
    wire = queue.wire()
    for number in range(63):
        queue.writer.write(wire, b"%d " % number)
    assert queue.out == []
    queue.writer.write(wire, b"63")
    assert queue.out == [b" ".join(b"%d" % number for number in range(64)), b"logged"]
    queue.writer.write(wire, b"head")
    queue.writer.write(wire, b"-" * 100_000)
    assert [len(data) for data in queue.out[2:]] == [100_004, len(b"logged")]


async def test_a_connection_that_cannot_be_written_to_is_closed_and_costs_no_other_its_response() -> None:
    class Ended(Wire):
        def write(self, _data: bytes | bytearray | memoryview) -> None:
            raise RuntimeError("Cannot call write() after write_eof()")

        def abort(self) -> None:
            self.closed = True

    queue = Queue()
    ended = Ended(queue.out)
    queue.writer.write(ended, b"one")
    queue.writer.write(queue.wire(), b"two")
    queue.writer.flush()
    assert (queue.out, ended.closed) == ([b"two", b"logged"], True)
