"""GET /suggest over HTTP: its answer, its cache, its failures; and the fast path, which answers alike."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_from_bytes, urlsplit

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from service.app import create_app
from service.http.gate import BoundedEndpoint, Gate
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from shop_directory.search import planned_backend
from shop_directory.search.failures import BackendUnavailable, GenerationGone
from shop_directory.typeahead.suggestions import SuggestQuery, SuggestResult
from tests.rules.operations.test_metrics import samples_of
from tests.support.reference.backend import ReferenceBackend
from tests.support.rounds import rounds
from tests.support.served import Reply, get, served, until
from tests.support.wire import connect, invalid_input, problem
from tests.support.worlds import SHOPS, embedded_world, reference_world

ALLOWED = "is not a parameter of /suggest; it takes q, limit, country"
COUNTRY = "must be an assigned ISO 3166-1 alpha-2 code, such as DE or GB, or XK"
LIMIT = "must be a whole number from 1 to 20"
ESCAPES = "must be UTF-8 with valid percent-escapes"
# On a connection that goes on a request takes the fast path; the last one of a connection goes to the application.
WAYS: Final[dict[str, dict[str, str]]] = {"fast path": {}, "application": {"connection": "close"}}
QUOTA: Final = 1_200


@pytest.mark.rule("I72", "M10", "R3", "R3.query_string", "E6")
@pytest.mark.parametrize(
    ("echo", "query_strings"),
    [
        ("", ("q=", "q", "q=&limit=&country=", "q=&limit=8", "&q=&&_=17&_cb=1&_cb=2&utm_source=x&utm_=%ff")),
        ("  ", ("q=+%20",)),
        ("\u200b", ("q=%E2%80%8B",)),
        ("\t\n", ("q=%09%0A",)),
    ],
)
def test_a_blank_q_is_answered_with_the_most_popular_and_echoed_as_sent(
    base: str, echo: str, query_strings: tuple[str, ...]
) -> None:
    for query_string in query_strings:
        reply = get(base, f"/suggest?{query_string}")
        assert (reply.status, reply.json["query"]) == (200, echo), query_string
        assert [shop["id"] for shop in reply.json["shops"]] == ["shop_books", "shop_kitchen", "shop_garden"]


@pytest.mark.rule("R3.query_string", "R4", "M9", "M10", "E1", "E6", "I68", "I71", "C1.http")
@pytest.mark.parametrize(
    ("field", "message", "query_strings"),
    [
        ("q", "is required; it may be empty", ("", "limit=3")),
        ("q", "is given more than once", ("q=a&q=b",)),
        ("country", "is given more than once", ("q=a&country=DE&country=DE",)),
        ("lang", ALLOWED, ("q=a&lang=de",)),
        ("Q", ALLOWED, ("q=a&Q=b",)),
        ("(a field)", ALLOWED, ("q=a&=b", "q=a&%ff=b", "q=a&%01=b", "q=a&" + "x" * 65 + "=b")),
        ("q", ESCAPES, ("q=%ff", "q=%ED%A0%80", "q=100%", "q=%zz")),
        ("q", "holds a control character", ("q=%00",)),
        ("q", "may have at most 256 characters", ("q=" + "a" * 257,)),
        ("limit", LIMIT, tuple(f"q=a&limit={wrong}" for wrong in ("0", "21", "-1", "8.0", "%D9%A3", "9" * 5000))),
        ("country", COUNTRY, ("q=a&country=UK", "q=a&country=%20DE")),
    ],
)
def test_a_wrong_parameter_is_named_and_never_repeated(
    base: str, field: str, message: str, query_strings: tuple[str, ...]
) -> None:
    for query_string in query_strings:
        reply = get(base, f"/suggest?{query_string}")
        assert reply.summary == (400, "application/problem+json", invalid_input((field, message))), query_string
        assert (reply.headers["cache-control"], "etag" in reply.headers) == ("no-store", False)


@pytest.mark.rule("C1", "C1.http")
def test_a_caller_who_has_the_answer_gets_304(base: str) -> None:
    first = get(base, "/suggest?q=harb")
    tag = first.headers["etag"]
    assert (tag[0], tag[-1], len(tag)) == ('"', '"', 34)
    for known in (tag, f'"other", W/{tag}', "*"):
        again = get(base, "/suggest?q=harb", if_none_match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == "public, max-age=3"
        assert again.headers["x-generation"] == first.headers["x-generation"]
    assert get(base, "/suggest?q=harb&limit=8&_=1", if_none_match=tag).status == 304
    for other in ("q=Harb", "q=harb+", "q=harb&limit=7", "q=harb&country=DE"):
        assert get(base, f"/suggest?{other}", if_none_match=tag).status == 200


class Failing(ReferenceBackend):
    """The four-shop world, whose searches fail until its generation is looked up again."""

    def __init__(self, world: ReferenceBackend, error: Exception) -> None:
        super().__init__(world.stamp, {})
        self._world = world
        self._error = error
        self.searches = 0

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        del query
        self.searches += 1
        raise self._error

    async def refresh(self) -> ReferenceBackend:
        return self._world


def remaining(reply: Reply) -> int:
    return int(reply.headers["ratelimit"].split(";")[1].removeprefix("r="))


def samples(base: str) -> Callable[..., float]:
    """The value of a metric, by its name and labels; 0 where there is none."""
    found = samples_of(get(base, "/metrics"))
    return lambda name, **labels: found.get((name, tuple(sorted(labels.items()))), 0.0)


def counted(value: Callable[..., float], outcome: str) -> tuple[float, float]:
    """How many calls were logged with an outcome, and how many units of quota were taken."""
    calls = value("shopdir_request_duration_seconds_count", route="suggest", outcome=outcome)
    return calls, value("shopdir_quota_decisions_total", bucket="suggest", decision="allowed")


@pytest.mark.rule("E3", "Q2", "E5")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("error", "status", "outcome"),
    [
        (BackendUnavailable("away"), 503, "backend_unavailable"),
        (RuntimeError("a fault"), 500, "internal_error"),
        (GenerationGone("removed"), 200, "ok"),
    ],
    ids=["unavailable", "fault", "generation gone"],
)
def test_a_search_that_fails_is_one_search_and_one_unit(
    tmp_path: Path, error: Exception, status: int, outcome: str, way: str
) -> None:
    backend = Failing(reference_world(tmp_path), error)
    with served(create_app(settings_of(tmp_path), search=backend)) as base:
        reply = get(base, "/suggest?q=b", **WAYS[way])
        assert (reply.status, backend.searches) == (status, 1)
        assert counted(samples(base), outcome) == (1, 1)
        # An unforeseen fault says nothing of quotas, on both ways.
        assert ("ratelimit" in reply.headers) == (status != 500)
        if status != 500:
            assert remaining(reply) == QUOTA - 1


@pytest.mark.rule("C1")
@pytest.mark.parametrize("way", WAYS)
def test_a_response_that_the_caller_has_is_not_searched_for(tmp_path: Path, way: str) -> None:
    backend = Failing(reference_world(tmp_path), GenerationGone("removed"))
    with served(create_app(settings_of(tmp_path, suggest_cache_mb=0), search=backend)) as base:
        tag = get(base, "/suggest?q=b").headers["etag"]
        for known in (tag, "*"):
            again = get(base, "/suggest?q=b", if_none_match=known, **WAYS[way])
            assert (again.status, again.headers["etag"], backend.searches) == (304, tag, 1)


def settings_of(folder: Path, **given: Any) -> Settings:  # noqa: ANN401 - any setting
    quota = QuotaClass(reads=120, suggest=QUOTA, reports=0)
    return Settings(reports_file=folder / "reports.sqlite", quota_anonymous=quota, request_timeout=10.0, **given)


# What differs from one response to the next, whichever path it took.
_OWN: Final = {"date", "x-request-id", "ratelimit"}
_MANY: Final = QuotaClass(reads=1_000_000, suggest=1_000_000, reports=0)


class CountingFastPath:
    def __init__(self, app: FastAPI) -> None:
        self.inner = app.state.suggest_fast_path
        self.answered = 0
        self.log_responses = self.inner.log_responses
        app.state.suggest_fast_path = self

    def respond(self, *request: Any) -> bytes | None:  # noqa: ANN401 - as it takes
        response: bytes | None = self.inner.respond(*request)
        self.answered += response is not None
        return response


@dataclass(frozen=True, slots=True)
class World:
    base: str
    fast_path: CountingFastPath

    @property
    def netloc(self) -> str:
        return urlsplit(self.base).netloc


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedded_world(tmp_path_factory.mktemp("fast-path"), SHOPS)


@pytest.fixture(scope="module", params=[0, 16], ids=["no cache", "cache"])
def world(request: pytest.FixtureRequest, index: Path) -> Iterator[World]:
    app = create_app(fast_path_settings(index, suggest_cache_mb=request.param, quota_anonymous=_MANY))
    fast_path = CountingFastPath(app)
    with served(app) as base:
        yield World(base, fast_path)


@pytest.fixture
def lasting_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stamp is read once: the fast path leaves a request that comes a second later to the application."""
    monkeypatch.setattr(planned_backend, "FRESH_SECONDS", 600.0)


