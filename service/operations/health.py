"""How the parts of the service do just now, asked for those who run it.

A part that is away gives its reason instead of an answer, in bounded time, and nothing is raised: whoever is on call
needs the rest most when a part is broken.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from service.operations.state import Reason
from service.reports.failures import ReportsUnavailable
from service.reports.protocol import ReportQueue, Waiting
from service.search.failures import BackendUnavailable, NothingPublished
from service.search.protocol import Generations, SearchBackend

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Away:
    """A part that could not be asked, and why."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """What was found at one time.

    Attributes:
        generations: what the search engine holds.
        queue: the re-check queue.
    """

    generations: Generations | Away
    queue: Waiting | Away


class Questions:
    """The questions to the parts that can be asked."""

    def __init__(self, search: SearchBackend, reports: ReportQueue, timeout: float) -> None:
        """Name the parts; they belong to the caller.

        Args:
            search: the search engine.
            reports: the report queue.
            timeout: seconds after which a part that has not answered is away.
        """
        self._search = search
        self._reports = reports
        self._timeout = timeout

    async def situation(self) -> HealthSnapshot:
        """Ask all of them at once."""
        generations, queue = await asyncio.gather(self.generations(), self._asked(lambda: self._reports.waiting(1)))
        return HealthSnapshot(generations, queue)

    async def generations(self) -> Generations | Away:
        """Ask the search engine alone."""
        return await self._asked(lambda: self._search.generations())  # noqa: PLW0108 - looked up where faults are caught

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T | Away:
        try:
            async with asyncio.timeout(self._timeout):
                return await ask()
        except NothingPublished:
            return Away("nothing_published")
        except BackendUnavailable:
            return Away("engine_unavailable")
        except ReportsUnavailable:
            return Away("queue_unavailable")
        except TimeoutError:
            return Away("timed_out")
        except Exception:  # noqa: BLE001 - one broken part must not hide the others
            _LOG.exception("a part could not be asked how it does")
            return Away("fault")
