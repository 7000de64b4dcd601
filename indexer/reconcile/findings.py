"""Counts of the faults that a comparison found, by class and kind of document; never which document (V1)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Fault(Enum):
    """The classes of faults, the gravest first."""

    NOT_PUBLIC = "not_public"  # in the index, and of a shop that is not public
    WRONG_GENERATION = "wrong_generation"  # an alias or a stamp of another generation, or a wrong count in a stamp
    GHOST = "ghost"  # in the index, and in no record
    MISSING = "missing"  # not in the index, though its record is public
    STALE = "stale"  # in the index, but different from its record, or more than once
    DAMAGED = "damaged"  # a file of the index or of the typeahead is missing, or differs from what was written
    STATE = "state"  # the state's derived tables do not follow from its records
    LOST_CHANGE = "lost_change"  # the source has a record that the state lacks or has older
    LOST_DELETE = "lost_delete"  # the state has a record that the source no longer has


@dataclass(frozen=True, slots=True)
class FaultCount:
    """The number of faults of one class and kind."""

    fault: Fault
    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class FaultReport:
    """What a comparison found and did; `faults` are those by class and kind, the gravest first, without zeros.

    The engine `refused` some repairs, which are in the dead-letter file. `checked` documents were compared, in
    `seconds` with pauses.
    """

    faults: tuple[FaultCount, ...] = ()
    repaired: int = 0
    refused: int = 0
    checked: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, faults: Iterable[tuple[Fault, str]], *, repaired: int = 0) -> "FaultReport":
        """Count faults that are given singly, each by its class and kind."""
        return cls(_listed(Counter(faults)), repaired)

    def __add__(self, other: "FaultReport") -> "FaultReport":
        counted: Counter[tuple[Fault, str]] = Counter()
        for count in (*self.faults, *other.faults):
            counted[count.fault, count.kind] += count.number
        return FaultReport(
            _listed(counted),
            self.repaired + other.repaired,
            self.refused + other.refused,
            self.checked + other.checked,
            self.seconds + other.seconds,
        )

    @property
    def total(self) -> int:
        """The number of faults."""
        return sum(count.number for count in self.faults)

    @property
    def remaining(self) -> int:
        """The number of faults that were not repaired."""
        return self.total - self.repaired

    def number(self, fault: Fault) -> int:
        """The number of faults of a class."""
        return sum(count.number for count in self.faults if count.fault is fault)

    def as_wire(self) -> dict[str, Any]:
        """The JSON form of the report."""
        faults: dict[str, dict[str, int]] = {}
        for count in self.faults:
            faults.setdefault(count.fault.value, {})[count.kind] = count.number
        return {
            "faults": faults,
            "found": self.total,
            "repaired": self.repaired,
            "refused": self.refused,
            "checked": self.checked,
            "seconds": round(self.seconds, 3),
        }


def _listed(counted: Counter[tuple[Fault, str]]) -> tuple[FaultCount, ...]:
    order = list(Fault)
    found = sorted(counted.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
    return tuple(FaultCount(fault, kind, number) for (fault, kind), number in found if number)
