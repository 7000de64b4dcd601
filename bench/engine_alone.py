"""The embedded engine alone: repeats the calls that find_shop makes to it, without the service."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from index_mappings.generations import Stamp
from service.search.embedded.engine import TantivyEngine
from service.search.engine import Engine, Hit, Page, SearchRequest
from service.search.plan import Plan
from service.search.planned_backend import PlannedBackend
from service.search.protocol import FindQuery, Generations
from service.search.typeahead.typeahead import Typeahead

Asked = tuple[Stamp, Sequence[SearchRequest]]


class _RecordingEngine:
    """An engine that records its calls, so that they can be repeated."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked: list[Asked] = []

    async def live(self) -> Stamp:
        return await self._engine.live()

    async def generations(self) -> Generations:
        return await self._engine.generations()

    async def search(self, stamp: Stamp, asks: Sequence[SearchRequest]) -> tuple[Page, ...]:
        self.asked.append((stamp, asks))
        return await self._engine.search(stamp, asks)

    def scan(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        return self._engine.scan(stamp, plan)

    async def typeahead(self, stamp: Stamp) -> Typeahead:
        return await self._engine.typeahead(stamp)

    async def close(self) -> None:
        await self._engine.close()


class EngineAlone:
    """Repeats the engine calls of find_shop in this process."""

    def __init__(self, index: Path, loop: asyncio.Runner) -> None:
        """Open the index of a directory; `loop` runs the calls."""
        self._engine = TantivyEngine(index)
        self._recorder = _RecordingEngine(self._engine)
        self._backend = PlannedBackend(self._recorder)
        self._loop = loop

    def matches(self, query: str) -> int:
        """The number of shops that match a query."""
        return self._loop.run(self._find(query, 1))

    def asks(self, query: str, limit: int) -> Asked:
        """The engine call for a page that is not empty."""
        self._recorder.asked.clear()
        self._loop.run(self._find(query, limit))
        # The live stamp's categories may come first.
        return self._recorder.asked[-1]

    def ask(self, asked: Sequence[Asked]) -> list[float]:
        """Repeat the calls one after the other; returns the seconds of each."""

        async def times() -> list[float]:
            found = []
            for stamp, asks in asked:
                began = time.perf_counter()
                await self._engine.search(stamp, asks)
                found.append(time.perf_counter() - began)
            return found

        return self._loop.run(times())

    async def _find(self, query: str, limit: int) -> int:
        snapshot = await self._backend.snapshot()
        return (await snapshot.find(FindQuery(query, None, None, 0, limit))).total
