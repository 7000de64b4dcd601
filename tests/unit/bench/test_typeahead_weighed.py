"""The order that weighs: whole names first, then how much of what is begun against how well the shop is known."""

import pytest

from bench.typeahead.weighed import Weighed
from bench.typeahead.workload import Typed
from index_mappings.documents import ShopDocument
from indexer.project import project_shop
from indexer.records import ShopRecord
from tests.catalogues import shop


def _document(name: str, domain: str, popularity: float | None = None, countries: tuple[str, ...] = ()) -> ShopDocument:
    line = shop(
        name, domain, id="_".join(name.replace("&", "and").split()), popularity=popularity, countries=list(countries)
    )
    return project_shop(ShopRecord.model_validate(line))


SHOPS = [
    _document("Kestrel", "kestrel.internal"),
    _document("Kestrelhouse", "kh.internal"),
    _document("Kestrel Outdoor Clothing Company", "kocc.internal", 0.01),
    _document("Kestrel & Sons Furniture", "ksf.internal", 0.9),
    _document("Old Kestrel", "old.internal"),
    _document("Garden of Kestrel", "gk.internal", countries=("AT",)),
    _document("Kestrel Garden", "kg.internal", countries=("DE",)),
    _document("Kestrel Green", "kg.example", 0.5),
]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        # The whole name; then what is known; then the larger part of a name; a word within it last.
        (
            Typed("kestrel"),
            ["Kestrel", "Kestrel_and_Sons_Furniture", "Kestrel_Green", "Kestrelhouse"],
        ),
        # Who states the country, then who states none; not who states another.
        (Typed("kestrel g"), ["Kestrel_Green", "Kestrel_Garden", "Garden_of_Kestrel"]),
        (Typed("kestrel g", "DE"), ["Kestrel_Garden", "Kestrel_Green"]),
        (Typed("kestrel g", "AT"), ["Garden_of_Kestrel", "Kestrel_Green"]),
        # All words, in any order.
        (Typed("garden kestrel"), ["Kestrel_Garden", "Garden_of_Kestrel"]),
        (Typed("xyz"), []),
        (Typed(" "), []),
    ],
)
def test_what_fits_is_weighed_against_what_is_known(typed: Typed, expected: list[str]) -> None:
    assert Weighed(SHOPS).first(typed, 4) == expected


def test_shops_that_weigh_the_same_are_in_the_order_of_the_ids() -> None:
    equal = [_document(name, f"{name[-1]}.internal") for name in ("Kestrel C", "Kestrel A", "Kestrel B")]
    assert Weighed(equal).first(Typed("kes"), 2) == ["Kestrel_A", "Kestrel_B"]
