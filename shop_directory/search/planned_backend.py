"""The search backend over any engine, and the live generation from which it answers.

A snapshot is one generation as of one stamp, with its typeahead and categories (C1, C2, M5). The stamp is read at most
once a second, and used for at most two. While a new stamp's typeahead is opened, one after the other and after a
failure once a second, requests use the former one.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from index_mappings.documents import SCHEMA_VERSION, Category
from index_mappings.generations import Stamp
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import current, detached_from_request
from shop_directory.search.engine import Engine
from shop_directory.search.failures import (
    BackendUnavailable,
    GenerationDamaged,
    NotReadable,
    OtherSchema,
    TypeaheadNotOpen,
    TypeaheadUnavailable,
)
from shop_directory.search.protocol import FindQuery, Found, Generations, TypeaheadState
from shop_directory.search.shop_details import ShopDetails
from shop_directory.search.shop_search import CATEGORY_CAP, SearchPlanner, ShopSearch
from shop_directory.typeahead.suggestions import SegmentCutError, SuggestQuery, SuggestResult

if TYPE_CHECKING:
    from shop_directory.typeahead.reading.typeahead import Typeahead

# The engine answers that the live generation is unusable, so the stamp confirmed before must not be used either.
_UNUSABLE: Final = (GenerationDamaged, NotReadable)
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
FRESH_SECONDS: Final = 1.0
MAX_AGE_SECONDS: Final = 2.0
# A stamp is confirmed twice within its maximum age, and a few more times by `reload`.
_MAX_CONFIRMATIONS: Final = 8

RETRY_SECONDS: Final = 1.0
READY: Final = TypeaheadState("ready")
OPENING: Final = TypeaheadState("opening", "the files of the live generation are being opened")
NOT_STARTED: Final = TypeaheadState("opening")
FAILED: Final = TypeaheadState("failed", "the files of the live generation are missing or damaged; this is tried again")
# The texts of these errors are written for operators.
_EXPLAINED: Final = (TypeaheadUnavailable, GenerationDamaged)
_LOG: Final = logging.getLogger(__name__)


def seconds() -> float:
    """Seconds of a monotonic clock, including the machine's sleep if the system counts that: stamps age during it."""
    return time.clock_gettime(_CLOCK)


