"""The search backend over any engine.

A snapshot is one generation as of one stamp, with the typeahead and the categories of that stamp (C1, C2, M5).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from index_mappings.documents import Category
from index_mappings.generations import Stamp
from service.runtime.request_context import current
from service.runtime.telemetry import NO_METRICS, Metrics
from service.search.engine import Engine
from service.search.failures import TypeaheadNotOpen
from service.search.live_generation import MAX_AGE_SECONDS, OPENING, READY, LiveStamp, TypeaheadOpener, seconds
from service.search.protocol import (
    FindQuery,
    Found,
    Generations,
    SuggestQuery,
    SuggestResult,
    TypeaheadState,
)
from service.search.shop_details import ShopDetails
from service.search.shop_search import ShopSearch

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

# The default of the maximum number of categories that a word means (M5).
CATEGORY_CAP: Final = 50
# How long requests wait for the first typeahead of the process.
_FIRST_WAIT_SECONDS: Final = 1.5


class PlannedBackend:
    """A SearchBackend over an engine."""

    def __init__(
        self,
        engine: Engine,
        category_cap: int = CATEGORY_CAP,
        metrics: Metrics = NO_METRICS,
        clock: Callable[[], float] = seconds,
    ) -> None:
        """Read nothing yet; the backend closes the engine. `clock` gives monotonic seconds."""
        self._engine = engine
        self._cap = category_cap
        self._live = LiveStamp(engine.live, clock, metrics)
        self._opener = TypeaheadOpener(engine, clock)
        self._ready: PlannedSnapshot | None = None

    async def snapshot(self) -> "PlannedSnapshot":
        """The live generation (C1).

        While its typeahead is being opened this is the former generation, until that reaches its maximum age; after
        that it is the live one without suggestions and searches.
        """
        return await self._snapshot_of(await self._live.current())

    def current(self) -> "PlannedSnapshot | None":
        """The live generation if it is available without I/O; else None (C1)."""
        stamp = self._live.cached()
        return None if stamp is None else self._usable(stamp)

    def typeahead_state(self) -> TypeaheadState:
        """Whether the stamp that was read last can be used for suggest requests.

        Its age does not matter, or a stamp that becomes a second old after it was read would mean a missing typeahead.
        """
        stamp = self._live.latest
        if stamp is not None and self._usable(stamp) is not None:
            return READY
        state = self._opener.state
        # The open typeahead may be that of another stamp.
        return OPENING if state is READY else state

    async def refresh(self) -> "PlannedSnapshot":
        """The live generation, read again (C2)."""
        stamp = await self._live.reload()
        if self._ready is not None and self._ready.stamp.generation != stamp.generation:
            # The former generation is gone: an answer from it would only lead back here.
            self._ready = None
            self._opener.discard()
        return await self._snapshot_of(stamp)

    async def generations(self) -> Generations:
        """The generations, read now."""
        return await self._engine.generations()

    async def close(self) -> None:
        """Release the typeahead and the engine."""
        await self._opener.close()
        await self._engine.close()

    async def _snapshot_of(self, stamp: Stamp) -> "PlannedSnapshot":
        if (snapshot := self._usable(stamp)) is not None:
            return snapshot
        await self._opener.wait(self._opening_wait())
        return self._usable(stamp) or PlannedSnapshot(self._engine, stamp, None, self._cap)

    def _opening_wait(self) -> float | None:
        """How long requests wait for the typeahead, in seconds since the attempt to open it; None is unlimited."""
        if self._ready is not None:
            return MAX_AGE_SECONDS  # this may be the first request after a publish
        # Fetching the first typeahead can take minutes, and a snapshot without it still answers for single shops.
        return None if current() is None else _FIRST_WAIT_SECONDS

    def _usable(self, stamp: Stamp) -> "PlannedSnapshot | None":
        """The snapshot of a live stamp, or the former one until its maximum age; starts to open a missing typeahead."""
        if (opened := self._opener.opened) is not None and (
            self._ready is None or self._ready.stamp.key != opened[0].key
        ):
            self._ready = PlannedSnapshot(self._engine, *opened, self._cap)
        if self._ready is None or self._ready.stamp.key != stamp.key:
            self._opener.request(stamp)
            if self._ready is not None and self._live.age_of(self._ready.stamp) >= MAX_AGE_SECONDS:
                return None
        return self._ready


class PlannedSnapshot(ShopDetails):
    """One generation of an engine, as of one stamp."""

    def __init__(self, engine: Engine, stamp: Stamp, typeahead: "Typeahead | None", category_cap: int) -> None:
        """Combine the parts of a snapshot; without a typeahead, searches and suggestions are unavailable."""
        super().__init__(engine, stamp)
        self._typeahead = typeahead
        self._shop_search = None if typeahead is None else ShopSearch(engine, stamp, typeahead, category_cap)

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M8)."""
        if self._shop_search is None:
            raise _not_open()
        return await self._shop_search.find(query)

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        """Suggest shops and categories (M9, M10)."""
        if self._typeahead is None:
            raise _not_open()
        return self._typeahead.suggest(query)

    async def categories(self) -> tuple[Category, ...]:
        """All categories (M11)."""
        if self._typeahead is None:
            raise _not_open()
        return self._typeahead.categories.categories

    async def closest_categories(self, text: str, limit: int) -> tuple[str, ...]:
        """The slugs of the categories that a text may mean (E4)."""
        if self._typeahead is None:
            raise _not_open()
        return self._typeahead.categories.closest(text, limit)


async def snapshot_of(engine: Engine, stamp: Stamp, category_cap: int = CATEGORY_CAP) -> PlannedSnapshot:
    """The snapshot of any stamp, live or not. Errors as in `Snapshot`."""
    return PlannedSnapshot(engine, stamp, await engine.typeahead(stamp), category_cap)


def _not_open() -> TypeaheadNotOpen:
    return TypeaheadNotOpen("the typeahead of the live generation is not open")