def fast_path_settings(index: Path, **given: Any) -> Settings:  # noqa: ANN401 - any setting
    return Settings(data_dir=index, reports_file=index.parent / "reports.sqlite", request_timeout=10.0, **given)


def response_to(world: World, target: str, headers: dict[str, str], *, fast: bool) -> tuple[int, dict[str, str], bytes]:
    """A response without what is its own; the last request of a connection goes to the application."""
    connection = HTTPConnection(world.netloc, timeout=10)
    try:
        connection.request("GET", target, headers=headers if fast else {**headers, "connection": "close"})
        response: HTTPResponse = connection.getresponse()
        headers_of = {name.lower(): value for name, value in response.getheaders() if name.lower() not in _OWN}
        assert headers_of.pop("connection", None) == (None if fast else "close")
        return response.status, headers_of, response.read()
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
@settings(max_examples=rounds(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query_string=_QUERY_STRINGS, tags=_TAGS)
def test_the_fast_path_and_the_application_answer_alike(world: World, query_string: str, tags: str | None) -> None:
    target = f"/suggest?{query_string}"
    if tags == "its own":
        tags = response_to(world, target, {}, fast=False)[1].get("etag")
    headers = {} if tags is None else {"if-none-match": tags}
    assert response_to(world, target, headers, fast=True) == response_to(world, target, headers, fast=False)


def _read(connection: socket.socket) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_whole(connection)[2])
    return document


