"""The roles of a document's fields, from which the engines' fields are derived.

No engine-side analyzer takes part in matching: engines get finished terms (X4).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum, Flag, auto
from functools import cache
from typing import Annotated, get_args, get_origin, get_type_hints


class Role(Flag):
    """What a field is for. A field may have several roles."""

    STORED = auto()  # returned with a hit
    EXACT = auto()  # found by its whole value
    PREFIX = auto()  # found by a prefix
    INFIX = auto()  # found by any part of it
    SORT = auto()  # orders the hits; one value per document
    RANGE = auto()  # an integer that is found by bounds
    TYPEAHEAD = auto()  # used by the typeahead's segments only, not by engines
    WALK = auto()  # all documents can be scanned in its order; one value per document


class Form(Enum):
    """The type of an engine field's values."""

    TERMS = auto()  # finished terms
    WHOLE = auto()  # integers of 64 bits
    NUMBER = auto()  # numbers that are only stored
    CARRIED = auto()  # structures that are only stored


@dataclass(frozen=True, slots=True)
class EngineField:
    """A field of both engines.

    Attributes:
        name: the name in the engine.
        form: the type of its values.
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


@cache
def declared_fields(document: type) -> tuple[DeclaredField, ...]:
    """The fields of a document class with their roles, in order."""
    hints = get_type_hints(document, include_extras=True)
    return tuple(_declared(field.name, hints[field.name]) for field in fields(document))


@cache
def engine_fields(document: type) -> tuple[EngineField, ...]:
    """The fields of a document class that both engines have, in the order of declaration.

    Each engine adds fields for its prefix and infix queries (`index_mappings.embedded`, `.opensearch`).
    """
    found: list[EngineField] = []
    for field in declared_fields(document):
        # With the whole values; prefix queries scan these.
        if field.roles & (Role.STORED | Role.EXACT | Role.PREFIX | Role.SORT | Role.RANGE | Role.WALK):
            indexed = bool(field.roles & (Role.EXACT | Role.PREFIX | Role.RANGE))
            sortable = bool(field.roles & (Role.SORT | Role.WALK))
            found.append(EngineField(field.name, field.form, indexed=indexed, sortable=sortable))
    return tuple(found)


@cache
def fields_with(document: type, role: Role) -> tuple[str, ...]:
    """The names of the fields that have a role."""
    return tuple(field.name for field in declared_fields(document) if role in field.roles)


def stored_fields(document: type) -> tuple[str, ...]:
    """The names of the fields that are returned with a hit."""
    return fields_with(document, Role.STORED)


def _declared(name: str, hint: object) -> DeclaredField:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"field {name} of a document declares no role")
    kind, roles = get_args(hint)
    return DeclaredField(name, roles, _form({kind, *get_args(kind)}, roles))


def _form(kinds: set[object], roles: Role) -> Form:
    if Role.RANGE in roles:
        return Form.WHOLE
    if {int, float} & kinds:
        return Form.NUMBER
    structures = {dict, Mapping} & {get_origin(kind) or kind for kind in kinds}
    return Form.CARRIED if structures else Form.TERMS
