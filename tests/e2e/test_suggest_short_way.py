"""The short way of /suggest says what the application says, in the same order, counted and logged alike."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_from_bytes, urlsplit

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from starlette.routing import Route
from uvicorn.server import ServerState

from service.app import create_app
from service.limits.policy import QuotaClass
from service.overload import Gate
from service.rest.gated import Gated
from service.rest.sent_at_once import SentAtOnce
from service.server import HttpProtocol, server_config
from service.settings import Settings
from tests.e2e.served import get, served
from tests.worlds import SHOPS, embedded_world

# What differs from one answer to the next, whichever way it came.
_OWN: Final = {"date", "x-request-id", "ratelimit"}
_MANY: Final = QuotaClass(reads=1_000_000, suggest=1_000_000, reports=0)


class Counting:
    """The short way, with a count of what went by it."""

    def __init__(self, app: FastAPI) -> None:
        self._at_once = app.state.suggest_at_once
        self.answered = 0
        self.repeated = 0
        self.flush = self._at_once.flush
        self.send = self._at_once.send
        app.state.suggest_at_once = self

    def answer(self, *asked: Any) -> SentAtOnce | None:  # noqa: ANN401 - as it takes
        sent: SentAtOnce | None = self._at_once.answer(*asked)
        self.answered += sent is not None
        return sent

    def again(self, *asked: Any) -> SentAtOnce | None:  # noqa: ANN401 - as it takes
        sent: SentAtOnce | None = self._at_once.again(*asked)
        self.answered += sent is not None
        self.repeated += sent is not None
        return sent


@dataclass(frozen=True, slots=True)
class World:
    base: str
    short: Counting

    @property
    def netloc(self) -> str:
        return urlsplit(self.base).netloc


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedded_world(tmp_path_factory.mktemp("short-way"), SHOPS)


@pytest.fixture(scope="module", params=[0, 16], ids=["no cache", "cache"])
def world(request: pytest.FixtureRequest, index: Path) -> Iterator[World]:
    app = create_app(settings_of(index, suggest_cache_mb=request.param, quota_anonymous=_MANY))
    short = Counting(app)
    with served(app) as base:
        yield World(base, short)


def settings_of(index: Path, **given: Any) -> Settings:  # noqa: ANN401 - any setting
    return Settings(data_dir=index, reports_file=index.parent / "reports.sqlite", request_timeout=10.0, **given)


def told(world: World, target: str, headers: dict[str, str], *, short: bool) -> tuple[int, dict[str, str], bytes]:
    """An answer without what is its own; the long way is that of a connection's last request."""
    connection = HTTPConnection(world.netloc, timeout=10)
    try:
        connection.request("GET", target, headers=headers if short else {**headers, "connection": "close"})
        response: HTTPResponse = connection.getresponse()
        kept = {name.lower(): value for name, value in response.getheaders() if name.lower() not in _OWN}
        assert kept.pop("connection", None) == (None if short else "close")
        return response.status, kept, response.read()
    finally:
        connection.close()


_QUERY_STRINGS = st.one_of(
    st.text(max_size=12).map(lambda text: "q=" + quote_from_bytes(text.encode("utf-8", "surrogatepass"))),
    st.sampled_from(["q=b", "q=bo", "q=bok", "q=Fern", "q=kichen", "q=m%26", "q=", "q", "", "q=%ff", "q=a&q=b", "x=1"]),
    st.tuples(
        st.sampled_from(["boo", "K", "fern", "zz"]),
        st.sampled_from(["1", "8", "20", "0", "21", "x", ""]),
        st.sampled_from(["DE", "gb", "UK", ""]),
    ).map(lambda asked: f"q={asked[0]}&limit={asked[1]}&country={asked[2]}&_=7"),
)
_TAGS = st.sampled_from([None, "*", '"no"', 'W/"no", *', "its own"])


@pytest.mark.rule("I68", "I72", "C1", "C2", "C3")
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query_string=_QUERY_STRINGS, tags=_TAGS)
def test_both_ways_answer_alike(world: World, query_string: str, tags: str | None) -> None:
    target = f"/suggest?{query_string}"
    if tags == "its own":
        tags = told(world, target, {}, short=False)[1].get("etag")
    headers = {} if tags is None else {"if-none-match": tags}
    assert told(world, target, headers, short=True) == told(world, target, headers, short=False)


