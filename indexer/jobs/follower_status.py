"""The operations document of a generation: outside accounts as the catalogue states them, and how following does.

The document is always written whole, under the lease. It never touches the stamp, so it invalidates no cache, and no
log line holds any text of an account.
"""

import logging
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Final

from index_mappings.generations import FollowerStatus, Operations, ResourceAccount
from index_mappings.values import optional_timestamp, wire_timestamp
from indexer.records.problems import CatalogueError
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.state import State

STATUS_INTERVAL_S: Final = 5.0
_LOG: Final = logging.getLogger(__name__)


def operations_of(state: State, follower: FollowerStatus | None) -> Operations:
    """The operations document of a state, with a status of its follower; accounts by provider, then account."""
    accounts = tuple(
        ResourceAccount(
            **record.model_dump(exclude={"version", "updated_at", "resets_at", "observed_at"}),
            resets_at=optional_timestamp(record.resets_at),
            observed_at=optional_timestamp(record.observed_at),
        )
        for record in state.public.accounts()
    )
    return Operations(accounts, follower, state.missing)


def carry_over_status(sink: Sink, former: str, state: State, editor: GenerationEditor) -> None:
    """Copy the follower's status from the former generation, with the changes that the state lacks.

    The follower writes its status itself soon after, so a failure is only logged.
    """
    try:
        with closing(sink.edit(former)) as source:
            known = source.operations()
        follower = None if known is None else known.follower
        if follower is not None or state.missing is not None:
            editor.write_operations(operations_of(state, follower), wait_for_engine=False)
    except SinkError as error:
        _LOG.warning("the follower's status was not copied: %s", type(error).__name__)


class StatusWriter:
    """Writes the follower's status: after each micro-batch that changed something, and at an interval otherwise.

    `status_failures` counts how often writing failed; following goes on all the same.
    """

    def __init__(
        self,
        changes: ChangeSource | None,
        every: float = STATUS_INTERVAL_S,
        *,
        only_known: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Store the followed source; without `changes` no status is written.

        `every` is the seconds between two statuses when nothing changes, and after a failure. With `only_known` a
        status is written only where a follower of the same kind of changes has written one before: a build that stands
        in for a follower must not report one that was never started.
        """
        self.status_failures = 0
        self._changes = changes
        self._every = every
        self._only_known = only_known
        self._clock = clock
        self._generation: str | None = None
        self._next = 0.0
        self._failed = False

    def write(
        self, state: State, editor: GenerationEditor, check: Callable[[], None], *, busy: bool, behind: bool
    ) -> None:
        """Write the status after a micro-batch, unless it is too soon; the changes of the state are committed.

        `check` raises when the lease is lost. `busy` says whether the micro-batch changed something, `behind` whether
        more changes are available already.
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
                editor.write_operations(document, wait_for_engine=False)
        except (CatalogueError, SinkError) as error:
            self._failed = True
            self.status_failures += 1
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
        now = wire_timestamp(self._clock())
        waiting: int | None = 0
        caught_up_at: str | None = now
        if behind:
            waiting, caught_up_at = changes.backlog(state.position), None if former is None else former.caught_up_at
        position = changes.describe_position(state.position)
        return operations_of(state, FollowerStatus(changes.kind, position, waiting, caught_up_at, now))
