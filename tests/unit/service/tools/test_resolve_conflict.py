"""The rules of single tools: verdicts of a merge audit (A12), docs of get_trust."""

from collections.abc import Mapping
from typing import Any

import pytest

from index_mappings.documents import Shop
from service.tools.get_trust import GET_TRUST
from service.tools.resolve_conflict import Evidence, compare, verdict
from service.tools.tool import response_schema


def _shop(name: str, domain: str, **fields: Any) -> Shop:  # noqa: ANN401 - any field
    values: dict[str, Any] = {"aliases": (), "categories": (f"only-{domain}",), "countries": (), "popularity": None}
    return Shop(id=domain, name=name, domain=domain, **{**values, **fields})


def _redirect(start: str, end: str, observed_at: str | None = None) -> Mapping[str, str | None]:
    return {"from_domain": start, "to_domain": end, "observed_at": observed_at, "source": None}


ONE = _shop("Nordlicht", "nordlicht.de")
OTHER = _shop("Quelle", "quelle.fr")
PIECES = {
    "registrable_domain": (_shop("Nordlicht", "a.nordlicht.de"), _shop("Quelle", "nordlicht.de")),
    "main_label": (_shop("Nordlicht", "nord.de"), _shop("Quelle", "nord.co.uk")),
    "name_similarity": (_shop("Nordlichter", "a.de"), _shop("NORDLICHTERS", "b.de")),
    "shared_alias": (_shop("Nordlicht", "a.de"), _shop("Quelle", "b.de", aliases=("Nord-Licht",))),
    "stated_redirect": (ONE, _shop("Quelle", "quelle.fr", redirects=(_redirect("quelle.fr", "nordlicht.de"),))),
    "categories": (_shop("Nordlicht", "a.de", categories=("b", "c")), _shop("Quelle", "q.fr", categories=("c",))),
    "markets": (_shop("Nordlicht", "a.de", countries=("DE", "AT")), _shop("Quelle", "q.fr", countries=("AT",))),
}
VERDICTS = {
    "stated_redirect": "likely_same",
    **dict.fromkeys(("name_similarity", "categories", "markets"), "likely_different"),
}


def _agreeing(first: Shop, second: Shop) -> set[str]:
    return {piece.kind for piece in compare(first, second).pieces if piece.agrees}


@pytest.mark.rule("A12")
def test_two_shops_with_nothing_in_common_agree_in_nothing_and_every_piece_says_why() -> None:
    assert compare(ONE, OTHER).pieces == (
        Evidence("registrable_domain", False, "nordlicht.de and quelle.fr"),
        Evidence("main_label", False, "nordlicht and quelle"),
        Evidence("name_similarity", False, "names are 13% alike"),
        Evidence("shared_alias", False, "shared names: none"),
        Evidence("stated_redirect", False, "no redirect between them is stated"),
        Evidence("categories", False, "shared categories: none"),
        Evidence("markets", False, "not stated by both"),
    )
    assert verdict(compare(ONE, OTHER)) == "likely_different"


@pytest.mark.rule("A12")
@pytest.mark.parametrize("kind", PIECES)
def test_each_piece_agrees_by_itself_the_same_both_ways_and_has_its_verdict(kind: str) -> None:
    first, second = PIECES[kind]
    implied = {"main_label"} if kind == "registrable_domain" else set()
    assert _agreeing(first, second) == _agreeing(second, first) == {kind} | implied
    assert verdict(compare(first, second)) == VERDICTS.get(kind, "insufficient_evidence")


@pytest.mark.rule("A12")
@pytest.mark.parametrize(
    ("domain", "other"),
    [
        ("nord-licht.de", "nordlicht.fr"),
        ("nord-licht.de", "n-ordlicht.fr"),
        ("xn--nrd-licht-07a.de", "xn--nrdlicht-n4a.fr"),
    ],
)
def test_main_labels_are_compared_without_their_hyphens(domain: str, other: str) -> None:
    found = compare(_shop("Eins", domain), _shop("Quelle", other))
    labels = f"{domain.partition('.')[0]} and {other.partition('.')[0]}"
    assert found.pieces[1] == Evidence("main_label", True, labels)
    assert verdict(found) == "insufficient_evidence"


@pytest.mark.rule("A12")
def test_a_redirect_agrees_in_either_direction_and_only_between_the_two() -> None:
    there, back = _redirect("nordlicht.de", "quelle.fr"), _redirect("quelle.fr", "nordlicht.de", "2031-05-06T07:08:09Z")
    for redirect, detail in (
        (there, "nordlicht.de leads to quelle.fr"),
        (back, "quelle.fr leads to nordlicht.de, seen 2031-05-06T07:08:09Z"),
    ):
        first = _shop("Nordlicht", "nordlicht.de", redirects=(redirect,))
        assert compare(first, OTHER).pieces[4] == Evidence("stated_redirect", True, detail)
    elsewhere = _shop("Nordlicht", "nordlicht.de", redirects=(_redirect("nordlicht.de", "x.de"),))
    assert "stated_redirect" not in _agreeing(elsewhere, OTHER)


