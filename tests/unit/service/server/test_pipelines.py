"""Pipelined requests wait as bytes, and a server that stops answers what has connected to it."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from service.app import create_app
from service.limits.policy import QuotaClass
from service.server.connections import _PIPELINED_IN_TICK
from service.server.http_server import HttpProtocol, ServerConfig
from service.server.process import _READ_BYTES, Server
from service.settings.service import Settings
from tests.support import served
from tests.support.wire import replies
from tests.support.worlds import SHOPS, embedded_world


@contextmanager
def listening(app: ASGIApp) -> Iterator[Server]:
    server = Server(ServerConfig(app, "127.0.0.1", 0), lambda _: None)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(server.run)
        try:
            while not server.started:
                assert not ended.done()
                time.sleep(0.01)
            yield server
        finally:
            server.should_exit = True
            ended.result(30)


_MANY: Final = QuotaClass(reads=1_000_000, suggest=1_000_000, reports=0)
_HOST: Final = b" HTTP/1.1\r\nhost: a\r\n"


class Echo:
    """An application that answers with the path and body of a request once it may, and notes which are in work."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.in_work: list[str] = []
        self.most = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.in_work.append(scope["path"])
        self.most = max(self.most, len(self.in_work))
        message = await receive()
        body = bytes(message["body"])
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        await self.may_answer.wait()
        answer = scope["path"].encode() + b" " + body
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]}
        )
        self.in_work.pop()
        await send({"type": "http.response.body", "body": answer})


