"""Connections to a node, over real sockets: what is reused, what is closed, and what is never taken for an answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, NotFoundError

from service.search.opensearch.connection import NodeConnection

TIMEOUT_S = 2.0
FINE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
ANSWERED = (200, {"content-type": "application/json"}, b"{}")

Talk = Callable[["Node", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Node:
    """What a node has seen.

    Attributes:
        port: that it listens on.
        connections: to it, so far.
        heads: the request lines and headers that came.
        ended: connections that the caller has closed.
        most_in_flight: the most requests that were in flight together.
    """

    port: int = 0
    connections: int = 0
    heads: list[bytes] = field(default_factory=list)
    ended: int = 0
    in_flight: int = 0
    most_in_flight: int = 0

    async def request(self, reader: asyncio.StreamReader) -> bool:
        """Read a request; False at the connection's end."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended += 1
            return False
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
        self.heads.append(head)
        return True


@asynccontextmanager
async def node(talk: Talk, most: int = 10) -> AsyncIterator[tuple[Node, NodeConnection]]:
    """A node that talks like this on each connection, and the client's connections to it."""
    seen = Node()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        try:
            await talk(seen, reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    seen.port = server.sockets[0].getsockname()[1]
    connection = NodeConnection(host="127.0.0.1", port=seen.port, timeout=TIMEOUT_S, pool_maxsize=most)
    try:
        yield seen, connection
    finally:
        await connection.close()
        server.close()


async def well(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await seen.request(reader):
        writer.write(FINE)


def says(answer: bytes, *, then_ends: bool) -> Talk:
    async def talk(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await seen.request(reader):
            writer.write(answer)
            await writer.drain()
            if then_ends:
                return

    return talk


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not holds():
            await asyncio.sleep(0.005)


@pytest.mark.rule("E3")
async def test_a_connection_is_reused_for_the_next_request() -> None:
    async with node(well) as (seen, connection):
        answers = [await connection.perform_request("POST", "/x/_search", {"a": "b c"}, b"{}") for _ in range(3)]
        assert answers == [ANSWERED] * 3
        assert seen.connections == 1
        assert {head.split(b"\r\n")[0] for head in seen.heads} == {b"POST /x/_search?a=b+c HTTP/1.1"}
        assert all(f"host: 127.0.0.1:{seen.port}".encode() in head for head in seen.heads)


@pytest.mark.rule("E3")
async def test_a_connection_that_the_node_closed_while_idle_costs_no_answer() -> None:
    async with node(says(FINE, then_ends=True)) as (seen, connection):
        answers = [await connection.perform_request("GET", "/") for _ in range(4)]
        assert answers == [ANSWERED] * 4
        assert seen.connections == 4


@pytest.mark.rule("E3")
async def test_a_connection_that_ends_at_the_next_request_costs_no_answer() -> None:
    async def once(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await seen.request(reader)
        writer.write(FINE)
        await seen.request(reader)

    async with node(once) as (seen, connection):
        answers = [await connection.perform_request("POST", "/", body=b"{}") for _ in range(2)]
        assert answers == [ANSWERED] * 2
        assert (seen.connections, len(seen.heads)) == (2, 3)


@pytest.mark.rule("E3")
async def test_a_request_that_is_given_up_ends_its_connection() -> None:
    async def silent(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await seen.request(reader):
            pass

    async with node(silent) as (seen, connection):
        asked = asyncio.create_task(connection.perform_request("POST", "/", body=b"{}"))
        await until(lambda: len(seen.heads) == 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await until(lambda: seen.ended == 1)


@pytest.mark.rule("E3")
async def test_a_node_that_does_not_answer_is_a_failure_in_time_and_its_connection_ends() -> None:
    async def silent(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await seen.request(reader):
            pass

    async with node(silent) as (seen, connection):
        with pytest.raises(ConnectionTimeout):
            await connection.perform_request("GET", "/", timeout=0.05)
        await until(lambda: seen.ended == 1)


@pytest.mark.rule("E3")
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"SSH-2.0-node\r\n",
    ],
    ids=["too short", "no last chunk", "half a header", "another protocol"],
)
async def test_a_part_of_an_answer_is_a_failure(answer: bytes) -> None:
    async with node(says(answer, then_ends=True)) as (seen, connection):
        with pytest.raises(NoConnection):
            await connection.perform_request("GET", "/")
        assert len(seen.heads) == 1


@pytest.mark.rule("E3")
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\n\r\n{}",
    ],
    ids=["in chunks", "after a remark", "of no stated length"],
)
async def test_a_whole_answer_counts_however_it_is_sent(answer: bytes) -> None:
    async with node(says(answer, then_ends=True)) as (_, connection):
        assert await connection.perform_request("GET", "/") == (200, {}, b"{}")


@pytest.mark.rule("E3")
async def test_unrequested_bytes_are_never_taken_for_the_next_answer() -> None:
    wrong = FINE.replace(b"{}", b"[]")
    async with node(says(FINE + wrong, then_ends=False)) as (seen, connection):
        answers = [await connection.perform_request("GET", "/") for _ in range(3)]
        assert answers == [ANSWERED] * 3
        assert seen.connections == 3


@pytest.mark.rule("E3")
async def test_no_more_requests_are_in_flight_than_there_may_be() -> None:
    async def counted(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await seen.request(reader):
            seen.in_flight += 1
            seen.most_in_flight = max(seen.most_in_flight, seen.in_flight)
            await asyncio.sleep(0.01)
            seen.in_flight -= 1
            writer.write(FINE)

    async with node(counted, most=2) as (seen, connection):
        answers = await asyncio.gather(*(connection.perform_request("GET", "/") for _ in range(8)))
        assert answers == [ANSWERED] * 8
        assert (seen.connections, seen.most_in_flight) == (2, 2)


async def test_a_failure_is_reported_with_its_status_and_the_connection_is_reused() -> None:
    refusal = b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    async with node(says(refusal, then_ends=False)) as (seen, connection):
        for _ in range(2):
            with pytest.raises(NotFoundError) as failure:
                await connection.perform_request("GET", "/x")
            assert failure.value.status_code == 404
        assert await connection.perform_request("GET", "/x", ignore=(404,)) == (
            404,
            {"content-type": "application/json"},
            b"{}",
        )
        assert seen.connections == 1


async def test_closing_ends_the_idle_connections_and_those_in_use() -> None:
    async def first_only(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await seen.request(reader):
            if len(seen.heads) != 3:
                writer.write(FINE)

    async with node(first_only) as (seen, connection):
        await asyncio.gather(connection.perform_request("GET", "/"), connection.perform_request("GET", "/"))
        asked = asyncio.create_task(connection.perform_request("GET", "/"))
        await until(lambda: len(seen.heads) == 3)
        await connection.close()
        with pytest.raises(NoConnection):
            await asked
        await until(lambda: seen.ended == 2)
