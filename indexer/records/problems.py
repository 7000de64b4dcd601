"""Problems of a catalogue, reported by file, line and field.

Only the commands that check an operator's own files, before anything is indexed, show values (V1).
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from indexer.records.faults import RefusedRecordError

if TYPE_CHECKING:
    # It imports all that checks shops, which takes longer than a process needs to read a workbook.
    from indexer.records.hiding import Hiding

LISTED: Final = 100
# The characters of a value that are shown (V1).
MAX_SHOWN: Final = 60
# The reasons that are counted apart.
_REASONS: Final = 1_000
# What differs in each of many problems of one kind: an item's position, and the line of another record.
_ITEM: Final = re.compile(r"\.\d+\b")
_LINE: Final = re.compile(r"\bline \d+")


def shown(value: object) -> str:
    """A value as text, cut, without control characters: a text is quoted, anything else is JSON."""
    if isinstance(value, str):
        return repr(value[:MAX_SHOWN])
    return repr(json.dumps(value, ensure_ascii=False)[:MAX_SHOWN])[1:-1]


def numbered(count: int, name: str) -> str:
    """A number of things: `1 bad row`, `1,200 bad rows`."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `reason` states the problem, or the valid values.

    `line` counts from 1, and is 0 for the file as a whole; `field` is a path (`categories.0.slug`). `value` is what the
    field holds, as `shown`; None where there is none, or it may not be shown (V1).
    """

    file: str
    line: int
    field: str | None
    reason: str
    value: str | None = None

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{location}: {self.field} {self.reason}" if self.field else f"{location}: {self.reason}"
        return text if self.value is None else f"{text}: {self.value}"


class CatalogueError(Exception):
    """The catalogue cannot be read as it is; the message says what to do."""


class InvalidRecordsError(CatalogueError):
    """The catalogue holds bad records and was not built."""

    def __init__(self, problems: "ProblemLog") -> None:
        them = "it" if problems.records == 1 else "them"
        bad = numbered(problems.records, "bad record")
        super().__init__(f"{bad}: mend {them}, or build without {them} by --skip-invalid")
        self.problems = problems


@dataclass(slots=True)
class ProblemLog:
    """The problems of one reading and the number of records that have one; the first hundred problems are listed.

    `reasons` counts the problems of each kind, without lines and values. `report` is called with each new problem.
    `shows_values` is true only for the commands that may. `hiding` is what bad records of shops hide.
    """

    listed: list[Problem] = field(default_factory=list)
    count: int = 0
    records: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    report: Callable[[Problem], None] | None = None
    shows_values: bool = False
    hiding: "list[Hiding]" = field(default_factory=list)

    def add(self, *problems: Problem) -> None:
        """Add the problems of one record."""
        self.records += 1
        for problem in problems:
            self.count += 1
            reason = _LINE.sub("another line", problem.reason)
            kind = f"{_ITEM.sub('', problem.field)} {reason}" if problem.field else reason
            if kind in self.reasons or len(self.reasons) < _REASONS:
                self.reasons[kind] += 1
            if len(self.listed) < LISTED:
                self.listed.append(problem)
            if self.report is not None:
                self.report(problem)

    def add_hiding(self, hiding: "Hiding | None") -> None:
        """Add the hiding that a bad record of a shop implies, if any."""
        if hiding is not None:
            self.hiding.append(hiding)

    def add_refused(self, file: str, line: int, error: RefusedRecordError, record: object = None) -> None:
        """Add the faults of one record; `record` is its JSON, if it is any."""
        self.add(
            *(
                Problem(file, line, field, reason, _value_at(record, field) if self.shows_values else None)
                for field, reason in error.faults
            )
        )


def _value_at(record: object, path: str | None) -> str | None:
    """The value of a field, as `shown`; None if there is none, or it is the record as a whole."""
    value: object = record if path else None
    for part in (path or "").split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return None if value is None else shown(value)
