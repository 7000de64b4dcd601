"""What is wrong with a catalogue, told by file, line and field, never by the value (V1)."""

from dataclasses import dataclass, field
from typing import Final

LISTED: Final = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        file: the file's name.
        line: its line, from 1; 0 when the file as a whole is meant.
        field: the field's path (`categories.0.slug`), or None when the line as a whole is meant.
        reason: what is wrong, and what would be right.
    """

    file: str
    line: int
    field: str | None
    reason: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.field} {self.reason}" if self.field else f"{place}: {self.reason}"


class CatalogueError(Exception):
    """The catalogue cannot be read as it is; the text says what to do."""


class InvalidRecordsError(CatalogueError):
    """The catalogue holds bad records and was not built."""

    def __init__(self, problems: "ProblemLog") -> None:
        super().__init__(f"{problems.records} bad records: mend them, or build without them by --skip-invalid")
        self.problems = problems


@dataclass(slots=True)
class ProblemLog:
    """The problems of one reading: all are counted, the first hundred are kept.

    Attributes:
        listed: the first problems.
        count: how many there are.
        records: how many records have one.
    """

    listed: list[Problem] = field(default_factory=list)
    count: int = 0
    records: int = 0

    def add(self, *problems: Problem) -> None:
        """Take the problems of one record."""
        self.records += 1
        for problem in problems:
            self.count += 1
            if len(self.listed) < LISTED:
                self.listed.append(problem)
