"""Requests: absent values, unknown fields, shop references, and how mistakes are reported."""

from typing import Any

import pytest

from service.errors import FieldError, InvalidInputError
from service.tools.list_categories import ListCategoriesRequest
from service.tools.request import reduce_reference, validated


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
        ("[Shop No. 1](https://example.com/a)", "example.com"),
        ("<https://example.com>,", "example.com"),
        ('"shop_1"', None),
        ("(shop_1).", None),
    ],
)
def test_a_reference_is_reduced_to_an_id_or_a_host(text: str, lookup: str | None) -> None:
    assert reduce_reference(text) == lookup
