"""Requests and the schemas of answers: kinds of value, absent ones, shop references, and how mistakes are reported."""

from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import Field
from pydantic_core import PydanticCustomError

from index_mappings.countries import COUNTRY_CODES
from service.errors import FieldError, InvalidInputError
from service.tools.list_categories import ListCategoriesRequest
from service.tools.registry import REGISTRY
from service.tools.request import country_code, page_limit, page_offset, query_text, validated
from service.tools.tool import ToolResponse, response_schema
from shop_directory.search.bounds import reduce_reference


def _errors(model: Any, arguments: object) -> tuple[FieldError, ...]:  # noqa: ANN401 - a request class
    with pytest.raises(InvalidInputError) as raised:
        validated(model, arguments)
    return raised.value.errors


@pytest.mark.rule("E6", "E5")
@pytest.mark.parametrize("name", ["x" * 65, "a\u2028b", "a\x00", ""])
def test_a_name_that_is_no_name_is_not_repeated(name: str) -> None:
    assert [error.field for error in _errors(ListCategoriesRequest, {name: 1})] == ["(a field)"]


@pytest.mark.rule("E6")
def test_at_most_twenty_mistakes_are_listed() -> None:
    assert len(_errors(ListCategoriesRequest, {f"f{number}": 1 for number in range(500)})) == 20


@pytest.mark.rule("R1", "R1.bounds")
@pytest.mark.parametrize(
    ("text", "lookup"),
    [
        ("shop_1", "shop_1"),
        ("  Shop_1 ", "Shop_1"),
        ("\t\r\nShop_1\n", "Shop_1"),
        ("\u200f Shop_1\u200e", "Shop_1"),
        ("\u2028\u3000https://example.com/a\u0085\v\f", "example.com"),
        ("no id", None),
        ("x" * 64, "x" * 64),
        ("x" * 65, None),
        ("localhost", "localhost"),
        ("http://localhost/", None),
        ("https://me:pw@WWW.Example.com:443/a?b#c", "example.com"),
        ("example.com.", "example.com"),
        ("Bücher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("shop。example", "shop.example"),
        ("shop.example.com", "shop.example.com"),
        (".", None),
        ("www.", None),
        ("shop_1.", None),
        ("https://shop_1./", None),
        ("a" * 254 + ".com", None),
        ("[Shop No. 1](https://example.com/a)", "example.com"),
        ("<https://example.com>,", "example.com"),
        ('"shop_1"', None),
        ("(shop_1).", None),
    ],
)
def test_a_reference_is_reduced_to_an_id_or_a_host(text: str, lookup: str | None) -> None:
    assert reduce_reference(text) == lookup


@pytest.mark.rule("M8")
def test_the_bounds_of_a_page_belong_to_it() -> None:
    assert (page_limit(1), page_limit(100), page_offset(0), page_offset(10**9)) == (1, 100, 0, 10**9)


@pytest.mark.rule("R4")
def test_countries_are_the_assigned_codes_and_kosovo() -> None:
    assert {"DE", "GB", "XK", "SS", "CW"} <= COUNTRY_CODES
    assert not {"UK", "XX", "EU", "AN", "SU", "ZZ"} & COUNTRY_CODES
    assert (len(COUNTRY_CODES), country_code("xk"), country_code("De")) == (250, "XK", "DE")


@pytest.mark.rule("M8", "E6")
def test_a_query_has_200_characters_and_12_folded_words() -> None:
    assert query_text("x" * 200) == "x" * 200
    assert query_text("a b c d e f g h i j k l") == "a b c d e f g h i j k l"
    assert query_text("a\tb\r\nc") == "a b  c"
    assert query_text("? " * 50) == "? " * 50
    for value in ("x" * 201, "a b c d e f g h i j k l m", "a.b.c.d.e.f.g.h.i.j.k.l.m"):
        with pytest.raises(PydanticCustomError, match="may have at most"):
            query_text(value)


UNIONS = {"anyOf", "oneOf", "allOf", "$ref", "$defs"}


class Thing(ToolResponse):
    word: Annotated[Literal["a", "b"] | None, Field(description="One of two words.")]
    either: Annotated[str | tuple[str, ...], Field(description="A text or several.")]


def _keys(schema: Any) -> set[str]:  # noqa: ANN401 - any part of a schema
    if isinstance(schema, dict):
        return {*schema}.union(*map(_keys, schema.values()))
    return set[str]().union(*map(_keys, schema)) if isinstance(schema, list) else set()


@pytest.mark.rule("A13")
def test_a_word_that_may_be_missing_is_null_in_its_schema_too() -> None:
    schema = response_schema(Thing)
    assert schema["properties"] == {
        "word": {"description": "One of two words.", "enum": ["a", "b", None], "type": ["string", "null"]},
        "either": {
            "description": "A text or several.", "type": ["string", "array"], "items": {"type": "string"},
        },
    }  # fmt: skip
    for word in ("a", "b", None):
        jsonschema.validate({"word": word, "either": ["x"]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"word": "c", "either": "x"}, schema)


@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_no_schema_of_an_answer_has_a_union_or_a_reference(tool: Any) -> None:  # noqa: ANN401 - any tool
    assert _keys(response_schema(tool.response)) & UNIONS == set()