class _Unbuffered:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def makefile(self, *_: Any) -> Any:  # noqa: ANN401 - as the library takes it
        return self._connection.makefile("rb", buffering=0)


@pytest.mark.usefixtures("lasting_stamp")
@pytest.mark.rule("Q2", "R5")
def test_the_fast_path_and_the_application_count_in_the_same_quota(index: Path) -> None:
    app = create_app(fast_path_settings(index, quota_anonymous=QuotaClass(reads=120, suggest=6, reports=0)))
    fast_path = CountingFastPath(app)
    with served(app) as base:
        world = World(base, fast_path)
        statuses = [response_to(world, f"/suggest?q=b{number}", {}, fast=number % 2 == 1)[0] for number in range(8)]
        refused = get(base, "/suggest?q=b")
        # The quota comes before the query.
        invalid = [get(base, "/suggest?limit=0", **headers).status for headers in ({}, {"connection": "close"})]
    assert (statuses, invalid) == ([200] * 6 + [429] * 2, [429, 429])
    # The refusals too: they need no waiting.
    assert fast_path.answered == 6
    assert (refused.json["code"], refused.headers["ratelimit"].split(";")[1]) == ("quota_exceeded", "r=0")


@pytest.mark.usefixtures("lasting_stamp")
@pytest.mark.rule("V2")
def test_the_fast_path_and_the_application_are_measured_alike(index: Path) -> None:
    app = create_app(fast_path_settings(index))
    fast_path = CountingFastPath(app)
    with served(app) as base:
        get(base, "/suggest?q=b", connection="close")
        for _ in range(4):
            get(base, "/suggest?q=b")
        samples = samples_of(get(base, "/metrics"))
    assert fast_path.answered == 4
    route, outcome = ("route", "suggest"), ("outcome", "ok")
    assert samples["shopdir_request_duration_seconds_count", (outcome, route)] == 5
    assert samples["shopdir_quota_decisions_total", (("bucket", "suggest"), ("decision", "allowed"))] == 5
    assert samples["shopdir_cache_lookups_total", (("cache", "suggest"), ("result", "hit"))] == 4
    assert samples["shopdir_cache_lookups_total", (("cache", "suggest"), ("result", "miss"))] == 1


def test_the_fast_path_ends_when_the_process_is_draining(index: Path) -> None:
    app = create_app(fast_path_settings(index))
    fast_path = CountingFastPath(app)
    with served(app) as base:
        get(base, "/suggest?q=b")
        get(base, "/suggest?q=b")
        before = fast_path.answered
        app.state.draining.set()
        last = get(base, "/suggest?q=b")
    assert (last.status, last.headers["connection"], fast_path.answered - before) == (200, "close", 0)


@pytest.mark.rule("E1", "E5.request_id")
def test_a_full_gate_refuses_alike_on_both_paths_and_lets_cached_responses_through(index: Path) -> None:
    # A third unit is left for the cached response: what is refused is not counted.
    app = create_app(fast_path_settings(index, quota_anonymous=QuotaClass(reads=120, suggest=3, reports=0)))
    fast_path = CountingFastPath(app)
    with served(app) as base:
        world = World(base, fast_path)
        get(base, "/suggest?q=b")
        get(base, "/suggest?q=b")
        (route,) = [route for route in app.routes if isinstance(route, Route) and route.path == "/suggest"]
        # No free slot at all, on either path.
        assert isinstance(route.endpoint, BoundedEndpoint)
        fast_path.inner._gate = route.endpoint._gate = Gate(0)
        refused = [response_to(world, "/suggest?q=bo", {}, fast=fast) for fast in (True, False)]
        cached = response_to(world, "/suggest?q=b", {}, fast=True)
    assert refused[0] == refused[1]
    detail = "The service is at capacity. The request was not processed; retry in 1 second."
    status, headers, body = refused[0]
    assert (status, headers["retry-after"], json.loads(body)) == (503, "1", problem(503, "overloaded", detail))
    assert cached[0] == 200


