"""Checking a catalogue without building it: every problem that a build would report, and what a build would leave out.

The records go through the state of a build in a temporary directory: memory is bounded, and the rules are the build's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from indexer.jobs.build_summary import notes_of
from indexer.jobs.reading import NOTED, ReadCounts, Reading, read_catalogue
from indexer.progress import stage
from indexer.records.problems import CatalogueError, Problem, ProblemLog
from indexer.records.related import BELONGINGS
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.changes.records import change_faults
from indexer.sources.ndjson import NdjsonCatalogue, numbered_lines
from indexer.state.state import State

_CHANGES: Final = "changes"


@dataclass(slots=True)
class ReportedProblems(ProblemLog):
    """Problems that are reported as they are found; of those that are listed only the first hundred are held.

    Attributes:
        report: takes each problem.
    """

    report: Callable[[Problem], None] = field(kw_only=True)

    def add(self, *problems: Problem) -> None:
        """Count and report the problems of one record."""
        ProblemLog.add(self, *problems)
        for problem in problems:
            self.report(problem)


@dataclass(frozen=True, slots=True)
class Validated:
    """What a catalogue holds.

    Attributes:
        records: valid records by kind, changes among them; empty where reading did not come to its end.
        public_shops: shops that a build would publish.
        bad_records: records, lines or files with a problem.
        problems: how many problems there are.
        notes: what a build would leave out, and why.
    """

    records: Mapping[str, int]
    public_shops: int
    bad_records: int
    problems: int
    notes: tuple[str, ...]


def validate(
    path: Path, report: Callable[[Problem], None], *, changes: Path | None = None, lenient: bool = False
) -> Validated:
    """Read everything and report every problem.

    Args:
        path: a directory of NDJSON files, or one file of shops.
        report: takes each problem as it is found.
        changes: the file of changes, where it is not `changes.ndjson` of the directory.
        lenient: pass over unknown fields and files.

    Raises:
        CatalogueError: there is no catalogue there; what is wrong within it is reported instead.
        DiskFullError: there is no space for the temporary state.
    """
    source = NdjsonCatalogue(path, lenient=lenient, changes=changes)
    if changes is not None and not changes.is_file():
        raise CatalogueError(f"there is no file of changes at {changes}")
    problems = ReportedProblems(report=report)
    records: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    public = 0
    try:
        counts, notes = _read(source, problems)
        records, public = dict(counts.read), counts.public
        if not public:
            reason = "holds no shop that would be public; --allow-empty builds it nevertheless"
            problems.add(Problem(source.name("shops"), 0, None, reason))
        followed = source.changes()
        if followed is not None and followed.path.is_file():
            records[_CHANGES] = _count_changes(followed.path, problems, lenient=lenient)
    except CatalogueError as error:
        problems.add(Problem(path.name, 0, None, str(error)))
    return Validated(records, public, problems.records, problems.count, notes)


def _read(source: NdjsonCatalogue, problems: ProblemLog) -> tuple[ReadCounts, tuple[str, ...]]:
    """What was read, and the notes on it."""
    with TemporaryDirectory(prefix="shop-directory-") as folder:
        letters = DeadLetters(Path(folder) / "none.ndjson")  # takes refused changes, of which none are read here
        reading = Reading(source, None, None, letters, skip_invalid=True)
        with State.create(Path(folder) / "state.sqlite") as state:
            counts = read_catalogue(reading, state, problems)
            disputed = [category.slug for category in state.shops.categories() if category.names > 1]
            left_out = [
                f"{source.name(kind)}: {number:,} records belong to no public shop and would be left out"
                for kind, number in counts.left_out.items()
                if number
            ]
            unknown = [
                f"{source.name(kind)}:{line}: shop_id is the id of no valid record of {source.name('shops')}"
                for kind in BELONGINGS
                if kind in source.kinds()
                for line in state.related_records.without_shop(kind, NOTED)
            ]
            return counts, (*left_out, *unknown, *notes_of(source.name("shops"), counts, disputed))


def _count_changes(path: Path, problems: ProblemLog, *, lenient: bool) -> int:
    """The changes that can be applied; the others are reported."""
    good = 0
    with stage("Reading changes", path.stat().st_size, "bytes") as advance:
        for line, text in numbered_lines(path, problems, advance):
            faults = change_faults(text, lenient=lenient)
            if faults:
                problems.add(*(Problem(path.name, line, place, reason) for place, reason in faults))
            else:
                good += 1
    return good
