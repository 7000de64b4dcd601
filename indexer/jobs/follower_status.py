"""What operators are told beside a generation: outside accounts as the catalogue states them, and how following does.

The document is always written whole, under the lease. It never touches the stamp, so no cache is dropped for it, and
no log line holds a word of an account.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from index_mappings.operations import FollowerStatus, Operations, ResourceAccount
from index_mappings.timestamps import optional_moment, wire_moment
from indexer.records.problems import CatalogueError
from indexer.records.related import ResourceAccountRecord
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.state import State

TELL_EVERY_S: Final = 5.0
_LOG: Final = logging.getLogger(__name__)


def accounts_of(state: State) -> tuple[ResourceAccount, ...]:
    """The accounts that a state knows, by provider, then account."""
    return tuple(map(_account, state.related_records.accounts()))


def write_accounts(state: State, editor: GenerationEditor) -> None:
    """Write the accounts as they are now; what is told of the follower stays.

    Raises:
        SinkError: the engine failed.
    """
    known = editor.operations()
    editor.write_operations(Operations(accounts_of(state), None if known is None else known.follower))


def hand_over(sink: Sink, former: str, state: State, editor: GenerationEditor) -> None:
    """Take over what is told of the follower in another generation, as it goes on in the editor's.

    The follower says it itself soon after, so a failure is only told in the log.
    """
    try:
        left = sink.edit(former)
        try:
            known = left.operations()
        finally:
            left.close()
        if known is not None and known.follower is not None:
            editor.write_operations(Operations(accounts_of(state), known.follower), patient=False)
    except SinkError as error:
        _LOG.warning("the follower's status was not taken over: %s", type(error).__name__)


class StatusTeller:
    """Writes how following does: after each micro-batch that did something, and now and then when there was none.

    Attributes:
        untold: how often that failed; following goes on all the same.
    """

    def __init__(
        self,
        changes: ChangeSource | None,
        every: float = TELL_EVERY_S,
        *,
        only_known: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Note what is followed.

        Args:
            changes: where changes come from; without them there is nothing to tell.
            every: seconds between two times when there is no news, and after a failure.
            only_known: whether to go on telling only where a follower of the same kind of changes has begun to: a
                build that stands in for it must not make operators wait for one that nobody ever started.
            clock: the time.
        """
        self.untold = 0
        self._changes = changes
        self._every = every
        self._only_known = only_known
        self._clock = clock
        self._generation: str | None = None
        self._next = 0.0
        self._failed = False

    def tell(
        self, state: State, editor: GenerationEditor, check: Callable[[], None], *, busy: bool, behind: bool
    ) -> None:
        """Tell of a micro-batch that has come to its end.

        Args:
            state: of the generation that is followed; its changes are committed.
            editor: of the same generation.
            check: raises when the lease is lost.
            busy: whether it did something.
            behind: whether more changes are there already.

        Raises:
            SinkError: the lease is lost.
        """
        generation = editor.stamp.generation
        quiet = not busy and generation == self._generation
        if self._changes is None or (time.monotonic() < self._next and (quiet or self._failed)):
            return
        check()
        self._failed = False
        try:
            document = self._document(self._changes, state, editor, behind=behind)
            if document is not None:
                editor.write_operations(document, patient=False)
        except (CatalogueError, SinkError) as error:
            self._failed = True
            self.untold += 1
            _LOG.warning("the status of following could not be written: %s", type(error).__name__)
        self._generation = generation
        self._next = time.monotonic() + self._every

    def _document(
        self, changes: ChangeSource, state: State, editor: GenerationEditor, *, behind: bool
    ) -> Operations | None:
        known = editor.operations() if behind or self._only_known else None
        former = None if known is None else known.follower
        if self._only_known and (former is None or former.source != changes.kind):
            return None
        now = wire_moment(self._clock())
        status = FollowerStatus(
            source=changes.kind,
            position=changes.whereabouts(state.position),
            waiting=0,
            caught_up_at=now,
            told_at=now,
        )
        if behind:
            caught_up_at = None if former is None else former.caught_up_at
            status = replace(status, waiting=changes.waiting(state.position), caught_up_at=caught_up_at)
        return Operations(accounts_of(state), status)


def _account(record: ResourceAccountRecord) -> ResourceAccount:
    return ResourceAccount(
        provider=record.provider,
        account=record.account,
        unit=record.unit,
        used=record.used,
        limit=record.limit,
        resets_at=optional_moment(record.resets_at),
        status=record.status,
        observed_at=optional_moment(record.observed_at),
    )