class Wire(asyncio.Transport):
    """The transport of one client: what it got, and whether its bytes are read."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 40_000), "sockname": ("127.0.0.1", 40_001)})
        self.out = b""
        self.reading = True
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.out += data

    def write_eof(self) -> None:
        """Nothing more is written."""

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    @property
    def answers(self) -> list[bytes]:
        return [reply.body for reply in replies(self.out)]


class Connections:
    def __init__(self, app: ASGIApp) -> None:
        self._config = ServerConfig(app, "127.0.0.1", 0)
        self._config.load()

    def connect(self) -> tuple[HttpProtocol, Wire]:
        protocol = HttpProtocol(config=self._config, server_state=ServerState(), app_state={})
        wire = Wire()
        protocol.connection_made(wire)
        return protocol, wire


def unparsed(protocol: HttpProtocol) -> int:
    return len(protocol._received) - protocol._position


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0)


async def answered(wire: Wire, count: int) -> list[bytes]:
    await until(lambda: wire.out.count(b"HTTP/1.1 ") == count)
    # The body of the last one may be a write of its own.
    await asyncio.sleep(0)
    assert wire.reading
    return wire.answers


def get(path: str) -> bytes:
    return b"GET " + path.encode() + _HOST + b"\r\n"


@pytest.mark.rule("E6")
async def test_of_a_thousand_pipelined_requests_one_is_in_work_and_nothing_more_is_read() -> None:
    echo = Echo()
    protocol, wire = Connections(echo).connect()
    sent = [get(f"/{number}") for number in range(1_000)]
    protocol.data_received(b"".join(sent))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (echo.in_work, unparsed(protocol), wire.reading) == (["/0"], len(b"".join(sent[1:])), False)
    echo.may_answer.set()
    assert await answered(wire, 1_000) == [f"/{number} ".encode() for number in range(1_000)]
    assert (echo.most, unparsed(protocol)) == (1, 0)


async def test_a_client_that_sends_while_its_request_is_in_work_is_read_once_more_at_most() -> None:
    echo = Echo()
    protocol, wire = Connections(echo).connect()
    protocol.data_received(get("/0"))
    assert wire.reading
    protocol.data_received(get("/1"))
    await asyncio.sleep(0)
    assert (wire.reading, unparsed(protocol)) == (False, len(get("/1")))


async def test_taking_a_long_body_does_not_read_on_while_a_request_waits_behind_it() -> None:
    protocol, wire = Connections(Echo()).connect()
    protocol.data_received(b"POST /0" + _HOST + _declared(b"x" * 70_000) + get("/1"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (wire.reading, unparsed(protocol)) == (False, len(get("/1")))


@asynccontextmanager
async def suggesting(folder: Path) -> AsyncIterator[Connections]:
    index = embedded_world(folder, SHOPS)
    app = create_app(Settings(data_dir=index, reports_file=folder / "reports.sqlite", quota_anonymous=_MANY))
    async with app.router.lifespan_context(app):
        await app.state.suggest_fast_path._responder._live._search.snapshot()
        connections = Connections(app)
        # The first request waits for its quota, in the application.
        protocol, wire = connections.connect()
        protocol.data_received(get("/suggest?q=boo"))
        await until(lambda: bool(wire.out))
        yield connections


@pytest.mark.rule("E6")
async def test_a_tick_answers_so_many_pipelined_suggest_requests_of_all_connections(tmp_path: Path) -> None:
    greedy = 4
    queries = ["b", "bo", "boo", "h", "ha", "har", "m", "mo", "mos"] * 30
    sent = b"".join(get(f"/suggest?q={query}") for query in queries)
    async with suggesting(tmp_path) as connections:
        callers = [connections.connect() for _ in range(greedy)]
        for protocol, _ in callers:
            protocol.data_received(sent)
        modest, its_wire = connections.connect()
        modest.data_received(get("/suggest?q=boo"))
        # Of each connection one, and so many more.
        parsed = len(sent) * greedy - sum(unparsed(protocol) for protocol, _ in callers)
        assert parsed < (_PIPELINED_IN_TICK + greedy) * len(get("/suggest?q=boo"))
        assert [wire.reading for _, wire in callers] == [False] * greedy
        # The responses are written at the end of the tick.
        await asyncio.sleep(0)
        assert [min(1, len(wire.answers)) for wire in (its_wire, *(wire for _, wire in callers))] == [1] * (1 + greedy)
        for _, wire in callers:
            assert [json.loads(body)["query"] for body in await answered(wire, len(queries))] == queries


@pytest.mark.rule("O1")
async def test_a_response_that_waits_for_its_tick_is_written_before_a_shutdown_closes(tmp_path: Path) -> None:
    async with suggesting(tmp_path) as connections:
        protocol, wire = connections.connect()
        protocol.data_received(get("/suggest?q=boo"))
        assert wire.out == b""
        protocol.shutdown()
        assert [reply.status for reply in replies(bytes(wire.out))] == [200]


@pytest.mark.rule("E6")
async def test_for_a_client_that_does_not_read_one_request_waits(tmp_path: Path) -> None:
    async with suggesting(tmp_path) as connections:
        protocol, wire = connections.connect()
        protocol.pause_writing()
        protocol.data_received(get("/suggest?q=boo") * 100)
        for _ in range(100):
            await asyncio.sleep(0)
        assert (wire.out, wire.reading, unparsed(protocol)) == (b"", False, 99 * len(get("/suggest?q=boo")))
        protocol.resume_writing()
        assert len(await answered(wire, 100)) == 100
        protocol.connection_lost(None)


@pytest.mark.rule("E6")
@pytest.mark.parametrize("reads_on", [True, False])
async def test_a_client_that_reads_too_slowly_is_cut_after_its_bound(
    monkeypatch: pytest.MonkeyPatch, *, reads_on: bool
) -> None:
    monkeypatch.setattr(HttpProtocol, "send_seconds", 0.02)
    protocol, wire = Connections(Echo()).connect()
    protocol.pause_writing()
    if reads_on:
        protocol.resume_writing()
    await asyncio.sleep(0.1)
    assert wire.closed is not reads_on
    protocol.connection_lost(None)


_BODIES: Final = st.sampled_from([b"", b"x", b"\r\n\r\n", b"GET /smuggled" + _HOST + b"\r\n", b"0\r\n\r\n"])


def _declared(body: bytes) -> bytes:
    return b"content-length: %d\r\n\r\n" % len(body) + body


def _chunked(body: bytes) -> bytes:
    chunks = b"%x\r\n" % len(body) + body + b"\r\n" if body else b""
    return b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


@st.composite
def _pipelines(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Reads in which requests and blank lines follow one another, cut anywhere; and the answers."""
    requests, answers = b"", []
    for number in range(draw(st.integers(1, 6))):
        body = draw(_BODIES)
        encode = draw(st.sampled_from([_declared, _chunked]))
        requests += draw(st.sampled_from([b"", b"\r\n", b"\r\n\r\n"])) + b"POST /%d" % number + _HOST + encode(body)
        answers.append(b"/%d " % number + body)
    cuts = sorted({0, len(requests), *draw(st.lists(st.integers(0, len(requests)), max_size=8))})
    return [requests[start:end] for start, end in pairwise(cuts)], answers


