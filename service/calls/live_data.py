"""Work on the live generation: one snapshot for each answer, one retry when it is removed, one deadline (C2, E3)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.generations import Stamp
from service.errors import BackendUnavailableError, NotReadyError, ServiceError
from service.runtime.request_context import current, remaining_seconds
from service.search.failures import BackendUnavailable, GenerationGone, NotReadable, OtherSchema, TypeaheadNotOpen
from service.search.protocol import SearchBackend, Snapshot

T = TypeVar("T")
Work = Callable[[Snapshot], Awaitable[T]]

# How long a call over stdio, or a start behind a listener of systemd, waits for the index to open, in seconds.
OPENING_S: Final = 10.0

_NOT_OPEN: Final = (
    "The index is not open for searches yet, which takes a minute after an installation. Shops can be looked up by "
    "domain or id meanwhile. Try again in 1 second; if it lasts, the operator finds the cause at /ready and in the log."
)
_LOG: Final = logging.getLogger(__name__)
_NO_INDEX: Final = (
    "No index is published where this service looks for one, so nothing can be answered. The operator builds one with "
    "shop-directory index build, or corrects the location, which the log names. Try again in 2 seconds."
)
_OTHER_SCHEMA: Final = (
    "The published index has a schema version that this service does not read, so nothing can be answered. The "
    "operator builds it again with the indexer of this service's version. Try again in 2 seconds."
)


@dataclass(frozen=True, slots=True)
class LiveResult(Generic[T]):
    """The result of work on the live generation, or the error for the caller.

    The stamp is that of the generation which the result comes from, also for errors such as "no such shop"; None when
    no generation was available.
    """

    stamp: Stamp | None
    result: T | ServiceError


class LiveData:
    """The live generation of a backend, under a deadline."""

    def __init__(self, search: SearchBackend, timeout: float) -> None:
        """An answer may take `timeout` seconds; less if the deadline of its request comes first."""
        self._search = search
        self._timeout = timeout
        self.current = search.current

    async def run(self, work: Work[T], request_id: str, *, generation_gone: bool = False) -> LiveResult[T]:
        """Run work on the live generation, and again on the next one if the first is removed meanwhile.

        With `generation_gone` the generation that was confirmed last is known to be removed: only the second attempt is
        left.
        """
        try:
            async with asyncio.timeout(remaining_seconds(self._timeout)):
                if not generation_gone:
                    try:
                        return await _run_on(await self._search.snapshot(), work)
                    except GenerationGone:
                        pass
                return await _run_on(await self._search.refresh(), work)
        except (BackendUnavailable, TimeoutError) as error:
            return LiveResult(None, unavailable(error, request_id))

    async def stamp(self) -> Stamp:
        """The live stamp; raises TimeoutError after the timeout, or BackendUnavailable as the backend does."""
        async with asyncio.timeout(self._timeout):
            return (await self._search.snapshot()).stamp

    async def log_missing_index(self) -> None:
        """Log that there is no readable index, and where it was looked for; calls log an unavailable engine."""
        try:
            async with asyncio.timeout(self._timeout):
                stamp = (await self._search.generations()).live
        except NotReadable as error:
            reason = str(error)
        except (BackendUnavailable, TimeoutError):
            return
        else:
            if stamp.readable:
                return
            reason = f"what is published has schema version {stamp.schema_version}, this service reads {SCHEMA_VERSION}"
        _LOG.warning(
            "there is no index to answer from: %s. Build one with shop-directory index build; it is served without a "
            "restart of this process",
            reason,
        )


def unavailable(error: Exception, request_id: str) -> BackendUnavailableError | NotReadyError:
    """Log why there is no answer, and return the error for the caller."""
    if isinstance(error, NotReadable):
        _LOG.warning("request=%s there is no index to answer from: %s", request_id, error)
        return NotReadyError(_OTHER_SCHEMA if isinstance(error, OtherSchema) else _NO_INDEX)
    # Only the type of the cause: its text may hold the query.
    cause = type(error.__cause__ or error).__name__
    _LOG.warning("request=%s the search engine did not answer: %s (%s)", request_id, error, cause)
    return BackendUnavailableError(_NOT_OPEN if isinstance(error, TypeaheadNotOpen) else None)


async def _run_on(snapshot: Snapshot, work: Work[T]) -> LiveResult[T]:
    if (request := current()) is not None:
        request.generation = snapshot.stamp.generation
    try:
        return LiveResult(snapshot.stamp, await work(snapshot))
    except ServiceError as error:
        return LiveResult(snapshot.stamp, error)
