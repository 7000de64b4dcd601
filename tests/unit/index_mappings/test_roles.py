"""Roles become engine fields: a field without a role is refused, and every term is finished here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import pytest

from index_mappings.documents import DOCUMENTS
from index_mappings.roles import (
    EDGE_MAX,
    EngineField,
    Form,
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
    names: Annotated[tuple[str, ...], Role.STORED | Role.EXACT | Role.PREFIX | Role.MISSPELT]
    insides: Annotated[tuple[str, ...], Role.INFIX]
    weight: Annotated[float | None, Role.STORED]
    until: Annotated[int, Role.RANGE]
    view: Annotated[Mapping[str, object] | None, Role.STORED]
    rows: Annotated[tuple[Mapping[str, object], ...], Role.STORED]


@dataclass(frozen=True, slots=True)
class Careless:
    """A document whose author forgot a role."""

    id: Annotated[str, Role.EXACT]
    secret: str


@dataclass(frozen=True, slots=True)
class Forgiving:
    """A document whose author forgot what errors are looked for in."""

    id: Annotated[str, Role.EXACT | Role.MISSPELT]


@pytest.mark.rule("X4")
def test_a_field_without_a_role_is_refused() -> None:
    with pytest.raises(TypeError, match="field secret of a document declares no role"):
        declared_fields(Careless)


@pytest.mark.rule("X4")
def test_a_field_with_typing_errors_and_without_beginnings_is_refused() -> None:
    with pytest.raises(TypeError, match="field id of a document is MISSPELT without PREFIX"):
        declared_fields(Forgiving)


@pytest.mark.rule("X4")
def test_the_engine_fields_follow_from_the_roles() -> None:
    assert engine_fields(Stall) == (
        EngineField("id", Form.TERMS, indexed=True),
        EngineField("rank", Form.TERMS, sortable=True),
        EngineField("names", Form.TERMS, indexed=True),
        EngineField("names_edges", Form.TERMS, indexed=True),
        EngineField("names_long", Form.TERMS, indexed=True),
        EngineField("names_lack_0", Form.TERMS, indexed=True),
        EngineField("names_lack_1", Form.TERMS, indexed=True),
        EngineField("insides_suffixes", Form.TERMS, indexed=True),
        EngineField("weight", Form.NUMBER),
        EngineField("until", Form.WHOLE, indexed=True),
        EngineField("view", Form.CARRIED),
        EngineField("rows", Form.CARRIED),
    )
    assert stored_fields(Stall) == ("id", "names", "weight", "view", "rows")


@pytest.mark.rule("X4")
def test_an_engine_is_given_whole_values_beginnings_and_endings() -> None:
    assert engine_values(Stall("s1", "ff-s1", ("ab c", "abd"), ("kk", "k"), None, -7, {"a": 1}, ({"b": 2},))) == {
        "id": "s1",
        "rank": "ff-s1",
        "names": ["ab c", "abd"],
        "names_edges": ["a", "ab", "ab ", "ab c", "abd"],
        "names_long": [],
        "names_lack_0": ["b c"],
        "names_lack_1": ["a c"],
        "insides_suffixes": ["k", "kk"],
        "weight": None,
        "until": -7,
        "view": {"a": 1},
        "rows": [{"b": 2}],
    }


@pytest.mark.rule("X4")
def test_beginnings_end_at_the_edge_and_only_longer_values_are_kept_whole() -> None:
    at_the_edge, beyond = "a" * EDGE_MAX, "b" * (EDGE_MAX + 1)
    values = engine_values(Stall("s1", "r", (at_the_edge, beyond), (), 1.0, 0, None, ()))
    edges = values[edges_field("names")]
    assert EDGE_MAX == 66
    assert edges == [letter * length for letter in "ab" for length in range(1, EDGE_MAX + 1)]
    assert values[long_field("names")] == [beyond]


@pytest.mark.rule("X4")
def test_an_ending_is_never_cut() -> None:
    values = engine_values(Stall("s1", "r", (), ("緑" * 300,), None, 0, None, ()))
    assert values[suffixes_field("insides")] == ["緑" * length for length in range(1, 301)]


@pytest.mark.rule("X4")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_what_is_written_has_exactly_the_fields_that_are_declared(kind: str) -> None:
    document = DOCUMENTS[kind]
    samples = {Form.TERMS: "x", Form.WHOLE: 1, Form.NUMBER: 1.0, Form.CARRIED: {}}
    values = {field.name: samples[field.form] for field in declared_fields(document)}
    assert list(engine_values(document(**values))) == [field.name for field in engine_fields(document)]
