"""The connections to a node, over real sockets, and the bounds with which each search is sent (E3)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import NotFoundError

from shop_directory.search.opensearch.engine import search_target, searches_body
from shop_directory.search.opensearch.nodes import NodeConnection

TIMEOUT_S = 2
FINE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
ANSWERED = (200, "application/json", "{}")

Talk = Callable[["Node", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Node:
    connections: int = 0
    requests: int = 0

    async def request(self, reader: asyncio.StreamReader) -> bool:
        """Read a request; False at the connection's end."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        await reader.readexactly(int(length or b"0"))
        self.requests += 1
        return True


@asynccontextmanager
async def node(talk: Talk) -> AsyncIterator[tuple[Node, NodeConnection]]:
    """A node that talks like this on each connection, and the client's connections to it."""
    seen = Node()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        try:
            await talk(seen, reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = NodeConnection(host="127.0.0.1", port=port, timeout=TIMEOUT_S)
    try:
        yield seen, connection
    finally:
        await connection.close()
        server.close()


def says(answer: bytes, *, then_ends: bool) -> Talk:
    async def talk(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await seen.request(reader):
            writer.write(answer)
            await writer.drain()
            if then_ends:
                return

    return talk


async def ask(
    connection: NodeConnection,
    method: str,
    target: str,
    **options: Any,  # noqa: ANN401 - passed on
) -> tuple[int, str | None, str]:
    status, headers, body = await connection.perform_request(method, target, **options)
    return status, headers.get("content-type"), body


@pytest.mark.rule("E3")
async def test_a_connection_that_ends_at_the_next_request_costs_no_answer() -> None:
    async def once(seen: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await seen.request(reader)
        writer.write(FINE)
        await seen.request(reader)

    async with node(once) as (seen, connection):
        answers = [await ask(connection, "GET", "/", body=b"{}") for _ in range(2)]
        assert answers == [ANSWERED] * 2
        assert (seen.connections, seen.requests) == (2, 3)


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
    async with node(says(answer, then_ends=True)) as (_, connection):
        with pytest.raises(NoConnection):
            await ask(connection, "GET", "/")


@pytest.mark.rule("E3")
async def test_what_nobody_asked_for_is_never_taken_for_the_next_answer() -> None:
    wrong = FINE.replace(b"{}", b"[]")
    async with node(says(FINE + wrong, then_ends=False)) as (seen, connection):
        answers = [await ask(connection, "GET", "/") for _ in range(3)]
        assert answers == [ANSWERED] * 3
        assert seen.connections == 3


async def test_no_query_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "opensearch")
    refusal = b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    for answer in (FINE, refusal):
        async with node(says(answer, then_ends=False)) as (_, connection):
            with suppress(NotFoundError):
                await ask(connection, "GET", "/x/_search", body=b'{"query": "lamp"}')
    assert [record.getMessage() for record in caplog.records if "lamp" in record.getMessage()] == []
    assert caplog.text.count("status:404") == 1


@pytest.mark.rule("E3")
def test_one_search_and_each_of_several_name_an_index_and_their_bounds() -> None:
    bounds = "allow_partial_search_results=false&cancel_after_time_interval=20ms"
    assert search_target("shops-1", 20) == f"/shops-1/_search?{bounds}"
    # At a point in time it names no index.
    assert search_target("", 20) == f"/_search?{bounds}"
    bounds = '"allow_partial_search_results":false,"cancel_after_time_interval":"20ms"'
    assert searches_body([("shops-1", {"size": 1}), ("facts-1", {"size": 2})], 20).decode() == (
        f'{{"index":"shops-1",{bounds}}}\n{{"size":1}}\n{{"index":"facts-1",{bounds}}}\n{{"size":2}}\n'
    )
