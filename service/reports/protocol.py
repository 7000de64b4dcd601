"""Reports, re-checks, the interface of the queue that stores them, and the texts as which a store holds a report.

When `append` returns, the report is durable, whatever process is killed afterwards (Q5). A report appends a row and
queues a re-check; nothing deletes or overwrites a report.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from json import dumps
from typing import Final, Literal, Protocol

from index_mappings.values import folded_code
from service.runtime.store_waits import StoreUnavailable

# The name of the group of workers that share the re-checks.
RECHECK_GROUP: Final = "workers"

ReportKind = Literal["code", "shop", "fact"]
_KINDS: Final[Mapping[str, ReportKind]] = {"code": "code", "shop": "shop", "fact": "fact"}


class Reason(StrEnum):
    """Why no report can be stored, as /ready may say it: no path, host or text of a library (O1)."""

    NO_ANSWER = "The report queue does not answer."
    FULL = "The disk of the report queue is full."
    READ_ONLY = "The file of the report queue can't be written: a read-only disk, or missing rights."
    FAILING = "The disk of the report queue fails."


class ReportsUnavailable(StoreUnavailable):
    """The store did not confirm in time; `reason` says why, as far as it is known.

    An append that raises it may have been written. It can be repeated, as the dedup mark prevents a second report.
    """

    def __init__(self, text: str, reason: Reason = Reason.NO_ANSWER, *, late: bool = False) -> None:
        self.reason = reason
        super().__init__(text, late=late)


@dataclass(frozen=True, slots=True)
class Report:
    """One report, without free text, on a shop that was public when it arrived.

    `source` is the id of the token of the call (Q5), `code` the coupon's as sent, in NFC, None unless the kind is
    "code"; the reason is a fixed one of its kind. `reported_at` is in UTC.
    """

    source: str
    kind: ReportKind
    shop_id: str
    code: str | None
    reason: str
    reported_at: datetime

    @property
    def mark(self) -> str:
        """The dedup key, equal for reports that repeat each other: 64 hexadecimal digits."""
        code = None if self.code is None else folded_code(self.code)
        # JSON, as joined parts would lose their boundaries.
        same = dumps([self.source, self.shop_id, self.kind, code, self.reason])
        return sha256(same.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Recheck:
    """One entry of the queue: a request to check the subject of a report again.

    `deliveries` is how often it has been claimed; `claimed_by` the last worker, None if it was never claimed.
    `idle_seconds` since the last claim are None if it was never claimed, and for a dead letter.
    """

    id: str
    report: Report
    deliveries: int
    claimed_by: str | None
    idle_seconds: float | None


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that holds re-checks: how many, and the seconds since its last claim."""

    name: str
    pending: int
    idle_seconds: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """The state of the queue, for operators.

    `depth` counts the re-checks that are not acknowledged: `lag`, which no worker has claimed yet, and `pending`, which
    one holds. `dead` were given up after too many deliveries. The lists have the oldest of `depth` and of `dead`,
    oldest first, and the workers that hold any, by name.
    """

    depth: int
    lag: int
    pending: int
    dead: int
    workers: tuple[Worker, ...]
    rechecks: tuple[Recheck, ...]
    dead_letters: tuple[Recheck, ...]


class ReportStore(Protocol):
    """Takes reports durably and queues a re-check for each, or raises ReportsUnavailable after its deadline."""

    async def append(self, report: Report) -> bool:
        """Store a report and queue its re-check, atomically; False when the same report was stored before.

        Nothing is appended then. Either way the report is durable.
        """

    async def waiting(self, count: int) -> Waiting:
        """The state of the queue, with at most `count` entries of each list."""

    async def check(self) -> None:
        """Check that a report could be stored now; the reason is that of ReportsUnavailable otherwise."""

    async def close(self) -> None:
        """Close connections and files."""


class ReportQueue(ReportStore, Protocol):
    """A store of reports whose re-checks workers take, and which operators read."""

    async def claim(self, worker: str, count: int, idle_seconds: float) -> tuple[Recheck, ...]:
        """Claim re-checks: new ones first, then those that a worker has held for longer than `idle_seconds`.

        An entry that would exceed the number of deliveries becomes a dead letter instead. A worker may receive an entry
        twice, so its work must be repeatable.
        """

    async def acknowledge(self, worker: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove finished entries that this worker holds from the queue, and return their ids."""

    def export(self) -> AsyncIterator[Report]:
        """All reports ever stored, in the order of appending."""


def report_to_texts(report: Report) -> dict[str, str]:
    """The fields of a stream entry; `code` is omitted if it is None."""
    texts = {
        "source": report.source,
        "kind": report.kind,
        "shop_id": report.shop_id,
        "reason": report.reason,
        "reported_at": time_to_text(report.reported_at),
    }
    return texts if report.code is None else {**texts, "code": report.code}


def report_from_texts(texts: Mapping[str, str | None]) -> Report:
    """The report of a row or a stream entry; ReportsUnavailable for an entry that this service has not written."""
    try:
        return Report(
            source=texts["source"] or "",
            kind=_KINDS[texts["kind"] or ""],
            shop_id=texts["shop_id"] or "",
            code=texts.get("code"),
            reason=texts["reason"] or "",
            reported_at=datetime.fromisoformat(texts["reported_at"] or ""),
        )
    except (KeyError, ValueError) as error:
        raise ReportsUnavailable("the store holds a report that can't be read") from error


def time_to_text(time: datetime) -> str:
    """RFC 3339 in UTC with microseconds, so that texts sort like times; ValueError if the time has no zone."""
    if time.tzinfo is None:
        raise ValueError("a report's time needs a zone")
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