@pytest.mark.rule("A12")
@pytest.mark.parametrize(
    ("first", "second", "agrees"),
    [
        ((), (), False), (("DE",), (), False), (("DE",), ("FR",), False), (("DE", "FR"), ("FR",), True),
        (("WORLDWIDE",), ("FR",), True), (("WORLDWIDE",), (), False), (("WORLDWIDE",), ("WORLDWIDE",), True),
    ],
)  # fmt: skip
def test_markets_agree_when_both_state_a_shared_one(
    first: tuple[str, ...], second: tuple[str, ...], *, agrees: bool
) -> None:
    found = _agreeing(_shop("Nordlicht", "a.de", countries=first), _shop("Quelle", "q.fr", countries=second))
    assert ("markets" in found) is agrees


@pytest.mark.rule("A12")
def test_names_are_alike_from_ninety_per_cent() -> None:
    nine_of_ten = (_shop("abcdefghij", "a.de"), _shop("abcdefghix", "q.fr"))
    eight_of_nine = (_shop("abcdefghi", "a.de"), _shop("abcdefghx", "q.fr"))
    assert ("name_similarity" in _agreeing(*nine_of_ten), "name_similarity" in _agreeing(*eight_of_nine)) == (
        True,
        False,
    )


@pytest.mark.rule("A12")
def test_a_name_that_agrees_only_transliterated_joined_or_without_its_article_says_so() -> None:
    for name, alias, spelt in (
        ("Пять", "Pyat", "pyat"), ("Nordlicht", "Nord-Licht", "nordlicht"), ("The Lantern", "Lantern", "lantern"),
    ):  # fmt: skip
        found = compare(_shop(name, "nord.de"), _shop("Quelle", "quelle.fr", aliases=(alias,)))
        detail = f"shared names, but only transliterated, without spaces or articles: {spelt}"
        assert found.pieces[3] == Evidence("shared_alias", True, detail)
        assert not found.same_name


@pytest.mark.rule("A12")
@pytest.mark.parametrize(
    ("name", "other"),
    [("Nordlicht", "NORDLICHT"), ("Müller", "Mueller"), ("Marks & Spencer", "Marks and Spencer"), ("Café", "Cafe")],
)
def test_one_name_in_two_spellings_is_the_same_name(name: str, other: str) -> None:
    assert compare(_shop(name, "nord.de"), _shop(other, "quelle.fr")).same_name


def _on_one_domain(countries: tuple[str, ...], others: tuple[str, ...]) -> tuple[Shop, Shop]:
    return (
        _shop("Nordlicht", "a.nordlicht.de", countries=countries),
        _shop("Quelle", "nordlicht.de", aliases=("Nordlicht",), countries=others),
    )


@pytest.mark.rule("A12")
@pytest.mark.parametrize(
    ("countries", "others", "expected"),
    [
        ((), (), "likely_same"),
        (("DE",), (), "likely_same"),
        (("DE", "AT"), ("AT",), "likely_same"),
        (("WORLDWIDE",), ("FR",), "likely_same"),
        (("DE",), ("FR",), "insufficient_evidence"),
    ],
)
def test_one_name_on_one_domain_is_likely_one_shop_unless_its_stated_markets_are_disjoint(
    countries: tuple[str, ...], others: tuple[str, ...], expected: str
) -> None:
    first, second = _on_one_domain(countries, others)
    assert verdict(compare(first, second)) == verdict(compare(second, first)) == expected


@pytest.mark.rule("A12")
def test_a_stated_redirect_outweighs_markets_names_and_neighbours() -> None:
    first = _shop("Nordlicht", "nordlicht.de", countries=("DE",), redirects=(_redirect("nordlicht.de", "quelle.fr"),))
    second = _shop("Quelle", "quelle.fr", countries=("FR",))
    assert verdict(compare(first, second, domain_has_others=True)) == "likely_same"


@pytest.mark.rule("I35")
def test_callers_can_read_that_coverage_is_not_for_ranking_or_filtering() -> None:
    coverage = response_schema(GET_TRUST.response)["properties"]["signal_coverage"]["description"]
    for text in (GET_TRUST.description, coverage):
        assert "never rank or filter" in text
        assert "data" in text


@pytest.mark.rule("A8", "V2")
def test_callers_can_read_that_an_answer_does_not_mean_that_the_shop_is_known() -> None:
    assert "it does not mean that the shop is known" in GET_TRUST.description
