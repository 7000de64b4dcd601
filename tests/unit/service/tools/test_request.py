"""Requests: absent values, unknown fields, shop references, and how mistakes are reported."""

from typing import Any

import pytest

from service.errors import FieldError, InvalidInputError
from service.tools.find_shop import FindShopRequest
from service.tools.get_shop import GetShopRequest
from service.tools.list_categories import ListCategoriesRequest
from service.tools.request import reduce_reference, validated


def _errors(model: Any, arguments: object) -> tuple[FieldError, ...]:  # noqa: ANN401 - a request class
    with pytest.raises(InvalidInputError) as raised:
        validated(model, arguments)
    return raised.value.errors


@pytest.mark.rule("R3", "I47", "I48")
@pytest.mark.parametrize("absent", [None, ""])
def test_null_and_the_empty_string_are_absence_where_a_field_is_optional(absent: object) -> None:
    names = ("country", "limit", "offset", "category", "shop_domain", "shop_id_or_domain")
    assert validated(FindShopRequest, {"query": "", **dict.fromkeys(names, absent)}) == FindShopRequest(query="")
    assert (FindShopRequest(query="").limit, FindShopRequest(query="").offset) == (50, 0)


@pytest.mark.rule("R3", "E5")
def test_an_unknown_field_is_named_with_the_allowed_ones_and_its_value_is_not() -> None:
    (error,) = _errors(ListCategoriesRequest, {"colour": "hunter2"})
    assert error == FieldError("colour", "is not a field of this tool; it takes shop_domain, shop_id_or_domain")


@pytest.mark.rule("E6", "E5")
@pytest.mark.parametrize("name", ["x" * 65, "a\u2028b", "a\x00", ""])
def test_a_name_that_is_no_name_is_not_repeated(name: str) -> None:
    assert [error.field for error in _errors(ListCategoriesRequest, {name: 1})] == ["(a field)"]


@pytest.mark.rule("E6")
def test_at_most_twenty_mistakes_are_listed() -> None:
    assert len(_errors(ListCategoriesRequest, {f"f{number}": 1 for number in range(500)})) == 20


@pytest.mark.rule("E6")
@pytest.mark.parametrize("arguments", [None, [], "x", 5, True])
def test_arguments_are_an_object(arguments: object) -> None:
    assert _errors(ListCategoriesRequest, arguments) == ()


@pytest.mark.rule("R1", "R1.bounds")
@pytest.mark.parametrize(
    ("text", "lookup"),
    [
        ("shop_1", "shop_1"),
        ("  Shop_1 ", "Shop_1"),
        ("\t\r\nShop_1\n", "Shop_1"),
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
    ],
)
def test_a_reference_is_reduced_to_an_id_or_a_host(text: str, lookup: str | None) -> None:
    assert reduce_reference(text) == lookup


@pytest.mark.rule("R2")
def test_either_name_of_the_shop_does_and_two_that_mean_one_shop_do_too() -> None:
    for arguments in (
        {"shop_domain": "a.example"},
        {"shop_id_or_domain": "a.example"},
        {"shop_domain": "https://www.a.example/x", "shop_id_or_domain": "A.example."},
        {"shop_domain": "", "shop_id_or_domain": "a.example"},
    ):
        assert validated(GetShopRequest, arguments).lookup == "a.example"


@pytest.mark.rule("R2.ignored")
def test_a_tool_without_a_shop_does_not_look_at_one() -> None:
    arguments = {"shop_domain": "   ", "shop_id_or_domain": "x" * 5000}
    assert validated(ListCategoriesRequest, arguments) == ListCategoriesRequest()
