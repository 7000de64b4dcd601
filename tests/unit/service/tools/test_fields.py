"""The kinds of value that requests hold."""

import pytest
from pydantic_core import PydanticCustomError

from index_mappings.countries import COUNTRY_CODES
from service.tools.request import country_code, page_limit, page_offset, query_text


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
