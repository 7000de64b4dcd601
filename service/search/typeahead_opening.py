"""Opens the typeahead of the live stamp in the background, while requests use the former one (C1).

The files of a new stamp may have to be fetched, and all of them are checked. Typeaheads are opened one after the other,
as consecutive ones share most files. After a failure there is at most one attempt a second.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from index_mappings.generations import Stamp
from service.runtime.request_context import detached_from_request
from service.search.engine import Engine
from service.search.failures import BackendUnavailable, GenerationDamaged, TypeaheadUnavailable
from service.search.protocol import TypeaheadState

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

RETRY_SECONDS: Final = 1.0
READY: Final = TypeaheadState("ready")
OPENING: Final = TypeaheadState("opening", "the files of the live generation are being opened")
NOT_STARTED: Final = TypeaheadState("opening")
FAILED: Final = TypeaheadState("failed", "the files of the live generation are missing or damaged; this is tried again")
# The texts of these errors are written for operators.
_EXPLAINED: Final = (TypeaheadUnavailable, GenerationDamaged)
_LOG: Final = logging.getLogger(__name__)


class TypeaheadOpener:
    """Holds the typeahead opened last, and the running attempt to open the next one."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        """Open nothing yet.

        Args:
            engine: opens the typeaheads.
            clock: seconds, monotonic.
        """
        self._engine = engine
        self._clock = clock
        self._opened: tuple[Stamp, Typeahead] | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._started = 0.0
        self._failed_at: float | None = None
        self._failure = FAILED

    @property
    def opened(self) -> "tuple[Stamp, Typeahead] | None":
        """The typeahead that was opened last, with its stamp."""
        return self._opened

    @property
    def state(self) -> TypeaheadState:
        """The outcome of the last attempt, which may have been for another stamp than the live one."""
        if self._failed_at is not None:
            return self._failure
        if self._attempt is not None:
            return OPENING
        return NOT_STARTED if self._opened is None else READY

    def request(self, stamp: Stamp) -> None:
        """Start to open a stamp's typeahead, unless an attempt is running or failed less than a second ago."""
        if self._attempt is not None:
            return
        if self._failed_at is not None and self._clock() - self._failed_at < RETRY_SECONDS:
            return
        self._started = self._clock()
        with detached_from_request():
            self._attempt = asyncio.create_task(self._open(stamp))

    async def wait(self, limit: float | None) -> None:
        """Wait for the running attempt, if there is one.

        Args:
            limit: seconds since the attempt started after which waiting ends; None waits until it is finished.
        """
        if (attempt := self._attempt) is not None:
            timeout = None if limit is None else max(0.0, self._started + limit - self._clock())
            # `asyncio.wait` does not cancel the attempt when the waiting request is cancelled.
            await asyncio.wait((attempt,), timeout=timeout)

    def discard(self) -> None:
        """Drop the open typeahead, whose generation is gone."""
        self._opened = None

    async def close(self) -> None:
        """Cancel the attempt and drop the open typeahead."""
        self._opened = None
        if (attempt := self._attempt) is not None:
            attempt.cancel()
            await asyncio.wait((attempt,))

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
            self._failed_at = None
            self._opened = stamp, typeahead
        finally:
            self._attempt = None
