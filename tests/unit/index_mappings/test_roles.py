"""Roles become engine fields: a field without a role is refused, and what the engines do not hold is no field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import pytest

from index_mappings.roles import EngineField, Form, Role, declared_fields, engine_fields, fields_with, stored_fields


@dataclass(frozen=True, slots=True)
class Stall:
    """A small document with each role once, and one with several."""

    id: Annotated[str, Role.STORED | Role.EXACT]
    rank: Annotated[str, Role.SORT]
    names: Annotated[tuple[str, ...], Role.STORED | Role.EXACT | Role.PREFIX]
    starts: Annotated[tuple[str, ...], Role.PREFIX | Role.TYPEAHEAD]
    insides: Annotated[tuple[str, ...], Role.INFIX]
    typed: Annotated[tuple[str, ...], Role.TYPEAHEAD]
    weight: Annotated[float | None, Role.STORED]
    until: Annotated[int, Role.RANGE]
    view: Annotated[Mapping[str, object] | None, Role.STORED]
    rows: Annotated[tuple[Mapping[str, object], ...], Role.STORED]


@dataclass(frozen=True, slots=True)
class Careless:
    """A document whose author forgot a role."""

    id: Annotated[str, Role.EXACT]
    secret: str


@pytest.mark.rule("X4")
def test_a_field_without_a_role_is_refused() -> None:
    with pytest.raises(TypeError, match="field secret of a document declares no role"):
        declared_fields(Careless)


@pytest.mark.rule("X4")
def test_the_fields_of_both_engines_follow_from_the_roles() -> None:
    assert engine_fields(Stall) == (
        EngineField("id", Form.TERMS, indexed=True),
        EngineField("rank", Form.TERMS, sortable=True),
        EngineField("names", Form.TERMS, indexed=True),
        EngineField("starts", Form.TERMS, indexed=True),
        EngineField("weight", Form.NUMBER),
        EngineField("until", Form.WHOLE, indexed=True),
        EngineField("view", Form.CARRIED),
        EngineField("rows", Form.CARRIED),
    )
    assert stored_fields(Stall) == ("id", "names", "weight", "view", "rows")
    assert fields_with(Stall, Role.PREFIX) == ("names", "starts")
    assert fields_with(Stall, Role.INFIX) == ("insides",)
