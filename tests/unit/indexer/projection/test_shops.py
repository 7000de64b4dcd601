"""Projection: a public record becomes its document, and the record's own words stay as they were stated."""

import pytest

from index_mappings.category_forms import category_forms
from index_mappings.documents import CategoryDocument, ShopDocument
from index_mappings.rank import rank_key
from indexer.projection.shops import project_category, project_shop
from indexer.records.shop import ShopRecord
from indexer.state.shops import CarriedCategory
from tests.support.catalogues import shop


@pytest.mark.rule("X2", "R1")
def test_a_shop_becomes_its_document() -> None:
    line = shop(
        "Müller",
        "https://www.nord-licht.internal",
        id="s1",
        categories=["books", "garden"],
        countries=["DE", "AT"],
        popularity=0.5,
        aliases=["Nord", "Müller", "Nord"],
        checkout_hosts=["pay.internal"],
        version=3,
    )
    assert project_shop(ShopRecord.model_validate(line)) == ShopDocument(
        id="s1",
        refs=("s1", "nord-licht.internal"),
        rank=rank_key(0.5, "s1"),
        name="Müller",
        aliases=("Nord",),
        domain="nord-licht.internal",
        categories=("books", "garden"),
        primary="books",
        countries=("DE", "AT"),
        markets=("DE", "AT"),
        popularity=0.5,
        offers=(),
        offers_total=0,
        redirects=(),
        registrable="nord-licht.internal",
        main_label="nordlicht",
        names=("mueller", "muller", "nord", "nord licht internal", "nord-licht.internal"),
        leading=("mueller", "muller"),
        full=(
            "mueller", "muller", "nord", "nord licht", "nord licht internal", "nord-licht", "nord-licht.internal",
            "nordlicht",
        ),
        keys=(
            "licht", "mueller", "muller", "nord", "nord licht", "nord licht internal", "nord-licht",
            "nord-licht.internal", "nordlicht",
        ),
        words=("licht", "mueller", "muller", "nord"),
        infixes=("mueller", "muller", "nord", "nordlicht"),
        labels=("internal",),
        dotted=(),
        rests=(),
    )  # fmt: skip


@pytest.mark.rule("M7", "M9.country")
@pytest.mark.parametrize(
    ("stated", "domain", "markets"),
    [
        ([], "a.internal", ("*",)),
        ([], "a.co.uk", ("*", "GB")),
        (["WORLDWIDE"], "a.de", ("*", "WORLDWIDE")),
        (["XK", "DE"], "a.fr", ("XK", "DE")),
    ],
)
def test_a_shop_of_no_stated_market_or_of_the_world_remains_under_every_country(
    stated: list[str], domain: str, markets: tuple[str, ...]
) -> None:
    document = project_shop(ShopRecord.model_validate(shop("A", domain, countries=stated)))
    assert (document.countries, document.markets) == (tuple(stated), markets)


@pytest.mark.rule("A13")
def test_an_unknown_popularity_stays_unknown_and_ranks_as_nought() -> None:
    document = project_shop(ShopRecord.model_validate(shop("A", id="s1", popularity=None)))
    assert (document.popularity, document.rank) == (None, rank_key(0.0, "s1"))


@pytest.mark.rule("M11")
def test_categories_rank_by_count_then_slug() -> None:
    carried = [CarriedCategory(slug, slug, count, 1) for slug, count in (("a", 9), ("b", 10), ("c", 100), ("aa", 10))]
    ranked = sorted(map(project_category, carried), key=lambda document: document.rank)
    assert [document.id for document in ranked] == ["c", "aa", "b", "a"]
    forms = category_forms("books", "Books", [("de", "Bücher & Co"), ("fr", "de Livres")])
    named = CarriedCategory("books", "Books", 3, 2, (("de", "Bücher & Co"), ("fr", "de Livres")))
    assert project_category(named) == CategoryDocument(
        id="books",
        rank=rank_key(3.0, "books"),
        name="Books",
        count=3,
        words=("books", "bucher", "livres"),
        alone=forms.alone,
        whole=forms.whole,
    )