def test_a_key_press_goes_the_short_way_and_what_is_unusual_does_not(world: World) -> None:
    get(world.base, "/suggest?q=bo")
    plain: dict[str, dict[str, str]] = {
        "/suggest?q=bo": {"accept-encoding": "gzip", "cookie": "a=b", "connection": "keep-alive"},
        "/suggest?q=boo&limit=3": {"if-none-match": "*"},
    }
    unusual: dict[str, dict[str, str]] = {
        "/suggest?q=b": {"x-api-token": "whatever"},
        "/suggest?q=bo": {"connection": "close"},
        "/suggest?q=boo": {"expect": "100-continue"},
        "/suggest?q=fe": {"content-length": "0"},
        "/suggest?limit=3": {},
        "/suggest": {},
        "/version": {},
    }
    counts = []
    for asked in (plain, unusual):
        before = world.short.answered
        for target, headers in asked.items():
            get(world.base, target, **{name.replace("-", "_"): value for name, value in headers.items()})
        counts.append(world.short.answered - before)
    assert counts == [len(plain), 0]


def test_requests_that_are_sent_together_are_answered_in_their_order(world: World) -> None:
    get(world.base, "/suggest?q=a")
    targets = ["/suggest?q=a", "/suggest?q=b", "/version", "/suggest?q=c", "/suggest?q=%ff", "/suggest?q=d", "/health"]
    sent = b"".join(f"GET {target} HTTP/1.1\r\nHost: shops.internal\r\n\r\n".encode() for target in targets)
    with socket.create_connection(urlsplit(world.base).netloc.split(":"), timeout=10) as connection:  # type: ignore[arg-type]
        connection.sendall(sent[:20])
        time.sleep(0.05)
        connection.sendall(sent[20:])
        found = [_read(connection) for _ in targets]
    assert [body.get("query") for body in found] == ["a", "b", None, "c", None, "d", None]
    assert [body.get("code") for body in found] == [None, None, "version_unknown", None, "invalid_input", None, None]


def _read(connection: socket.socket) -> dict[str, Any]:
    response = HTTPResponse(_Unbuffered(connection))  # type: ignore[arg-type]
    response.begin()
    document: dict[str, Any] = json.loads(response.read())
    return document


