"""What the embedded engine alone takes for a page of find_shop: the same asks, without the service around them."""

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


class _Remembering:
    """An engine that remembers what it was asked, so that it can be asked the same again without us."""

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
    """What find_shop asks of the embedded engine, asked in this process without anything around it."""

    def __init__(self, index: Path, loop: asyncio.Runner) -> None:
        """Open the index.

        Args:
            index: its directory.
            loop: that everything is asked in.
        """
        self._engine = TantivyEngine(index)
        self._remembering = _Remembering(self._engine)
        self._backend = PlannedBackend(self._remembering)
        self._loop = loop

    def matches(self, query: str) -> int:
        """How many shops a query finds."""
        return self._loop.run(self._find(query, 1))

    def asks(self, query: str, limit: int) -> Asked:
        """What the engine is asked for a page that is not empty."""
        self._remembering.asked.clear()
        self._loop.run(self._find(query, limit))
        # The live stamp's categories may come first.
        return self._remembering.asked[-1]

    def ask(self, asked: Sequence[Asked]) -> list[float]:
        """Ask all of it, one after the other; the seconds of each."""

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
