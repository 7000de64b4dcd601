"""Roles become engine fields: a field without a role is refused, and every term is finished here."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from index_mappings.documents import DOCUMENTS
from index_mappings.roles import (
    EDGE_MAX,
    EngineField,
    Role,
    declared_fields,
    edges_field,
    engine_fields,
    engine_values,
    long_field,
    stored_fields,
    suffixes_field,
)


@dataclass(frozen=True, slots=True)
class Stall:
    """A small document with each role once, and one with several."""

    id: Annotated[str, Role.STORED | Role.EXACT]
    rank: Annotated[str, Role.SORT]
    names: Annotated[tuple[str, ...], Role.STORED | Role.EXACT | Role.PREFIX]
    insides: Annotated[tuple[str, ...], Role.INFIX]
    weight: Annotated[float | None, Role.STORED]


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
def test_the_engine_fields_follow_from_the_roles() -> None:
    assert engine_fields(Stall) == (
        EngineField("id", indexed=True, sortable=False, number=False),
        EngineField("rank", indexed=False, sortable=True, number=False),
        EngineField("names", indexed=True, sortable=False, number=False),
        EngineField("names_edges", indexed=True, sortable=False, number=False),
        EngineField("names_long", indexed=True, sortable=False, number=False),
        EngineField("insides_suffixes", indexed=True, sortable=False, number=False),
        EngineField("weight", indexed=False, sortable=False, number=True),
    )
    assert stored_fields(Stall) == ("id", "names", "weight")


@pytest.mark.rule("X4")
def test_an_engine_is_given_whole_values_beginnings_and_endings() -> None:
    assert engine_values(Stall("s1", "ff-s1", ("ab c", "abd"), ("kk", "k"), None)) == {
        "id": "s1",
        "rank": "ff-s1",
        "names": ["ab c", "abd"],
        "names_edges": ["a", "ab", "ab ", "ab c", "abd"],
        "names_long": [],
        "insides_suffixes": ["k", "kk"],
        "weight": None,
    }


@pytest.mark.rule("X4")
def test_beginnings_end_at_the_edge_and_only_longer_values_are_kept_whole() -> None:
    at_the_edge, beyond = "a" * EDGE_MAX, "b" * (EDGE_MAX + 1)
    values = engine_values(Stall("s1", "r", (at_the_edge, beyond), (), 1.0))
    edges = values[edges_field("names")]
    assert EDGE_MAX == 66
    assert edges == [letter * length for letter in "ab" for length in range(1, EDGE_MAX + 1)]
    assert values[long_field("names")] == [beyond]


@pytest.mark.rule("X4")
def test_an_ending_is_never_cut() -> None:
    values = engine_values(Stall("s1", "r", (), ("緑" * 300,), None))
    assert values[suffixes_field("insides")] == ["緑" * length for length in range(1, 301)]


@pytest.mark.rule("X4")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_what_is_written_has_exactly_the_fields_that_are_declared(kind: str) -> None:
    document = DOCUMENTS[kind]
    values = {field.name: 1 if field.number else "x" for field in declared_fields(document)}
    assert list(engine_values(document(**values))) == [field.name for field in engine_fields(document)]