@pytest.mark.rule("E6")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_pipelines())
async def test_however_a_pipeline_is_cut_each_request_is_answered_alone_and_in_order(
    pipeline: tuple[Sequence[bytes], list[bytes]],
) -> None:
    reads, answers = pipeline
    echo = Echo()
    echo.may_answer.set()
    protocol, wire = Connections(echo).connect()
    for read in reads:
        protocol.data_received(read)
        assert not protocol.pipeline
        await until(lambda: wire.reading)
    assert (await answered(wire, len(answers)), echo.most) == (answers, 1)
    protocol.connection_lost(None)


@pytest.mark.rule("E6")
@pytest.mark.parametrize("head", [b"content-length: 3\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"])
async def test_a_body_behind_an_upgrade_is_no_request(head: bytes) -> None:
    echo = Echo()
    echo.may_answer.set()
    protocol, wire = Connections(echo).connect()
    protocol.data_received(b"POST /" + _HOST + b"connection: upgrade\r\nupgrade: h2c\r\n" + head + get("/smuggled"))
    await asyncio.sleep(0)
    assert ([reply.status for reply in replies(wire.out)], echo.most) == ([400], 0)
    protocol.connection_lost(None)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    received = HttpProtocol.data_received

    def note(self: HttpProtocol, data: bytes) -> None:
        sizes.append(len(data))
        received(self, data)

    monkeypatch.setattr(HttpProtocol, "data_received", note)
    return sizes


@pytest.mark.rule("E6")
def test_a_read_is_at_most_64_kib(reads: list[int]) -> None:
    async def answer(scope: Scope, _: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await asyncio.sleep(0.05)
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

    with listening(answer) as server, socket.create_connection(server.servers[0].sockets[0].getsockname()) as caller:
        caller.settimeout(0.1)
        with pytest.raises(TimeoutError):
            caller.sendall(get("/") * 1_000_000)
        served.until(lambda: max(reads, default=0), lambda most: most > 1_000, 10.0)
    assert max(reads) <= _READ_BYTES


_GET: Final = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


class Stopping:
    """An application that, in its first request, lets others connect and stops the server, all in one tick.

    `callers` are the connections that the server has not accepted then.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.server: Server | None = None
        self.callers: list[socket.socket] = []

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        assert self.server is not None
        if not self.callers:
            address = self.server.servers[0].sockets[0].getsockname()
            self.callers = [socket.create_connection(address, timeout=5) for _ in range(self._count)]
            for caller in self.callers[1:]:
                caller.sendall(_GET)
            self.server.should_exit = True
            # The timer by which the server looks for this is due before the loop polls the listener again.
            time.sleep(0.3)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


@pytest.mark.rule("O1")
def test_connections_that_wait_to_be_accepted_are_answered_before_the_server_ends() -> None:
    app = Stopping(3)
    with listening(app) as server:
        app.server = server
        with socket.create_connection(server.servers[0].sockets[0].getsockname(), timeout=5) as first:
            first.sendall(_GET)
            assert first.recv(65_536).startswith(b"HTTP/1.1 200 ")
        late, *others = app.callers
        assert [_statuses(caller) for caller in others] == [[200]] * 2
        # The listener is closed by now.
        late.sendall(_GET)
        assert _statuses(late) == [200]


def _statuses(caller: socket.socket) -> list[int]:
    with caller:
        return [reply.status for reply in replies(b"".join(iter(lambda: caller.recv(65_536), b"")))]