def _asked(target: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {target} HTTP/1.1", "host: shops.internal", *headers, "", "")).encode()


@pytest.mark.usefixtures("lasting_stamp")
@pytest.mark.parametrize(
    ("request_bytes", "status", "answered"),
    [
        (_asked("/suggest?q=b"), 200, 1),
        (_asked("/suggest?q=b", "accept: */*"), 200, 1),
        (_asked("/suggest?q=b", "accept-encoding: gzip", "cookie: a=b", "connection: keep-alive"), 200, 1),
        (_asked("/suggest?q=b", "if-none-match: *"), 304, 1),
        (_asked("/suggest?limit=3"), 400, 1),
        (_asked("/suggest?q='never'"), 200, 1),
        (_asked("/suggest?q=%zz"), 400, 1),
        (_asked("/suggest?q=b&q=b"), 400, 1),
        (_asked("/suggest?q=b", "x-api-token: no"), 200, 0),
        (_asked("/suggest?q=b", "connection: close"), 200, 0),
        (_asked("/suggest?q=b", "expect: 100-continue"), 200, 0),
        (_asked("/suggest?q=b", "content-length: 0"), 200, 0),
        (_asked("/suggest"), 400, 0),
        (_asked("/suggest?q=b").replace(b"HTTP/1.1", b"HTTP/1.0"), 200, 0),
        (_asked("/suggest?q=b").replace(b"GET", b"HEAD"), 200, 0),
        (_asked("/suggest?q=ne#ver"), 400, 0),
        (_asked("/suggest?q=b b"), 400, 0),
        (_asked("/suggest?q=never").replace(b"never", b"n\xc3\xa9ver"), 400, 0),
        (_asked("/suggest?q=ne\tver"), 400, 0),
        (_asked("/health"), 200, 0),
        (b"nonsense\r\n\r\n", 400, 0),
    ],
    ids=lambda case: case.decode("latin-1").splitlines()[0] if isinstance(case, bytes) else None,
)
def test_each_kind_of_request_gets_its_status_behind_a_plain_one(
    world: World, request_bytes: bytes, status: int, answered: int
) -> None:
    get(world.base, "/suggest?q=b")
    with connect(world.base) as connection:
        connection.sendall(_asked("/suggest?q=b"))
        assert _whole(connection)[0] == 200
        before = world.fast_path.answered
        connection.sendall(request_bytes)
        found, *_ = _whole(connection, request_bytes.split()[0].decode())
    assert (found, world.fast_path.answered - before) == (status, answered)


def test_a_request_in_pieces_is_answered_as_a_whole_one(world: World) -> None:
    get(world.base, "/suggest?q=a")
    with connect(world.base) as connection:
        connection.sendall(_asked("/suggest?q=b"))
        assert _read(connection)["query"] == "b"
        whole = _asked("/suggest?q=bo")
        connection.sendall(whole[:30])
        time.sleep(0.05)
        connection.sendall(whole[30:])
        assert _read(connection)["query"] == "bo"
        # A piece that begins like a plain request, and goes on as another one.
        connection.sendall(_asked("/suggest?q=b")[:-2])
        time.sleep(0.05)
        connection.sendall(b"connection: close\r\n\r\n")
        assert _read(connection)["query"] == "b"
        assert connection.recv(1) == b""


def _whole(connection: socket.socket, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    response = HTTPResponse(_Unbuffered(connection), method=method)  # type: ignore[arg-type]
    response.begin()
    headers_of = {name.lower(): value for name, value in response.getheaders() if name.lower() not in _OWN}
    return response.status, headers_of, response.read()


@pytest.mark.rule("C1", "C2")
def test_a_new_generation_is_seen_on_a_connection_that_never_rests(tmp_path: Path) -> None:
    index = embedded_world(tmp_path, SHOPS)
    app = create_app(fast_path_settings(index, quota_anonymous=_MANY))
    fast_path = CountingFastPath(app)
    with served(app) as base, connect(base) as connection:

        def generation() -> str:
            connection.sendall(_asked("/suggest?q=b"))
            return _whole(connection)[1]["x-generation"]

        get(base, "/suggest?q=b")
        first = generation()
        before = fast_path.answered
        embedded_world(tmp_path, SHOPS)
        # A stamp counts as live for a second; and two more.
        until(generation, lambda found: found != first, 3.0)
    assert fast_path.answered > before
