"""What a plan is made of: clauses over finished terms, which every engine can tell of a document (X4)."""

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
