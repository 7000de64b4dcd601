"""What the service's client does about a node that is gone or hangs, over plain sockets: no engine is needed."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Final

import pytest
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, TransportError

from service.search.opensearch.nodes import connect
from tests.support.loopback import listening
from tests.support.real.process import free_ports

TIMEOUT_S: Final = 0.5


@contextmanager
def node(status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A server that gives everybody one answer; yields its URL and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({"status": status}).encode())

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}", asked


@pytest.fixture
def gone() -> str:
    (port,) = free_ports(1)
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def hanging() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.rule("E3")
async def test_a_node_that_is_gone_costs_no_answer(gone: str) -> None:
    with node() as (url, asked):
        client = connect([gone, url], TIMEOUT_S)
        for _ in range(4):
            assert await client.info() == {"status": 200}
        assert asked == ["/"] * 4
        await client.close()


@pytest.mark.rule("E3")
async def test_nodes_that_are_all_gone_are_an_immediate_failure(gone: str) -> None:
    client = connect([gone, gone], TIMEOUT_S)
    started = time.monotonic()
    with pytest.raises(NoConnection):
        await client.info()
    assert time.monotonic() - started < TIMEOUT_S
    await client.close()


@pytest.mark.rule("E3")
async def test_a_node_that_hangs_costs_one_answer_in_time_and_is_left_out_then(hanging: str) -> None:
    with node() as (url, asked):
        client = connect([hanging, url], TIMEOUT_S)
        outcomes = []
        for _ in range(6):
            started = time.monotonic()
            try:
                outcomes.append((await client.info())["status"])
            except ConnectionTimeout:
                outcomes.append("no answer")
                assert time.monotonic() - started < 4 * TIMEOUT_S
        assert sorted(map(str, outcomes)) == ["200"] * 5 + ["no answer"]
        assert len(asked) == 5
        await client.close()


@pytest.mark.rule("E3")
async def test_a_node_that_has_failed_many_times_is_left_out_no_longer_than_one_that_failed_once(gone: str) -> None:
    client = connect([gone, gone], TIMEOUT_S)
    with pytest.raises(NoConnection):
        await client.info()
    pool = client.transport.connection_pool
    until = []
    for _ in range(8):
        pool.mark_dead(pool.resurrect(force=True), now=1_000.0)
        until.append(pool.dead.queue[0][0])
    assert set(until) == {1_005.0}
    await client.close()


@pytest.mark.rule("E3")
async def test_an_answer_is_an_answer_however_bad_and_no_other_node_is_asked() -> None:
    with node(503) as (bad, first), node(503) as (other, second):
        client = connect([bad, other], TIMEOUT_S)
        with pytest.raises(TransportError) as failure:
            await client.info()
        assert failure.value.status_code == 503
        assert first + second == ["/"]
        await client.close()


@pytest.mark.rule("E3")
async def test_a_client_that_asked_nothing_can_be_closed(gone: str) -> None:
    for urls in ([gone], [gone, gone]):
        client = connect(urls, TIMEOUT_S)
        await client.close()
        with pytest.raises(NoConnection):
            await client.info()
        await client.close()
