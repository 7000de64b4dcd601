"""The search backend over any engine that can run a plan: rules once, engines as small as possible.

One snapshot is one generation as of one stamp, with the typeahead and the categories of that stamp (C1, C2, M5).
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from index_mappings.documents import Category
from index_mappings.generations import Stamp
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.request_context import current
from service.search.engine import Engine
from service.search.failures import BackendUnavailable
from service.search.freshness import BOUND_SECONDS, LiveStamp
from service.search.protocol import FindQuery, Found, Generations, Suggested, SuggestQuery, TypeaheadState
from service.search.shop_details import Belongings
from service.search.shop_search import Finding
from service.search.typeahead_opening import OPENING, READY, TypeaheadOpener

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

# How many categories a word may mean where nobody says otherwise (M5).
CATEGORY_CAP: Final = 50
# Of the time of a request, what it may wait at the start of the process.
_FIRST_SECONDS: Final = 1.5


class PlannedBackend:
    """A SearchBackend over an engine."""

    def __init__(
        self,
        engine: Engine,
        category_cap: int = CATEGORY_CAP,
        metrics: Metrics = NOTHING_MEASURED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read nothing yet.

        Args:
            engine: what is asked; the backend closes it.
            category_cap: how many categories a word may mean (M5).
            metrics: count how often the cached stamp is used.
            clock: seconds, monotonic.
        """
        self._engine = engine
        self._cap = category_cap
        self._live = LiveStamp(engine.live, clock, metrics)
        self._opener = TypeaheadOpener(engine, clock)
        self._ready: PlannedSnapshot | None = None

    async def snapshot(self) -> "PlannedSnapshot":
        """The live generation (C1).

        While its typeahead is being opened this is the former one, for as long as that may be used; then it is the live
        one without suggestions and searches.
        """
        return await self._snapshot_of(await self._live.current())

    def current(self) -> "PlannedSnapshot | None":
        """The live generation where it is available without I/O (C1)."""
        stamp = self._live.cached()
        return None if stamp is None else self._usable(stamp)

    def typeahead_state(self) -> TypeaheadState:
        """Whether suggest requests can be answered now."""
        stamp = self._live.cached()
        if stamp is not None and self._usable(stamp) is not None:
            return READY
        state = self._opener.state
        # What is open may be another stamp's.
        return OPENING if state is READY else state

    async def refresh(self) -> "PlannedSnapshot":
        """The live generation, looked up again (C2)."""
        stamp = await self._live.reload()
        if self._ready is not None and self._ready.stamp.generation != stamp.generation:
            # It is gone: whoever is answered from it now would come back here.
            self._ready = None
            self._opener.forget()
        return await self._snapshot_of(stamp)

    async def generations(self) -> Generations:
        """The generations, asked now."""
        return await self._engine.generations()

    async def close(self) -> None:
        """Release the typeahead and the engine."""
        await self._opener.close()
        await self._engine.close()

    async def _snapshot_of(self, stamp: Stamp) -> "PlannedSnapshot":
        if (snapshot := self._usable(stamp)) is not None:
            return snapshot
        await self._opener.wait(self._patience())
        return self._usable(stamp) or PlannedSnapshot(self._engine, stamp, None, self._cap)

    def _patience(self) -> float | None:
        """For how many seconds after its beginning an attempt to open the typeahead is waited for; None is any."""
        if self._ready is not None:
            return BOUND_SECONDS  # a request may be the first one after a publish
        # At the start there is nothing else to answer from, but a shop is found without: fetching takes minutes.
        return None if current() is None else _FIRST_SECONDS

    def _usable(self, stamp: Stamp) -> "PlannedSnapshot | None":
        """The snapshot of a live stamp, or the former one while that may be used; has the typeahead opened."""
        if (opened := self._opener.opened) is not None and (
            self._ready is None or self._ready.stamp.key != opened[0].key
        ):
            self._ready = PlannedSnapshot(self._engine, *opened, self._cap)
        if self._ready is None or self._ready.stamp.key != stamp.key:
            self._opener.request(stamp)
            if self._ready is not None and self._live.age_of(self._ready.stamp) >= BOUND_SECONDS:
                return None
        return self._ready


class PlannedSnapshot:
    """One generation of an engine, as of one stamp."""

    def __init__(self, engine: Engine, stamp: Stamp, typeahead: "Typeahead | None", category_cap: int) -> None:
        """Put together.

        Args:
            engine: what is asked.
            stamp: of the generation.
            typeahead: the stamp's; without it nothing can be searched or suggested.
            category_cap: how many categories a word may mean (M5).
        """
        self.stamp = stamp
        self._typeahead = typeahead
        self._finding = None if typeahead is None else Finding(engine, stamp, typeahead, category_cap)
        related_records = Belongings(engine, stamp)
        self.shop = related_records.shop
        self.shops = related_records.shops
        self.coupons = related_records.coupons
        self.facts = related_records.facts
        self.trust = related_records.trust
        self.offer = related_records.offer
        self.merge_candidates = related_records.merge_candidates
        self.merge_effects = related_records.merge_effects

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M8)."""
        if self._finding is None:
            raise _not_open()
        return await self._finding.find(query)

    def suggest(self, query: SuggestQuery) -> Suggested:
        """Suggest shops and categories (M9, M10)."""
        if self._typeahead is None:
            raise _not_open()
        return self._typeahead.suggest(query)

    async def categories(self) -> tuple[Category, ...]:
        """All categories (M11)."""
        if self._typeahead is None:
            raise _not_open()
        return self._typeahead.categories.categories


async def snapshot_of(engine: Engine, stamp: Stamp, category_cap: int = CATEGORY_CAP) -> PlannedSnapshot:
    """One generation by its stamp, whether it is live or not. Errors as in `Snapshot`."""
    return PlannedSnapshot(engine, stamp, await engine.typeahead(stamp), category_cap)


def _not_open() -> BackendUnavailable:
    return BackendUnavailable("the typeahead of the live generation is not open")
