"""The current state of the search engine and the report queue, for operators.

An unavailable part gives a reason instead of its state, in bounded time. Nothing is raised, as operators need the state
of the other parts most when one is broken.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from service.operations.state import Reason
from service.reports.protocol import ReportQueue, ReportsUnavailable, Waiting
from service.search.failures import BackendUnavailable, NothingPublished
from service.search.protocol import Generations, SearchBackend

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why the state of a part is unknown."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """The state of the parts.

    Attributes:
        generations: the generations that the search engine holds.
        queue: the state of the re-check queue.
    """

    generations: Generations | Unavailable
    queue: Waiting | Unavailable


class HealthProbe:
    """Asks the parts for their state."""

    def __init__(self, search: SearchBackend, reports: ReportQueue, timeout: float) -> None:
        """Probe these parts, which the caller closes; one that has not answered in `timeout` seconds is unavailable."""
        self._search = search
        self._reports = reports
        self._timeout = timeout

    async def snapshot(self) -> HealthSnapshot:
        """Ask all parts, concurrently."""
        generations, queue = await asyncio.gather(self.generations(), self._ask(lambda: self._reports.waiting(1)))
        return HealthSnapshot(generations, queue)

    async def generations(self) -> Generations | Unavailable:
        """Ask the search engine alone."""
        return await self._ask(lambda: self._search.generations())  # noqa: PLW0108 - looked up where faults are caught

    async def _ask(self, call: Callable[[], Awaitable[T]]) -> T | Unavailable:
        try:
            async with asyncio.timeout(self._timeout):
                return await call()
        except NothingPublished:
            return Unavailable("nothing_published")
        except BackendUnavailable:
            return Unavailable("engine_unavailable")
        except ReportsUnavailable:
            return Unavailable("queue_unavailable")
        except TimeoutError:
            return Unavailable("timed_out")
        except Exception:  # noqa: BLE001 - one broken part must not hide the others
            _LOG.exception("the state of a part could not be read")
            return Unavailable("fault")
