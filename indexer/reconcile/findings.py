"""What a comparison found, by the class of the fault and the kind of document; never which document (V1)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Fault(Enum):
    """The classes of faults, the gravest first."""

    NOT_PUBLIC = "not_public"  # in the index, and of a shop that the public may not see
    WRONG_GENERATION = "wrong_generation"  # an alias or a stamp that is another generation's, or a stamp's false count
    GHOST = "ghost"  # in the index, and of no record
    MISSING = "missing"  # not in the index, and of a public record
    STALE = "stale"  # in the index, but not as the record says, or more than once
    DAMAGED = "damaged"  # a file of the index or of the typeahead is missing, or not what was written
    STATE = "state"  # the state's own sums do not follow from its records
    LOST_CHANGE = "lost_change"  # the source has a record that the state lacks or has older
    LOST_DELETE = "lost_delete"  # the state has a record that the source has no more


@dataclass(frozen=True, slots=True)
class FaultCount:
    """How many faults of one class a kind has."""

    fault: Fault
    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a comparison found and did.

    Attributes:
        faults: by class and kind, the gravest first; none of zero.
        repaired: how many of them were put right.
        refused: how many the engine would not take; they are in the dead-letter file.
        checked: how many documents were compared.
        seconds: how long it took, pauses included.
    """

    faults: tuple[FaultCount, ...] = ()
    repaired: int = 0
    refused: int = 0
    checked: int = 0
    seconds: float = 0.0

    @classmethod
    def of(
        cls, faults: Iterable[tuple[Fault, str]], *, repaired: int = 0, refused: int = 0, checked: int = 0
    ) -> "Found":
        """Count single faults, each given by its class and kind."""
        return cls(_listed(Counter(faults)), repaired, refused, checked)

    def __add__(self, other: "Found") -> "Found":
        counted: Counter[tuple[Fault, str]] = Counter()
        for count in (*self.faults, *other.faults):
            counted[count.fault, count.kind] += count.number
        return Found(
            _listed(counted),
            self.repaired + other.repaired,
            self.refused + other.refused,
            self.checked + other.checked,
            self.seconds + other.seconds,
        )

    @property
    def total(self) -> int:
        """How many faults there were."""
        return sum(count.number for count in self.faults)

    @property
    def left(self) -> int:
        """How many of them are still there."""
        return self.total - self.repaired

    def number(self, fault: Fault) -> int:
        """How many faults of a class there were."""
        return sum(count.number for count in self.faults if count.fault is fault)

    def as_wire(self) -> dict[str, Any]:
        """For a report in JSON."""
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
