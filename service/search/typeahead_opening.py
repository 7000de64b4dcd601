"""Opens the typeahead of the live stamp in the background, while requests go on with the former one (C1).

Files of a new stamp may have to be fetched first, and are checked as a whole. One typeahead is opened at a time: the
next one shares most of its files. After a failure it is tried again, at most once a second.
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
NOT_BEGUN: Final = TypeaheadState("opening")
FAILED: Final = TypeaheadState("failed", "the files of the live generation are missing or damaged; this is tried again")
# Their texts are for operators.
_EXPLAINED: Final = (TypeaheadUnavailable, GenerationDamaged)
_LOG: Final = logging.getLogger(__name__)


class TypeaheadOpener:
    """The typeahead that was opened last, and the attempt to open the next one."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with none.

        Args:
            engine: what opens them.
            clock: seconds, monotonic.
        """
        self._engine = engine
        self._clock = clock
        self._opened: tuple[Stamp, Typeahead] | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._began = 0.0
        self._failed_at: float | None = None
        self._failure = FAILED

    @property
    def opened(self) -> "tuple[Stamp, Typeahead] | None":
        """The typeahead that was opened last, with its stamp."""
        return self._opened

    @property
    def state(self) -> TypeaheadState:
        """How the last attempt ended; the caller knows whether it was for the stamp that is live."""
        if self._failed_at is not None:
            return self._failure
        if self._attempt is not None:
            return OPENING
        return NOT_BEGUN if self._opened is None else READY

    def request(self, stamp: Stamp) -> None:
        """Have a stamp's typeahead opened, unless an attempt runs or one failed less than a second ago."""
        if self._attempt is not None:
            return
        if self._failed_at is not None and self._clock() - self._failed_at < RETRY_SECONDS:
            return
        self._began = self._clock()
        with detached_from_request():
            self._attempt = asyncio.create_task(self._open(stamp))

    async def wait(self, at_most: float | None) -> None:
        """Wait for the attempt that runs, if any.

        Args:
            at_most: until so many seconds after its beginning; None for as long as it takes.
        """
        if (attempt := self._attempt) is not None:
            timeout = None if at_most is None else max(0.0, self._began + at_most - self._clock())
            # The attempt is not this request's: it goes on when the request ends.
            await asyncio.wait((attempt,), timeout=timeout)

    def forget(self) -> None:
        """Let go of what is open: its generation is gone."""
        self._opened = None

    async def close(self) -> None:
        """End the attempt and let go of what is open."""
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
        except Exception:  # noqa: BLE001 - whatever it is, the former typeahead answers, and this is tried again
            self._failed_at, self._failure = self._clock(), FAILED
            _LOG.exception("opening the typeahead of sequence %d failed", stamp.sequence)
        else:
            self._failed_at = None
            self._opened = stamp, typeahead
        finally:
            self._attempt = None
