"""Problems of a catalogue, reported by file, line and field, never by value (V1)."""

from dataclasses import dataclass, field
from typing import Final

LISTED: Final = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        file: the file's name.
        line: the line, from 1; 0 for the file as a whole.
        field: the field's path (`categories.0.slug`); None for the line as a whole.
        reason: what is wrong, or what would be valid.
    """

    file: str
    line: int
    field: str | None
    reason: str

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}" if self.line else self.file
        return f"{location}: {self.field} {self.reason}" if self.field else f"{location}: {self.reason}"


class CatalogueError(Exception):
    """The catalogue cannot be read as it is; the message says what to do."""


class InvalidRecordsError(CatalogueError):
    """The catalogue holds bad records and was not built."""

    def __init__(self, problems: "ProblemLog") -> None:
        super().__init__(f"{problems.records} bad records: mend them, or build without them by --skip-invalid")
        self.problems = problems


@dataclass(slots=True)
class ProblemLog:
    """The problems of one reading: all are counted, as are the records that have one; the first hundred are listed."""

    listed: list[Problem] = field(default_factory=list)
    count: int = 0
    records: int = 0

    def add(self, *problems: Problem) -> None:
        """Add the problems of one record."""
        self.records += 1
        for problem in problems:
            self.count += 1
            if len(self.listed) < LISTED:
                self.listed.append(problem)
