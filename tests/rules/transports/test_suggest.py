"""GET /suggest over HTTP: its answer, its cache, how it reads the query string, and failures, handled once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from service.app import create_app
from service.limits.policy import QuotaClass
from service.search.failures import BackendUnavailable, GenerationGone
from service.search.protocol import SuggestQuery, SuggestResult
from service.settings.service import Settings
from tests.rules.operations.test_metrics import samples_of
from tests.support.reference.backend import ReferenceBackend
from tests.support.served import Reply, get, served
from tests.support.wire import invalid_input
from tests.support.worlds import reference_world

ALLOWED = "is not a parameter of /suggest; it takes q, limit, country"
COUNTRY = "must be an assigned ISO 3166-1 alpha-2 code, such as DE or GB, or XK"
LIMIT = "must be a whole number from 1 to 20"
ESCAPES = "must be UTF-8 with valid percent-escapes"
# On a connection that goes on a request takes the fast path; the last one of a connection goes to the application.
WAYS: Final[dict[str, dict[str, str]]] = {"fast path": {}, "application": {"connection": "close"}}
QUOTA: Final = 1_200


@pytest.mark.rule("I72", "M10", "R3", "R3.query_string", "E6")
@pytest.mark.parametrize(
    ("query_string", "echo"),
    [
        ("q=", ""),
        ("q", ""),
        ("q=+%20", "  "),
        ("q=%E2%80%8B", "\u200b"),
        ("q=%09%0A", "\t\n"),
        ("q=&limit=&country=", ""),
        ("q=&limit=8", ""),
        ("&q=&&_=17&_cb=1&_cb=2&utm_source=x&utm_=%ff", ""),
    ],
)
def test_a_blank_q_is_answered_with_the_most_popular_and_echoed_as_sent(
    base: str, query_string: str, echo: str
) -> None:
    reply = get(base, f"/suggest?{query_string}")
    assert (reply.status, reply.json["query"]) == (200, echo)
    assert [shop["id"] for shop in reply.json["shops"]] == ["shop_books", "shop_kitchen", "shop_garden"]


@pytest.mark.rule("R3.query_string", "R4", "M9", "M10", "E1", "E6", "I68", "I71", "C1.http")
@pytest.mark.parametrize(
    ("query_string", "field", "message"),
    [
        ("", "q", "is required; it may be empty"),
        ("limit=3", "q", "is required; it may be empty"),
        ("q=a&q=b", "q", "is given more than once"),
        ("q=a&country=DE&country=DE", "country", "is given more than once"),
        ("q=a&lang=de", "lang", ALLOWED),
        ("q=a&Q=b", "Q", ALLOWED),
        ("q=a&=b", "(a field)", ALLOWED),
        ("q=a&%ff=b", "(a field)", ALLOWED),
        ("q=a&%01=b", "(a field)", ALLOWED),
        ("q=a&" + "x" * 65 + "=b", "(a field)", ALLOWED),
        ("q=%ff", "q", ESCAPES),
        ("q=%ED%A0%80", "q", ESCAPES),
        ("q=100%", "q", ESCAPES),
        ("q=%zz", "q", ESCAPES),
        ("q=%00", "q", "holds a control character"),
        ("q=" + "a" * 257, "q", "may have at most 256 characters"),
        ("q=a&limit=0", "limit", LIMIT),
        ("q=a&limit=21", "limit", LIMIT),
        ("q=a&limit=-1", "limit", LIMIT),
        ("q=a&limit=8.0", "limit", LIMIT),
        ("q=a&limit=%D9%A3", "limit", LIMIT),
        ("q=a&limit=" + "9" * 5000, "limit", LIMIT),
        ("q=a&country=UK", "country", COUNTRY),
        ("q=a&country=%20DE", "country", COUNTRY),
    ],
)
def test_a_wrong_parameter_is_named_and_never_repeated(base: str, query_string: str, field: str, message: str) -> None:
    reply = get(base, f"/suggest?{query_string}")
    assert reply.summary == (400, "application/problem+json", invalid_input((field, message)))
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


@pytest.mark.rule("R5", "Q2")
@pytest.mark.parametrize("way", WAYS)
def test_an_invalid_query_costs_one_unit(tmp_path: Path, way: str) -> None:
    search = reference_world(tmp_path)
    with served(create_app(settings_of(tmp_path), search=search)) as base:
        reply = get(base, "/suggest?limit=0", **WAYS[way])
        assert (reply.status, remaining(reply)) == (400, QUOTA - 1)
        assert counted(samples(base), "invalid_input") == (1, 1)


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
