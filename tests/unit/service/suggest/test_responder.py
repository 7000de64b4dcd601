"""The responder stores what is done in the request, so that a request which has to wait continues from there."""

from pathlib import Path

import pytest

from service.auth.sqlite import SqliteTokenStore
from service.auth.verifier import TokenVerifier
from service.calls.admission import Admission
from service.calls.live_data import LiveData
from service.errors import InvalidInputError, OverloadedError, QuotaExceededError
from service.http.bounded_endpoint import Gate
from service.limits.memory import MemoryLimiter
from service.limits.policy import QuotaClass, QuotaPolicy
from service.runtime.request_context import new_request_context
from service.search.failures import GenerationGone
from service.search.protocol import SuggestQuery, SuggestResult
from service.search.reference.backend import ReferenceBackend
from service.suggest.responder import Refused, Suggestions, SuggestRequest, SuggestResponder
from tests.support.worlds import reference_world

TWO = QuotaClass(reads=1, suggest=2, reports=0)


class Removed(ReferenceBackend):
    """A world whose generation has been removed; the next one is there once it is looked up."""

    def __init__(self, world: ReferenceBackend) -> None:
        super().__init__(world.stamp, {})
        self._world = world
        self.searches = 0

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        self.searches += 1
        raise GenerationGone(f"{query.limit} shops of it are not there")

    async def refresh(self) -> ReferenceBackend:
        return self._world


def responder_of(folder: Path, search: ReferenceBackend) -> SuggestResponder:
    verifier = TokenVerifier(SqliteTokenStore(folder / "no-tokens"))
    admission = Admission(verifier, MemoryLimiter(), QuotaPolicy(anonymous=TWO))
    return SuggestResponder(LiveData(search, 5.0), admission, cache_mb=1)


def request_of(raw: bytes, *tags: str) -> SuggestRequest:
    return SuggestRequest(raw, new_request_context("the request", 5.0), "192.0.2.1", tags=frozenset(tags))


def left(quota: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return dict(quota)[b"ratelimit"].split(b";")[1]


@pytest.mark.rule("R5", "Q2", "E1")
async def test_the_quota_comes_before_the_query(tmp_path: Path) -> None:
    search = reference_world(tmp_path)
    responder = responder_of(tmp_path, search)
    refused = [responder.respond_now(request_of(b"limit=0"), search) for _ in range(3)]
    assert [type(each.error) for each in refused if isinstance(each, Refused)] == [
        InvalidInputError, InvalidInputError, QuotaExceededError,
    ]  # fmt: skip
    waiting = await responder.respond(request_of(b"limit=0"))
    assert isinstance(waiting, Refused)
    assert isinstance(waiting.error, QuotaExceededError)


async def test_a_full_gate_refuses_a_search_before_it_is_counted_and_no_cached_response(tmp_path: Path) -> None:
    search = reference_world(tmp_path)
    responder = responder_of(tmp_path, search)
    first = await responder.respond(request_of(b"q=b"))
    refused = responder.respond_now(request_of(b"q=bo"), search, Gate(0).admits_in_tick)
    cached = responder.respond_now(request_of(b"q=b"), search, Gate(0).admits_in_tick)
    assert isinstance(first, Suggestions)
    assert isinstance(cached, Suggestions)
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, OverloadedError)
    assert (refused.quota, left(cached.quota), cached.cached) == ((), b"r=0", first.cached)


@pytest.mark.rule("C1")
async def test_a_response_that_the_caller_has_is_not_searched_for(tmp_path: Path) -> None:
    world = reference_world(tmp_path)
    first = await responder_of(tmp_path, world).respond(request_of(b"q=b"))
    assert isinstance(first, Suggestions)
    search = Removed(world)
    for tag in (first.tag.decode(), "*"):
        response = responder_of(tmp_path, search).respond_now(request_of(b"q=b", tag), search)
        assert isinstance(response, Suggestions)
        assert (response.tag, response.cached) == (first.tag, None)
    assert search.searches == 0
