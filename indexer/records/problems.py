"""Problems of a catalogue, reported by file, line and field, never by value (V1)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

LISTED: Final = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `reason` says what is wrong, or what would be valid.

    `line` counts from 1, and is 0 for the file as a whole; `field` is a path (`categories.0.slug`).
    """

    file: str
    line: int
    field: str | None
    reason: str

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}" if self.line else self.file
        return f"{location}: {self.field} {self.reason}" if self.field else f"{location}: {self.reason}"


# A field's path, None for the record as a whole, and what is wrong with it.
Fault = tuple[str | None, str]


class RefusedRecordError(Exception):
    """A line or a row that is no valid record, or no change that can be applied."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults

    @property
    def messages(self) -> tuple[str, ...]:
        """The faults as texts."""
        return tuple(f"{field} {reason}" if field else reason for field, reason in self.faults)


class CatalogueError(Exception):
    """The catalogue cannot be read as it is; the message says what to do."""


class InvalidRecordsError(CatalogueError):
    """The catalogue holds bad records and was not built."""

    def __init__(self, problems: "ProblemLog") -> None:
        super().__init__(f"{problems.records} bad records: mend them, or build without them by --skip-invalid")
        self.problems = problems


@dataclass(slots=True)
class ProblemLog:
    """The problems of one reading: all are counted, as are the records that have one; the first hundred are listed.

    `report` is called with each problem when it is found.
    """

    listed: list[Problem] = field(default_factory=list)
    count: int = 0
    records: int = 0
    report: Callable[[Problem], None] | None = None

    def add(self, *problems: Problem) -> None:
        """Add the problems of one record."""
        self.records += 1
        for problem in problems:
            self.count += 1
            if len(self.listed) < LISTED:
                self.listed.append(problem)
            if self.report is not None:
                self.report(problem)

    def add_refused(self, file: str, line: int, error: RefusedRecordError) -> None:
        """Add the faults of one record."""
        self.add(*(Problem(file, line, field, reason) for field, reason in error.faults))
