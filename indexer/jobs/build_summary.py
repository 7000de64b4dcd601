"""How a build is asked for, and what it tells afterwards."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from index_mappings.generations import Stamp
from indexer.jobs.catching_up import CaughtUp
from indexer.jobs.reading import NOTED, ReadCounts
from indexer.records.problems import ProblemLog
from indexer.sinks.failures import SinkError

MOST_SHRINK: Final = 0.2
_WAIT_S: Final = 60.0


class ShrinkError(SinkError):
    """The new generation would lose too many of the public shops, and nobody said that this is meant (G2)."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a build is done.

    Attributes:
        skip_invalid: pass over bad records instead of stopping.
        allow_empty: publish although there is no public shop.
        allow_shrink: publish however many public shops are lost.
        most_shrink: the share of the live generation's public shops that may be lost otherwise.
        fresh_state: forget what the former state remembers of versions and deletions.
        dry_run: read, validate, project and count; write nothing, neither to the engine nor to the states.
        if_changed: leave the live generation as it is where it was built from the same.
        golden: asks the operator's golden queries of a sealed generation; raises SinkError when one fails.
        wait: seconds to wait while another job has the lease.
    """

    skip_invalid: bool = False
    allow_empty: bool = False
    allow_shrink: bool = False
    most_shrink: float = MOST_SHRINK
    fresh_state: bool = False
    dry_run: bool = False
    if_changed: bool = False
    golden: Callable[[Stamp], None] | None = None
    wait: float = _WAIT_S


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build did.

    Attributes:
        stamp: of the published generation, with its counts; of a dry run, what it would have been.
        published: whether it is live.
        read: records read by type, bad ones not counted.
        left_out: records by type that belong to no public shop.
        not_public: shops that the gate kept back.
        superseded: records that a newer one of the same key replaced.
        lost_domain: public shops left out because another one has their domain.
        disputed_categories: slugs with more than one display name.
        changes: that were applied to the new generation, before and after it was written.
        notes: what an operator should look at, by line; at most twenty of a kind.
        problems: what was wrong with records that were passed over.
        removed: generations removed, remains of killed builds included.
        restarts: how often it had to begin a fresh generation because the engine lost an index.
        seconds: how long it took.
        unchanged: whether nothing was built, as the live generation was built from the same; then nothing was read.
    """

    stamp: Stamp
    published: bool
    read: Mapping[str, int]
    left_out: Mapping[str, int]
    not_public: int
    superseded: int
    lost_domain: int
    disputed_categories: int
    changes: CaughtUp
    notes: tuple[str, ...]
    problems: ProblemLog
    removed: tuple[str, ...]
    restarts: int
    seconds: float
    unchanged: bool = False

    @classmethod
    def of_unchanged(cls, live: Stamp, seconds: float) -> "BuildSummary":
        """Nothing was done, as the live generation was built from the same."""
        return cls(
            stamp=live,
            published=False,
            read={},
            left_out={},
            not_public=0,
            superseded=0,
            lost_domain=0,
            disputed_categories=0,
            changes=CaughtUp(0, 0, 0),
            notes=(),
            problems=ProblemLog(),
            removed=(),
            restarts=0,
            seconds=seconds,
            unchanged=True,
        )


def notes_of(file: str, counts: ReadCounts, disputed: Sequence[str]) -> tuple[str, ...]:
    """What an operator should look at: shops without their domain by their line in `file`, and disputed categories."""
    domains = [f"{file}:{line}: left out, its domain belongs to the shop of line {won}" for line, won in counts.lost]
    names = [f"category {slug} has more than one display name; the most frequent is shown" for slug in disputed]
    return (*domains, *names[:NOTED])
