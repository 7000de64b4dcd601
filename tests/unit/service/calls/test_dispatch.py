"""The dispatch of a call whose generation is removed meanwhile."""

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
from service.runtime.request_context import new_request_id
from service.search.failures import GenerationGone
from service.tools.registry import REGISTRY
from tests.support.reference.backend import ReferenceBackend
from tests.support.worlds import reference_world


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


@pytest.mark.rule("C2.one_generation", "E3")
@pytest.mark.parametrize(("times", "code"), [(1, None), (2, "backend_unavailable")])
async def test_a_generation_that_is_gone_is_asked_for_again_once_and_not_twice(
    tmp_path: Path, times: int, code: str | None
) -> None:
    backend = Replaced(reference_world(tmp_path), times)
    admission = Admission(TokenVerifier(SqliteTokenStore(tmp_path / "tokens")), MemoryLimiter(), QuotaPolicy())
    reports = SqliteReports(tmp_path / "reports")
    dispatcher = Dispatcher(REGISTRY, LiveData(backend, 5.0), admission, reports, timeout=5.0)
    outcome = await dispatcher.call("list_categories", {}, Caller(Channel.REST, new_request_id()))
    assert (outcome.document.get("code"), backend.refreshed) == (code, 1)
