"""What fails is searched once, parsed once, counted once and logged once, wherever a suggest request is answered."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import service.suggest.responder
from service.app import create_app
from service.limits.policy import QuotaClass
from service.search.failures import BackendUnavailable, GenerationGone
from service.search.protocol import SuggestQuery, SuggestResult
from service.settings.service import Settings
from service.suggest.wire import ParsedQuery, parse
from tests.rules.operations.expositions import samples_of
from tests.support.reference.backend import ReferenceBackend
from tests.support.served import Reply, get, served
from tests.support.worlds import SHOPS, embedded_world, reference_world

# On a connection that goes on a request takes the fast path; the last one of a connection goes to the application.
WAYS: Final[dict[str, dict[str, str]]] = {"fast path": {}, "application": {"connection": "close"}}
QUOTA: Final = 1_200


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


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The query strings that are parsed, each time that one is."""
    strings: list[bytes] = []

    def noting(raw: bytes) -> ParsedQuery:
        strings.append(raw)
        return parse(raw)

    monkeypatch.setattr(service.suggest.responder, "parse", noting)
    return strings


def remaining(reply: Reply) -> int:
    """The units of the quota that are left, as the response says."""
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
    tmp_path: Path, parsed: list[bytes], error: Exception, status: int, outcome: str, way: str
) -> None:
    backend = Failing(reference_world(tmp_path), error)
    with served(create_app(settings_of(tmp_path), search=backend)) as base:
        reply = get(base, "/suggest?q=b", **WAYS[way])
        assert (reply.status, backend.searches, parsed) == (status, 1, [b"q=b"])
        assert counted(samples(base), outcome) == (1, 1)
        # An unforeseen fault says nothing of quotas, on both ways.
        assert ("ratelimit" in reply.headers) == (status != 500)
        if status != 500:
            assert remaining(reply) == QUOTA - 1


@pytest.mark.rule("R5", "Q2")
@pytest.mark.parametrize("way", WAYS)
def test_an_invalid_query_is_parsed_once_and_costs_one_unit(tmp_path: Path, parsed: list[bytes], way: str) -> None:
    search = reference_world(tmp_path)
    with served(create_app(settings_of(tmp_path), search=search)) as base:
        reply = get(base, "/suggest?limit=0", **WAYS[way])
        assert (reply.status, remaining(reply), parsed) == (400, QUOTA - 1, [b"limit=0"])
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


@pytest.mark.rule("E3", "Q2")
@pytest.mark.parametrize("way", WAYS)
def test_without_the_files_of_the_live_generation_each_request_costs_one_unit(
    tmp_path: Path, parsed: list[bytes], way: str
) -> None:
    index = embedded_world(tmp_path, SHOPS)
    for part in (index / "generations").glob("*/*/"):
        shutil.rmtree(part)
    with served(create_app(settings_of(tmp_path, data_dir=index))) as base:
        replies = [get(base, f"/suggest?q={text}", **WAYS[way]) for text in ("b", "bo", "boo")]
        value = samples(base)
    assert [(reply.status, reply.json["code"]) for reply in replies] == [(503, "backend_unavailable")] * 3
    assert [remaining(reply) for reply in replies] == [QUOTA - 1, QUOTA - 2, QUOTA - 3]
    assert parsed == [b"q=b", b"q=bo", b"q=boo"]
    assert counted(value, "backend_unavailable") == (3, 3)
    assert value("shopdir_engine_call_duration_seconds_count", operation="search", outcome="unavailable") <= 3


def settings_of(folder: Path, **given: Any) -> Settings:  # noqa: ANN401 - any setting
    quota = QuotaClass(reads=120, suggest=QUOTA, reports=0)
    return Settings(reports_file=folder / "reports.sqlite", quota_anonymous=quota, request_timeout=10.0, **given)
