"""The roles that a document's field can have; the engines' fields are derived from them.

Each field declares its roles once, in its document class. No engine-side analyzer takes part in matching: an engine is
given finished terms (X4).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum, Flag, auto
from functools import cache
from itertools import accumulate
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from index_mappings.tiers import ONE_TYPO_MIN

# A query is cut at 64 characters (M9), and a typo may lengthen what it is compared with by two.
EDGE_MAX: Final = 66
# The places of characters without which beginnings are kept once more.
LACKING: Final = (0, 1)
# What is left of a beginning that a text with one error is compared with: the text may be longer by one.
_REST_MIN: Final = ONE_TYPO_MIN - 1


class Role(Flag):
    """What a field is for. A field may have several roles."""

    STORED = auto()  # comes back with a hit
    EXACT = auto()  # is found by its whole value
    PREFIX = auto()  # is found by its beginning
    MISSPELT = auto()  # is found by a beginning with typing errors as well; comes with PREFIX
    INFIX = auto()  # is found by any part of it
    SORT = auto()  # orders the hits; one value a document
    RANGE = auto()  # a whole number that is found by bounds
    WALK = auto()  # all documents can be gone through in its order; one value a document


class Form(Enum):
    """What the values of an engine field are."""

    TERMS = auto()  # finished terms
    WHOLE = auto()  # whole numbers of 64 bits
    NUMBER = auto()  # numbers that are only carried along
    CARRIED = auto()  # structures that are only carried along


@dataclass(frozen=True, slots=True)
class EngineField:
    """A field as both engines hold it.

    Attributes:
        name: the name in the engine.
        form: what its values are.
        indexed: whether values can be looked up.
        sortable: whether hits can be ordered by it.
    """

    name: str
    form: "Form"
    indexed: bool = False
    sortable: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A document class's field with its roles, as declared."""

    name: str
    roles: Role
    form: Form

    @property
    def is_field(self) -> bool:
        """Whether the engines hold a field of this very name, beside those of its terms."""
        return bool(self.roles & (Role.STORED | Role.EXACT | Role.SORT | Role.RANGE | Role.WALK))


def edges_field(name: str) -> str:
    """Where the beginnings (up to EDGE_MAX characters) of a PREFIX field are."""
    return f"{name}_edges"


def lacking_field(name: str, place: int) -> str:
    """Where the beginnings of a MISSPELT field are once more, without the character at one of the places LACKING.

    To forgive an error is a walk through the dictionary of beginnings, which is many times shorter where the first
    characters are given. An error in one of these needs no walk: what is left is as it was meant, and looked up here.
    """
    return f"{name}_lack_{place}"


def long_field(name: str) -> str:
    """Where the values of a PREFIX field that are longer than EDGE_MAX are, whole."""
    return f"{name}_long"


def suffixes_field(name: str) -> str:
    """Where the endings of an INFIX field are: a part is the beginning of an ending."""
    return f"{name}_suffixes"


@cache
def declared_fields(document: type) -> tuple[DeclaredField, ...]:
    """The fields of a document class with their roles, in order."""
    hints = get_type_hints(document, include_extras=True)
    return tuple(_declared(field.name, hints[field.name]) for field in fields(document))


@cache
def engine_fields(document: type) -> tuple[EngineField, ...]:
    """The engine's fields of a document class, in the order of declaration."""
    found: list[EngineField] = []
    for field in declared_fields(document):
        if field.is_field:
            indexed = bool(field.roles & (Role.EXACT | Role.RANGE))
            sortable = bool(field.roles & (Role.SORT | Role.WALK))
            found.append(EngineField(field.name, field.form, indexed=indexed, sortable=sortable))
        found.extend(EngineField(name, Form.TERMS, indexed=True) for name in _term_fields(field))
    return tuple(found)


