"""The clauses of a plan: conditions on the stored terms of a document, which every engine can evaluate (X4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Not frozen: a search makes some twenty clauses, and a frozen dataclass takes three times as long to construct.


@dataclass(slots=True, unsafe_hash=True)
class Exact:
    """The field contains one of the texts."""

    field: str
    texts: tuple[str, ...]


@dataclass(slots=True, unsafe_hash=True)
class Prefix:
    """A text of the field begins with this text."""

    field: str
    text: str


@dataclass(slots=True, unsafe_hash=True)
class Infix:
    """A text of the field contains this text."""

    field: str
    text: str


@dataclass(slots=True, unsafe_hash=True)
class Below:
    """The integer field is less than the bound."""

    field: str
    bound: int


@dataclass(slots=True, unsafe_hash=True)
class NoneOf:
    """No clause holds."""

    clauses: tuple["Clause", ...]


@dataclass(slots=True, unsafe_hash=True)
class AllOf:
    """Every clause holds; without clauses, every document matches."""

    clauses: tuple["Clause", ...]


@dataclass(slots=True, unsafe_hash=True)
class AnyOf:
    """At least one clause holds; without clauses, no document matches."""

    clauses: tuple["Clause", ...]


Clause = Exact | Prefix | Infix | Below | AllOf | AnyOf | NoneOf
MATCH_ALL = AllOf(())


def any_of(clauses: Sequence[Clause]) -> Clause:
    """The disjunction of clauses; a single clause is returned as it is."""
    return clauses[0] if len(clauses) == 1 else AnyOf(tuple(clauses))


def meets(texts: Mapping[str, Sequence[str]], clause: Clause) -> bool:
    """Whether a document meets a clause.

    Args:
        texts: of the document, by field.
        clause: without `Below`.

    Raises:
        KeyError: the clause has a field that is not among the texts.
        TypeError: the clause contains a `Below`.
    """
    match clause:
        case AllOf(parts):
            return all(meets(texts, part) for part in parts)
        case AnyOf(parts):
            return any(meets(texts, part) for part in parts)
        case NoneOf(parts):
            return not any(meets(texts, part) for part in parts)
        case Exact(field, values):
            return not set(values).isdisjoint(texts[field])
        case Prefix(field, start):
            return any(text.startswith(start) for text in texts[field])
        case Infix(field, part):
            return any(part in text for text in texts[field])
        case Below():
            raise TypeError("a bound cannot be evaluated on texts")