class LiveStamp:
    """The stamp of the live generation, shared by all requests of a process."""

    def __init__(
        self, load: Callable[[], Awaitable[Stamp]], clock: Callable[[], float] = seconds, metrics: Metrics = NO_METRICS
    ) -> None:
        """Read nothing yet; `load` reads the stamp from the engine, `clock` gives monotonic seconds."""
        self._metrics = metrics
        self._load = load
        self._clock = clock
        # The stamp that was read last, however long ago; None before the first.
        self.latest: Stamp | None = None
        # By stamp, when it was last confirmed to be live.
        self._confirmations: dict[tuple[str, int], float] = {}
        self._lookup: asyncio.Task[Stamp] | None = None
        self._failed = False

    async def current(self) -> Stamp:
        """The live stamp, confirmed at most two seconds ago. Raises as `SearchBackend.snapshot`."""
        if (stamp := self.cached()) is not None:
            return stamp
        self._metrics.cache("stamp", hit=False)
        try:
            return await self.reload()
        except _UNUSABLE:
            raise
        except BackendUnavailable:
            if self.latest is not None and self.age_of(self.latest) < MAX_AGE_SECONDS:
                return self.latest
            raise

    def cached(self) -> Stamp | None:
        """The live stamp without I/O, else None: once a second a request reads it, and others use the last one."""
        confirmed = self.latest
        if confirmed is None:
            return None
        age = self.age_of(confirmed)
        if age >= FRESH_SECONDS and (age >= MAX_AGE_SECONDS or not self._is_loading):
            return None
        self._metrics.cache("stamp", hit=True)
        return confirmed

    async def reload(self) -> Stamp:
        """Read the stamp from the engine now; concurrent requests share one look-up.

        While a look-up follows a failed one, further requests fail immediately instead of waiting for its timeout.
        """
        if not self._is_loading or self._lookup is None:
            with detached_from_request():
                self._lookup = asyncio.create_task(self._load_stamp())
        elif self._failed:
            raise BackendUnavailable("the stamp could not be read, and a retry is running")
        # The cancellation of one caller must not cancel the look-up of the others.
        return await asyncio.shield(self._lookup)

    async def _load_stamp(self) -> Stamp:
        started = self._clock()
        try:
            stamp = await self._load()
        except _UNUSABLE:
            raise
        except BackendUnavailable:
            self._failed = True
            raise
        self._failed = False
        if not stamp.readable:
            raise OtherSchema(
                f"the live generation has schema version {stamp.schema_version}, this service reads {SCHEMA_VERSION}"
            )
        self.latest = stamp
        self._confirmations.pop(stamp.key, None)
        self._confirmations[stamp.key] = started
        while len(self._confirmations) > _MAX_CONFIRMATIONS:
            del self._confirmations[next(iter(self._confirmations))]
        return stamp

    def age_of(self, stamp: Stamp) -> float:
        """Seconds since a stamp was last confirmed to be live; infinite if it never was, or long ago."""
        return self._clock() - self._confirmations.get(stamp.key, -math.inf)

    @property
    def _is_loading(self) -> bool:
        return self._lookup is not None and not self._lookup.done()


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
        self._planner = SearchPlanner(category_cap)
        self._clock = clock
        self._live = LiveStamp(engine.live, clock, metrics)
        # The snapshot of the typeahead that was opened last, and the running attempt to open the next one.
        self._ready: PlannedSnapshot | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._started = 0.0
        # Why and when the last attempt failed, which may have been for another stamp than the live one.
        self._failure: TypeaheadState | None = None
        self._failed_at = 0.0

    async def snapshot(self) -> "PlannedSnapshot":
        """The live generation (C1), or the former one, up to its maximum age, while its typeahead is opened."""
        return await self._snapshot_of(await self._live.current())

    def current(self) -> "PlannedSnapshot | None":
        stamp = self._live.cached()
        return None if stamp is None else self._usable(stamp)

    def typeahead_state(self) -> TypeaheadState:
        """Whether the stamp that was read last can be used for suggest requests."""
        # Whatever its age, or a stamp that becomes a second old after it was read would mean a missing typeahead.
        stamp = self._live.latest
        if stamp is not None and self._usable(stamp) is not None:
            return READY
        if self._failure is not None:
            return self._failure
        return NOT_STARTED if self._attempt is None and self._ready is None else OPENING

    async def refresh(self) -> "PlannedSnapshot":
        stamp = await self._live.reload()
        if self._ready is not None and self._ready.stamp.generation != stamp.generation:
            # The former generation is gone: an answer from it would only lead back here.
            self._ready = None
        return await self._snapshot_of(stamp)

    async def generations(self) -> Generations:
        return await self._engine.generations()

    async def close(self) -> None:
        """Cancel the attempt, and release the engine."""
        if (attempt := self._attempt) is not None:
            attempt.cancel()
            await asyncio.wait((attempt,))
        await self._engine.close()

    async def _snapshot_of(self, stamp: Stamp) -> "PlannedSnapshot":
        if (snapshot := self._usable(stamp)) is not None:
            return snapshot
        if (attempt := self._attempt) is not None:
            # `asyncio.wait` does not cancel the attempt when the waiting request is cancelled.
            await asyncio.wait((attempt,), timeout=self._patience())
        return self._usable(stamp) or PlannedSnapshot(self._engine, stamp, None, self._planner)

    def _patience(self) -> float | None:
        """How many seconds to wait for the typeahead; None is unlimited."""
        if self._ready is None and current() is None:
            return None
        # The first may take minutes, and single shops are answered without; others may have just been published.
        limit = _FIRST_WAIT_SECONDS if self._ready is None else MAX_AGE_SECONDS
        return max(0.0, self._started + limit - self._clock())

    def _usable(self, stamp: Stamp) -> "PlannedSnapshot | None":
        """The snapshot of a live stamp, or the former one until its maximum age; starts to open a missing typeahead."""
        ready = self._ready
        if ready is None or ready.stamp.key != stamp.key:
            self._start_opening(stamp)
            if ready is not None and self._live.age_of(ready.stamp) >= MAX_AGE_SECONDS:
                return None
        return ready

    def _start_opening(self, stamp: Stamp) -> None:
        """Start to open a stamp's typeahead, unless an attempt is running or failed less than a second ago."""
        now = self._clock()
        if self._attempt is None and (self._failure is None or now - self._failed_at >= RETRY_SECONDS):
            self._started = now
            with detached_from_request():
                self._attempt = asyncio.create_task(self._open(stamp))

    async def _open(self, stamp: Stamp) -> None:
        try:
            typeahead = await self._engine.typeahead(stamp)
        except BackendUnavailable as error:
            self._failed_at = self._clock()
            self._failure = TypeaheadState("failed", str(error)) if isinstance(error, _EXPLAINED) else FAILED
            cause = type(error.__cause__ or error).__name__
            _LOG.warning("the typeahead of sequence %d could not be opened: %s (%s)", stamp.sequence, error, cause)
        except Exception:  # noqa: BLE001 - after any error the former typeahead answers, and a retry follows
            self._failed_at, self._failure = self._clock(), FAILED
            _LOG.exception("opening the typeahead of sequence %d failed", stamp.sequence)
        else:
            self._failure = None
            self._ready = PlannedSnapshot(self._engine, stamp, typeahead, self._planner)
        finally:
            self._attempt = None


class PlannedSnapshot(ShopDetails):
    """One generation of an engine, as of one stamp."""

    def __init__(self, engine: Engine, stamp: Stamp, typeahead: "Typeahead | None", planner: SearchPlanner) -> None:
        """Combine the parts of a snapshot; without a typeahead, searches and suggestions are unavailable."""
        super().__init__(engine, stamp)
        self._opened = typeahead
        self._planner = planner

    @property
    def _typeahead(self) -> "Typeahead":
        if self._opened is None:
            raise TypeaheadNotOpen("the typeahead of the live generation is not open")
        return self._opened

    async def find(self, query: FindQuery) -> Found:
        try:
            return await ShopSearch(self._engine, self.stamp, self._typeahead, self._planner).find(query)
        except SegmentCutError as error:
            raise GenerationDamaged(str(error)) from error

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        try:
            return self._typeahead.suggest(query)
        except SegmentCutError as error:
            raise GenerationDamaged(str(error)) from error

    def domains(self, start: int, stop: int) -> list[str]:
        try:
            return self._typeahead.domains(start, stop)
        except SegmentCutError as error:
            raise GenerationDamaged(str(error)) from error

    async def categories(self) -> tuple[Category, ...]:
        return self._typeahead.categories.categories

    async def closest_categories(self, text: str, limit: int) -> tuple[str, ...]:
        return self._typeahead.categories.closest(text, limit)


async def snapshot_of(engine: Engine, stamp: Stamp) -> PlannedSnapshot:
    """The snapshot of any stamp, live or not. Errors as in `Snapshot`."""
    return PlannedSnapshot(engine, stamp, await engine.typeahead(stamp), SearchPlanner())