def engine_values(document: object) -> dict[str, Any]:
    """The finished document as both engines are given it: field name to value or list of terms."""
    values: dict[str, Any] = {}
    beginnings: dict[str, list[str]] = {}  # many texts are in several fields
    document_class: type = type(document)
    for plan in _value_plans(document_class):
        value = getattr(document, plan.field)
        if plan.whole:
            values[plan.field] = list(value) if isinstance(value, tuple) else value
        if not plan.has_terms:
            continue
        texts = (value,) if isinstance(value, str) else value
        if plan.edges is not None and plan.long is not None:
            values[plan.edges] = _edges(texts, beginnings)
            values[plan.long] = [text for text in texts if len(text) > EDGE_MAX]
            for lacks, place in plan.lacking:
                values[lacks] = _lacking(values[plan.edges], place)
        if plan.suffixes is not None:
            values[plan.suffixes] = sorted({text[start:] for text in texts for start in range(len(text))})
    return values


def stored_fields(document: type) -> tuple[str, ...]:
    """The names of the fields that come back with a hit."""
    return tuple(field.name for field in declared_fields(document) if Role.STORED in field.roles)


def _declared(name: str, hint: object) -> DeclaredField:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"field {name} of a document declares no role")
    kind, *notes = get_args(hint)
    roles = Role(0)
    for note in notes:
        if isinstance(note, Role):
            roles |= note
    if Role.MISSPELT in roles and Role.PREFIX not in roles:
        raise TypeError(
            f"field {name} of a document is MISSPELT without PREFIX: errors are looked for in its beginnings"
        )
    return DeclaredField(name, roles, _form({kind, *get_args(kind)}, roles))


def _form(kinds: set[object], roles: Role) -> Form:
    if Role.RANGE in roles:
        return Form.WHOLE
    if {int, float} & kinds:
        return Form.NUMBER
    structures = {dict, Mapping} & {get_origin(kind) or kind for kind in kinds}
    return Form.CARRIED if structures else Form.TERMS


def _term_fields(field: DeclaredField) -> list[str]:
    names: list[str] = []
    if Role.PREFIX in field.roles:
        names += [edges_field(field.name), long_field(field.name)]
    if Role.MISSPELT in field.roles:
        names += [lacking_field(field.name, place) for place in LACKING]
    if Role.INFIX in field.roles:
        names.append(suffixes_field(field.name))
    return names


class _ValuePlan(NamedTuple):
    """What becomes of one declared field: worked out once a class, as a build asks it of every document."""

    field: str
    whole: bool
    has_terms: bool
    edges: str | None
    long: str | None
    lacking: tuple[tuple[str, int], ...]
    suffixes: str | None


@cache
def _value_plans(document: type) -> tuple[_ValuePlan, ...]:
    plans = []
    for field in declared_fields(document):
        prefix, infix = Role.PREFIX in field.roles, Role.INFIX in field.roles
        edges, long = (edges_field(field.name), long_field(field.name)) if prefix else (None, None)
        suffixes = suffixes_field(field.name) if infix else None
        lacking = tuple((lacking_field(field.name, place), place) for place in LACKING if Role.MISSPELT in field.roles)
        plans.append(_ValuePlan(field.name, field.is_field, prefix or infix, edges, long, lacking, suffixes))
    return tuple(plans)


def _edges(texts: Iterable[str], beginnings: dict[str, list[str]]) -> list[str]:
    """All beginnings, sorted, each once; those of single texts are kept in `beginnings`."""
    edges: list[str] = []
    before = ""
    # Of sorted texts each adds just the beginnings that it does not share with the one before, and in order.
    for whole in sorted(texts):
        text = whole[:EDGE_MAX]
        same = len(before) if text.startswith(before) else _shared(before, text)
        if (own := beginnings.get(text)) is None:
            own = beginnings[text] = list(accumulate(text))
        edges += own[same:]
        before = text
    return edges


def _lacking(beginnings: Iterable[str], place: int) -> list[str]:
    """What is left of beginnings without the character at a place, where it is long enough to be looked for."""
    return sorted({text[:place] + text[place + 1 :] for text in beginnings if len(text) > _REST_MIN})


def _shared(before: str, text: str) -> int:
    """How many characters two texts begin with in common."""
    for place, (one, other) in enumerate(zip(before, text, strict=False)):
        if one != other:
            return place
    return min(len(before), len(text))
