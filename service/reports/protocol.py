"""What the service asks of a store of reports, in the words of the domain.

A report that `append` answered for is kept, whatever process is killed afterwards (Q5). A report appends a row and
queues a re-check, and nothing here deletes or overwrites a report.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from json import dumps
from typing import Literal, Protocol

from index_mappings.coupon_codes import folded_code

ReportKind = Literal["code", "shop", "fact"]


@dataclass(frozen=True, slots=True)
class Report:
    """One row: who says what of which shop. There is no free text in it.

    Attributes:
        source: the name of the token it came with (Q5).
        kind: a wrong coupon code, a wrong shop, or a wrong fact about one.
        shop_id: the id of a shop that was public when the report came.
        code: the coupon's code as sent, in NFC; None unless the kind is "code".
        reason: one of the fixed reasons of its kind.
        reported_at: when it came, in UTC.
    """

    source: str
    kind: ReportKind
    shop_id: str
    code: str | None
    reason: str
    reported_at: datetime

    @property
    def mark(self) -> str:
        """What two reports have in common when they are the same one again: 64 hexadecimal digits."""
        code = None if self.code is None else folded_code(self.code)
        # JSON keeps the borders between the parts, which joining them would lose.
        same = dumps([self.source, self.shop_id, self.kind, code, self.reason])
        return sha256(same.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Recheck:
    """One entry of the queue: look again at what a report is about.

    Attributes:
        id: the queue's name for it.
        report: the report that queued it.
        deliveries: how often it was claimed so far.
        claimed_by: the worker that holds it, or held it last; None when nobody has claimed it yet.
        idle_seconds: since it was claimed last; None when nobody has, and of a dead letter.
    """

    id: str
    report: Report
    deliveries: int
    claimed_by: str | None
    idle_seconds: float | None


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that holds re-checks: how many, and the seconds since it was last heard of."""

    name: str
    pending: int
    idle_seconds: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """The state of the queue, for operators.

    Attributes:
        depth: re-checks that nobody has acknowledged: lag and pending together.
        lag: those that nobody has claimed yet.
        pending: those that a worker holds.
        dead: those given up after too many deliveries.
        workers: who holds any, by name.
        rechecks: the oldest of `depth`, oldest first.
        dead_letters: the oldest of `dead`, oldest first.
    """

    depth: int
    lag: int
    pending: int
    dead: int
    workers: tuple[Worker, ...]
    rechecks: tuple[Recheck, ...]
    dead_letters: tuple[Recheck, ...]


class ReportQueue(Protocol):
    """A durable list of reports with a queue of re-checks.

    Every method raises ReportsUnavailable when the store does not confirm within its deadline.
    """

    async def append(self, report: Report) -> bool:
        """Keep a report and queue its re-check, in one step.

        Returns:
            True when it was appended; False when its mark stands already, so that nothing was. Either way what the
            mark stands for is kept durably.
        """

    async def claim(self, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        """Take re-checks, new ones first, then those that a worker has held for longer than `idle_seconds`.

        An entry that would be delivered once too often becomes a dead letter instead. A worker may see an entry twice:
        what it does about one must bear repeating.
        """

    async def acknowledge(self, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Take entries off the queue.

        Returns:
            The ids that were: those that this worker holds. Others are known to nobody or are another worker's by now.
        """

    async def waiting(self, count: int) -> Waiting:
        """The state of the queue, with at most `count` entries of each list."""

    def export(self) -> AsyncIterator[Report]:
        """All reports ever, in the order in which they were appended."""

    async def depth(self) -> int:
        """How many re-checks nobody has acknowledged."""

    async def check(self) -> None:
        """Find out whether a report could be kept now; raises ReportsUnavailable with the reason where not."""

    async def close(self) -> None:
        """Release connections and files."""
