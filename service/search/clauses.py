"""What a plan is made of: clauses over finished terms, which every engine can tell of a document (X4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Nobody changes clauses, but they are not frozen: a search makes a score of them, and freezing would make each of them
# three times as expensive.


@dataclass(slots=True, unsafe_hash=True)
class Exact:
    """The field holds one of the texts."""

    field: str
    texts: tuple[str, ...]


@dataclass(slots=True, unsafe_hash=True)
class Prefix:
    """A text of the field begins with this one."""

    field: str
    text: str


@dataclass(slots=True, unsafe_hash=True)
class Infix:
    """This text occurs inside a text of the field."""

    field: str
    text: str


@dataclass(slots=True, unsafe_hash=True)
class Below:
    """The whole number of the field is below the bound."""

    field: str
    bound: int


@dataclass(slots=True, unsafe_hash=True)
class NoneOf:
    """No clause holds."""

    clauses: tuple["Clause", ...]


@dataclass(slots=True, unsafe_hash=True)
class AllOf:
    """Every clause holds; with none, everything matches."""

    clauses: tuple["Clause", ...]


@dataclass(slots=True, unsafe_hash=True)
class AnyOf:
    """At least one clause holds; with none, nothing matches."""

    clauses: tuple["Clause", ...]


Clause = Exact | Prefix | Infix | Below | AllOf | AnyOf | NoneOf
# What every document meets.
EVERYTHING = AllOf(())


def any_of(clauses: Sequence[Clause]) -> Clause:
    """Any of some clauses; one stands for itself."""
    return clauses[0] if len(clauses) == 1 else AnyOf(tuple(clauses))


def meets(texts: Mapping[str, Sequence[str]], clause: Clause) -> bool:
    """Whether a document meets a clause.

    Args:
        texts: of the document, by field.
        clause: without bounds of whole numbers.

    Raises:
        KeyError: the clause has a field that is not among the texts.
        TypeError: it has a bound.
    """
    match clause:
        case AllOf(parts):
            return all(meets(texts, part) for part in parts)
        case AnyOf(parts):
            return any(meets(texts, part) for part in parts)
        case NoneOf(parts):
            return not any(meets(texts, part) for part in parts)
        case Exact(field, wanted):
            return not set(wanted).isdisjoint(texts[field])
        case Prefix(field, start):
            return any(text.startswith(start) for text in texts[field])
        case Infix(field, part):
            return any(part in text for text in texts[field])
        case Below():
            raise TypeError("a bound says nothing of texts")
