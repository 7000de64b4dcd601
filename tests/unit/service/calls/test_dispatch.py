"""The dispatch of one call: order, deadline, retry, and what is logged."""

import asyncio
import logging
from pathlib import Path

import pytest

from index_mappings.documents import Category
from service.auth.sqlite import SqliteTokenStore
from service.auth.verifier import TokenVerifier
from service.calls.admission import Admission
from service.calls.dispatch import Dispatcher
from service.calls.live_data import LiveData
from service.limits.memory import MemoryLimiter
from service.limits.policy import QuotaPolicy
from service.reports.sqlite import SqliteReports
from service.runtime.caller import Caller, Channel
from service.runtime.request_context import bind_request, new_request_context, new_request_id
from service.search.failures import BackendUnavailable, GenerationGone
from service.search.protocol import FindQuery, Found
from service.tools.registry import REGISTRY
from tests.support.reference.backend import ReferenceBackend
from tests.support.worlds import SHOPS, reference_world

CALLER = Caller(Channel.REST, new_request_id())


class Replaced(ReferenceBackend):
    """A world whose generation is gone a number of times, each time until it is asked for again."""

    def __init__(self, world: ReferenceBackend, times: int) -> None:
        super().__init__(world.stamp, {})
        self._world = world
        self._times = times
        self.refreshed = 0

    async def categories(self) -> tuple[Category, ...]:
        self._times -= 1
        raise GenerationGone("gone")

    async def refresh(self) -> ReferenceBackend:
        self.refreshed += 1
        if self._times > 0:
            raise GenerationGone("gone again")
        return self._world


class Slow(ReferenceBackend):
    """A world whose searches never end."""

    async def find(self, query: FindQuery) -> Found:
        await asyncio.sleep(60)
        raise BackendUnavailable(f"no caller waits that long for {query.text}")


def _dispatcher(live: LiveData) -> Dispatcher:
    """Every tool on live data; these calls bring no token and no report, so neither store is ever opened."""
    admission = Admission(TokenVerifier(SqliteTokenStore(Path("no-tokens"))), MemoryLimiter(), QuotaPolicy())
    return Dispatcher(REGISTRY, live, admission, SqliteReports(Path("no-reports")), timeout=5.0)


@pytest.mark.rule("C2.one_generation", "E3")
@pytest.mark.parametrize(("times", "code"), [(1, None), (2, "backend_unavailable")])
async def test_a_generation_that_is_gone_is_asked_for_again_once_and_not_twice(
    tmp_path: Path, times: int, code: str | None
) -> None:
    backend = Replaced(reference_world(tmp_path), times)
    outcome = await _dispatcher(LiveData(backend, 5.0)).call("list_categories", {}, CALLER)
    assert (outcome.document.get("code"), backend.refreshed) == (code, 1)


@pytest.mark.rule("E4")
async def test_a_category_is_checked_before_anything_is_searched(tmp_path: Path) -> None:
    world = reference_world(tmp_path)
    dispatcher = _dispatcher(LiveData(Slow(world.stamp, {}), 5.0))
    outcome = await dispatcher.call("find_shop", {"query": "", "category": "x"}, CALLER)
    assert outcome.document["detail"] == (
        "No shop carries this category. Call list_categories for the slugs that exist."
    )


@pytest.mark.rule("E5", "E5.request_id")
async def test_the_transport_learns_tool_and_outcome_and_nothing_of_the_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dispatcher = _dispatcher(LiveData(reference_world(tmp_path), 5.0))
    outcomes: list[tuple[str | None, str | None]] = []
    with caplog.at_level(logging.DEBUG, "service"):
        for name, given in (
            ("find_shop", {"query": "hunter2"}),
            ("get_shop", {"shop_domain": "hunter2.example"}),
        ):
            with bind_request(new_request_context(CALLER.request_id)) as request:
                await dispatcher.call(name, given, CALLER)
            outcomes.append((request.tool, request.outcome))
    assert outcomes == [("find_shop", "ok"), ("get_shop", "shop_not_found")]
    assert caplog.messages == []


@pytest.mark.rule("A1.size", "A1")
async def test_a_page_of_fifty_full_shops_is_small_enough_for_a_model(tmp_path: Path) -> None:
    shops = [
        {
            **SHOPS[0],
            "id": f"shop_{number}",
            "name": f"A Shop With A Fairly Long Name {number}",
            "domain": f"a-shop-with-a-fairly-long-name-{number}.example",
            "aliases": [f"Another Name {number}", f"A Third Name Of It {number}"],
            "countries": ["DE", "AT", "CH", "FR", "GB", "NL", "BE", "IT", "ES", "PL"],
        }
        for number in range(60)
    ]
    dispatcher = _dispatcher(LiveData(reference_world(tmp_path, shops), 5.0))
    outcome = await dispatcher.call("find_shop", {"query": ""}, CALLER)
    # A token is three characters or more of such text.
    assert (len(outcome.document["results"]), len(outcome.body) / 3 < 20_000) == (50, True)
