"""The options of a build, and the summary that it returns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from index_mappings.generations import Stamp
from indexer.jobs.reading import NOTED, ReadCounts
from indexer.jobs.update import NOTHING, ChangeCounts
from indexer.records.problems import ProblemLog
from indexer.sinks.failures import SinkError
from indexer.state.remembered import Kept
from indexer.state.state import State

MOST_SHRINK: Final = 0.2
_WAIT_S: Final = 60.0


class ShrinkError(SinkError):
    """The new generation would lose too many of the public shops, and no option allows it (G2)."""


class AcceptanceFailedError(SinkError):
    """Answers of the new generation fail acceptance queries; the text has the first of them (G1)."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a build is done.

    Attributes:
        skip_invalid: pass over bad records instead of stopping.
        allow_empty: publish although there is no public shop.
        allow_shrink: publish however many public shops are lost.
        most_shrink: without `allow_shrink`, the share of the live generation's public shops that may be lost.
        fresh_state: ignore the versions and deletions in the former state.
        dry_run: read, validate, project and count; write nothing, neither to the engine nor to the states.
        if_changed: build nothing if the live generation was built from the same source.
        acceptance: asks the operator's acceptance queries of a sealed generation; raises SinkError when one fails.
        wait: seconds to wait while another job has the lease.
    """

    skip_invalid: bool = False
    allow_empty: bool = False
    allow_shrink: bool = False
    most_shrink: float = MOST_SHRINK
    fresh_state: bool = False
    dry_run: bool = False
    if_changed: bool = False
    acceptance: Callable[[Stamp], None] | None = None
    wait: float = _WAIT_S


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build did.

    Attributes:
        stamp: of the published generation, with its counts; after a dry run, the stamp that it would have.
        published: whether the generation is live.
        read: valid records read, by type.
        left_out: records by type that belong to no public shop.
        not_public: shops that the gate rejected.
        superseded: records that a newer one of the same key replaced.
        lost_domain: public shops left out because another shop has their domain.
        disputed_categories: slugs with more than one display name.
        changes: counts of the changes applied to the new generation, before and after it was written.
        notes: for the operator to look into, by line; at most twenty of a kind.
        kept: what the former state has instead of the catalogue, by type.
        kept_listing: the file that names these records; None where there are none, and after a dry run.
        problems: of the records that were skipped.
        removed: generations removed, those of killed builds included.
        restarts: how often the build started a new generation because the engine lost an index.
        seconds: the duration.
        unchanged: whether the live generation was built from the same source, so that nothing was read or built.
    """

    stamp: Stamp
    published: bool
    read: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    not_public: int = 0
    superseded: int = 0
    lost_domain: int = 0
    disputed_categories: int = 0
    changes: ChangeCounts = NOTHING
    notes: tuple[str, ...] = ()
    kept: Mapping[str, Kept] = field(default_factory=dict)
    kept_listing: Path | None = None
    problems: ProblemLog = field(default_factory=ProblemLog)
    removed: tuple[str, ...] = ()
    restarts: int = 0
    seconds: float = 0.0
    unchanged: bool = False


def disputed_categories(state: State) -> list[str]:
    """The slugs of the categories with more than one display name."""
    return [category.slug for category in state.shops.categories() if category.names > 1]


def build_notes(file: str, counts: ReadCounts, disputed: Sequence[str]) -> tuple[str, ...]:
    """Notes for the operator: shops left out for their domain, by their line in `file`, and disputed categories."""
    domains = [f"{file}:{line}: left out, its domain belongs to the shop of line {won}" for line, won in counts.lost]
    names = [f"category {slug} has more than one display name; the most frequent is shown" for slug in disputed]
    return (*domains, *names[:NOTED])
