"""The live stamp of the process: read at most once a second, and used for at most two seconds (C1)."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.generations import Stamp
from service.runtime.metrics import NO_METRICS, Metrics
from service.runtime.request_context import detached_from_request
from service.search.failures import BackendUnavailable, GenerationDamaged, NotReadable, OtherSchema

# The engine answers that the live generation is unusable, so the stamp confirmed before must not be used either.
_UNUSABLE: Final = (GenerationDamaged, NotReadable)
FRESH_SECONDS: Final = 1.0
MAX_AGE_SECONDS: Final = 2.0
# A stamp is confirmed twice within its maximum age, and a few more times by `reload`.
_MAX_CONFIRMATIONS: Final = 8


class LiveStamp:
    """The stamp of the live generation, shared by all requests of a process."""

    def __init__(
        self,
        load: Callable[[], Awaitable[Stamp]],
        clock: Callable[[], float] = time.monotonic,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        """Read nothing yet.

        Args:
            load: reads the stamp from the engine; raises BackendUnavailable when it gives no answer.
            clock: seconds, monotonic.
            metrics: count the hits and misses of the cached stamp.
        """
        self._metrics = metrics
        self._load = load
        self._clock = clock
        self._confirmed: Stamp | None = None
        # By stamp, when it was last confirmed to be live.
        self._confirmations: dict[tuple[str, int], float] = {}
        self._lookup: asyncio.Task[Stamp] | None = None
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
            if self._confirmed is not None and self.age_of(self._confirmed) < MAX_AGE_SECONDS:
                return self._confirmed
            raise

    def cached(self) -> Stamp | None:
        """The live stamp if it is available without I/O; else None.

        Once a second one request reads the stamp and waits for it. Requests that arrive meanwhile use the stamp that
        was confirmed before, so that they need not wait.
        """
        confirmed = self._confirmed
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
        self._confirmed = stamp
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
