"""Knowing what is live: the stamp, looked up at most once a second and never trusted for longer than two (C1)."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.generations import Stamp
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.request_context import detached_from_request
from service.search.failures import BackendUnavailable, GenerationDamaged, NotReadable, OtherSchema

# The engine answers, and what is live may not be answered from: the stamp confirmed before is of no use either.
_UNUSABLE: Final = (GenerationDamaged, NotReadable)
FRESH_SECONDS: Final = 1.0
BOUND_SECONDS: Final = 2.0
# Within the bound a stamp is confirmed twice, and a few more times where answers make callers look again.
_REMEMBERED: Final = 8


class LiveStamp:
    """The stamp of the live generation, shared by all requests of a process."""

    def __init__(
        self,
        load: Callable[[], Awaitable[Stamp]],
        clock: Callable[[], float] = time.monotonic,
        metrics: Metrics = NOTHING_MEASURED,
    ) -> None:
        """Wrap a look-up.

        Args:
            load: asks the engine; raises BackendUnavailable when it does not answer.
            clock: seconds, monotonic.
            metrics: are told how often the last answer does.
        """
        self._metrics = metrics
        self._load = load
        self._clock = clock
        self._confirmed: tuple[float, Stamp] | None = None
        # When each of the newest stamps was last confirmed to be live.
        self._confirmations: dict[tuple[str, int], float] = {}
        self._under_way: asyncio.Task[Stamp] | None = None
        self._failed = False

    async def current(self) -> Stamp:
        """The live stamp, confirmed at most two seconds ago.

        Raises:
            BackendUnavailable: it could not be confirmed.
            GenerationDamaged: a file of it is damaged.
            NotReadable: nothing is published, or in another schema version (G4).
        """
        if (stamp := self.cached()) is not None:
            return stamp
        self._metrics.cache("stamp", hit=False)
        try:
            return await self.reload()
        except _UNUSABLE:
            raise
        except BackendUnavailable:
            if self._confirmed is not None and self._age() < BOUND_SECONDS:
                return self._confirmed[1]
            raise

    def cached(self) -> Stamp | None:
        """The live stamp where nothing has to be asked for it; else None.

        Once a second one request asks, and waits for what it is told. Those that come meanwhile go on with what was
        confirmed: all of them would take the longer way otherwise, once a second, until it is known.
        """
        confirmed = self._confirmed
        if confirmed is None:
            return None
        age = self._clock() - confirmed[0]
        if age >= FRESH_SECONDS and (age >= BOUND_SECONDS or not self._is_asked_for):
            return None
        self._metrics.cache("stamp", hit=True)
        return confirmed[1]

    async def reload(self) -> Stamp:
        """Ask the engine now; requests that ask at the same time share one look-up.

        After one that failed only one request waits for the next: the others would all be late to learn the same.
        """
        if not self._is_asked_for or self._under_way is None:
            with detached_from_request():
                self._under_way = asyncio.create_task(self._look_up())
        elif self._failed:
            raise BackendUnavailable("the stamp could not be read just now, and is being asked for again")
        # One caller's end must not end the look-up of the others.
        return await asyncio.shield(self._under_way)

    async def _look_up(self) -> Stamp:
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
        self._confirmed = (started, stamp)
        self._confirmations.pop(stamp.key, None)
        self._confirmations[stamp.key] = started
        while len(self._confirmations) > _REMEMBERED:
            del self._confirmations[next(iter(self._confirmations))]
        return stamp

    def age_of(self, stamp: Stamp) -> float:
        """Seconds since a stamp was last confirmed to be live; infinite where that is long ago, or never was."""
        return self._clock() - self._confirmations.get(stamp.key, -math.inf)

    @property
    def _is_asked_for(self) -> bool:
        return self._under_way is not None and not self._under_way.done()

    def _age(self) -> float:
        return self._clock() - self._confirmed[0] if self._confirmed is not None else float("inf")