class _Unbuffered:
    """A socket whose answers are read no further than they go."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def makefile(self, *_: Any) -> Any:  # noqa: ANN401 - as the library takes it
        return self._connection.makefile("rb", buffering=0)


@pytest.mark.rule("Q2")
def test_both_ways_count_in_the_same_quota(index: Path) -> None:
    app = create_app(settings_of(index, quota_anonymous=QuotaClass(reads=120, suggest=6, reports=0)))
    short = Counting(app)
    with served(app) as base:
        world = World(base, short)
        statuses = [told(world, f"/suggest?q=b{number}", {}, short=number % 2 == 1)[0] for number in range(8)]
        refused = get(base, "/suggest?q=b")
    assert statuses == [200] * 6 + [429] * 2
    assert short.answered == 3
    assert (refused.json["code"], refused.headers["ratelimit"].split(";")[1]) == ("quota_exceeded", "r=0")


@pytest.mark.rule("V2")
def test_both_ways_are_measured_alike(index: Path) -> None:
    app = create_app(settings_of(index))
    short = Counting(app)
    with served(app) as base:
        get(base, "/suggest?q=b", connection="close")
        for _ in range(4):
            get(base, "/suggest?q=b")
        written = get(base, "/metrics").body.decode()
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(written)
        for sample in family.samples
    }
    assert short.answered == 4
    route, outcome = ("route", "suggest"), ("outcome", "ok")
    assert samples["shopdir_request_duration_seconds_count", outcome, route] == 5
    assert samples["shopdir_quota_decisions_total", ("bucket", "suggest"), ("decision", "allowed")] == 5
    assert samples["shopdir_cache_lookups_total", ("cache", "suggest"), ("result", "hit")] == 4
    assert samples["shopdir_cache_lookups_total", ("cache", "suggest"), ("result", "miss")] == 1


def test_what_is_cached_is_not_told_once_the_process_is_on_its_way_out(index: Path) -> None:
    app = create_app(settings_of(index))
    short = Counting(app)
    with served(app) as base:
        get(base, "/suggest?q=b")
        get(base, "/suggest?q=b")
        before = short.answered
        app.state.draining.begin()
        last = get(base, "/suggest?q=b")
    assert (last.status, last.headers["connection"], short.answered - before) == (200, "close", 0)


@pytest.mark.rule("E1", "E5.request_id")
def test_both_ways_refuse_alike_what_is_too_much_and_give_what_is_kept(index: Path) -> None:
    app = create_app(settings_of(index))
    short = Counting(app)
    with served(app) as base:
        world = World(base, short)
        get(base, "/suggest?q=b")
        get(base, "/suggest?q=b")
        (long_way,) = [route for route in app.routes if isinstance(route, Route) and route.path == "/suggest"]
        # No place at all, on either way.
        assert isinstance(long_way.endpoint, Gated)
        short._at_once._gate = long_way.endpoint._gate = Gate(0)
        refused = [told(world, "/suggest?q=bo", {}, short=way) for way in (True, False)]
        kept = told(world, "/suggest?q=b", {}, short=True)
    assert refused[0] == refused[1]
    assert (refused[0][0], json.loads(refused[0][2])["code"], refused[0][1]["retry-after"]) == (503, "overloaded", "1")
    assert kept[0] == 200


def _connected(base: str) -> socket.socket:
    place = urlsplit(base)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=10)


def _asked(target: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {target} HTTP/1.1", "host: shops.internal", *headers, "", "")).encode()


_PRESSES: Final = ("/suggest?q=b", "/suggest?q=bo", "/suggest?q=boo&limit=3", "/suggest?q=zz", "/suggest?q=b")


@pytest.mark.rule("I68", "I72", "C1", "C2")
@pytest.mark.parametrize("cache_mb", [0, 64])
def test_a_head_that_comes_again_is_not_read_again_and_answered_as_ever(index: Path, cache_mb: int) -> None:
    app = create_app(settings_of(index, quota_anonymous=_MANY, suggest_cache_mb=cache_mb))
    short = Counting(app)
    with served(app) as base:
        world = World(base, short)
        expected = {target: told(world, target, {}, short=False) for target in _PRESSES}
        with _connected(base) as connection:
            for _ in range(3):
                for target in _PRESSES:
                    connection.sendall(_asked(target))
                    assert _whole(connection) == expected[target]
    # All but the first press of the connection.
    assert short.repeated == 3 * len(_PRESSES) - 1


@pytest.mark.parametrize(
    ("unlike", "status", "repeated"),
    [
        (_asked("/suggest?q=b"), 200, 1),
        (_asked("/suggest?q=b", "accept: */*"), 200, 0),
        (_asked("/suggest?q=b", "x-api-token: no"), 200, 0),
        (_asked("/suggest?q=b", "if-none-match: *"), 304, 0),
        (_asked("/suggest?q=b", "connection: close"), 200, 0),
        (_asked("/suggest?q=b").replace(b"HTTP/1.1", b"HTTP/1.0"), 200, 0),
        (_asked("/suggest?q=b").replace(b"GET", b"HEAD"), 200, 0),
        (_asked("/suggest?q=b b"), 400, 0),
        (_asked("/suggest?q=never-seen"), 200, 1),
        (_asked("/suggest?q='never'"), 200, 0),
        (_asked("/suggest?q=never").replace(b"never", b"n\xc3\xa9ver"), 400, 0),
        (_asked("/suggest?q=ne#ver"), 200, 0),
        (_asked("/suggest?q=%zz"), 400, 0),
        (_asked("/suggest?q=ne\tver"), 400, 0),
        (_asked("/suggest?q=b&q=b"), 400, 0),
        (_asked("/health"), 200, 0),
        (b"nonsense\r\n\r\n", 400, 0),
    ],
    ids=lambda case: case.decode("latin-1").splitlines()[0] if isinstance(case, bytes) else None,
)
def test_only_a_head_that_is_the_same_goes_unread(index: Path, unlike: bytes, status: int, repeated: int) -> None:
    app = create_app(settings_of(index, quota_anonymous=_MANY))
    short = Counting(app)
    with served(app) as base, _connected(base) as connection:
        get(base, "/suggest?q=b")
        connection.sendall(_asked("/suggest?q=b"))
        assert _whole(connection)[0] == 200
        connection.sendall(unlike)
        response = HTTPResponse(_Unbuffered(connection), method=unlike.split()[0].decode())  # type: ignore[arg-type]
        response.begin()
    assert (response.status, short.repeated) == (status, repeated)


def test_a_head_in_pieces_and_several_at_once_are_answered_in_order(index: Path) -> None:
    app = create_app(settings_of(index, quota_anonymous=_MANY))
    short = Counting(app)
    with served(app) as base, _connected(base) as connection:
        for target in _PRESSES:
            get(base, target)
        connection.sendall(_asked(_PRESSES[0]))
        assert _read(connection)["query"] == "b"
        whole = _asked(_PRESSES[1])
        connection.sendall(whole[:30])
        time.sleep(0.05)
        connection.sendall(whole[30:])
        assert _read(connection)["query"] == "bo"
        connection.sendall(b"".join((_asked(_PRESSES[0]), _asked("/health"), _asked(_PRESSES[2]), _asked(_PRESSES[3]))))
        told_of = [_read(connection) for _ in range(4)]
        assert [answer.get("query", "health") for answer in told_of] == ["b", "health", "boo", "zz"]
        # The piece that begins like a press and goes on as another request is no press.
        connection.sendall(_asked(_PRESSES[0])[:-2])
        time.sleep(0.05)
        connection.sendall(b"connection: close\r\n\r\n")
        assert _read(connection)["query"] == "b"
        assert connection.recv(1) == b""
    assert short.repeated == 0


def _whole(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """An answer without what is its own, as `told`."""
    response = HTTPResponse(_Unbuffered(connection))  # type: ignore[arg-type]
    response.begin()
    kept = {name.lower(): value for name, value in response.getheaders() if name.lower() not in _OWN}
    return response.status, kept, response.read()


@pytest.mark.rule("C1", "C2")
def test_a_new_generation_is_seen_on_a_connection_that_never_rests(tmp_path: Path) -> None:
    index = embedded_world(tmp_path, SHOPS)
    app = create_app(settings_of(index, quota_anonymous=_MANY))
    short = Counting(app)
    with served(app) as base, _connected(base) as connection:

        def generation() -> str:
            connection.sendall(_asked("/suggest?q=b"))
            return _whole(connection)[1]["x-generation"]

        get(base, "/suggest?q=b")
        first = generation()
        before = short.answered
        embedded_world(tmp_path, SHOPS)
        # As long as a second looked up once is believed, and one more.
        until = time.monotonic() + 3
        while (found := generation()) == first and time.monotonic() < until:
            time.sleep(0.01)
    assert found != first
    assert short.answered > before


@pytest.mark.rule("E1")
def test_a_press_is_answered_before_what_came_behind_it_is_refused(world: World) -> None:
    get(world.base, "/suggest?q=b")
    with _connected(world.base) as connection:
        connection.sendall(_asked("/suggest?q=b") + b"nonsense\r\n\r\n")
        assert _whole(connection)[0] == 200
        status, headers, body = _whole(connection)
        assert (status, headers["connection"], json.loads(body)["code"]) == (400, "close", "invalid_input")
        assert connection.recv(1) == b""


class _Wire(asyncio.Transport):
    """What a client would read, and whether the connection was closed behind it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 40_000), "sockname": ("127.0.0.1", 40_001)})
        self.out: list[bytes | None] = []

    def is_closing(self) -> bool:
        return None in self.out

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.out.append(bytes(data))

    def close(self) -> None:
        self.out.append(None)


@pytest.mark.rule("I68")
async def test_an_answer_that_waits_for_the_end_of_its_turn_is_sent_before_the_server_ends(index: Path) -> None:
    app = create_app(settings_of(index))
    async with app.router.lifespan_context(app):
        await app.state.suggest_at_once._search.snapshot()
        config = server_config(app, "127.0.0.1", 0)
        config.load()
        protocol = HttpProtocol(config=config, server_state=ServerState(), app_state={})
        wire = _Wire()
        protocol.connection_made(wire)
        protocol.data_received(_asked("/suggest?q=b"))
        assert wire.out == []
        protocol.shutdown()
    answer, closed = wire.out
    assert answer is not None
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert closed is None
