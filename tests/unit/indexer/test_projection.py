"""Projection: a public record becomes its document, and the record's own words stay as they were stated."""

from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.category_forms import category_forms
from index_mappings.documents import CategoryDocument, ShopDocument
from index_mappings.tiers import rank_key
from indexer.jobs.reading import Reading, read_catalogue
from indexer.projection import Projector, is_reserved, project_category, project_facts, project_shop
from indexer.records.problems import ProblemLog
from indexer.records.related import ShippingRecord
from indexer.records.shop import ShopRecord
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.public_records import CarriedCategory, ShopFacts
from indexer.state.state import States
from tests.support.catalogues import shipping, shop
from tests.support.sample import SAMPLE

TIME: Final = "2031-05-06T07:08:09Z"


def _shipping(stated: list[str]) -> dict[str, Any]:
    record = ShippingRecord.model_validate(shipping("s1", checked_at="2031-05-06T09:08:09+02:00", destinations=stated))
    return dict(project_facts(ShopFacts("s1", "nord.internal", record)).shipping or {})


@pytest.mark.rule("A7", "A13")
def test_a_destination_that_is_stated_twice_counts_once_and_none_at_all_is_no_gap() -> None:
    carried = [_shipping(stated) for stated in (["EU", "CH", "EU"], [])]
    assert [(stated["destinations"], stated["checked_at"]) for stated in carried] == [(["EU", "CH"], TIME), ([], TIME)]


@pytest.mark.rule("G3")
def test_all_documents_of_a_build_are_those_made_one_by_one(tmp_path: Path) -> None:
    state = States(tmp_path / "state", "a test").create("whole")
    letters = DeadLetters(tmp_path / "letters.ndjson")
    read_catalogue(Reading(NdjsonCatalogue(SAMPLE), None, None, letters, skip_invalid=False), state, ProblemLog())
    projector = Projector(state)

    made = {projected.kind: list(projected.documents()) for projected in projector.all()}

    for projected in projector.all():
        ids = list(projected.ids())
        assert sorted(document.id for document in made[projected.kind]) == sorted(ids)
        assert len(ids) == projected.count
        one_by_one = {document_id: projector.document(projected.kind, document_id) for document_id in ids}
        assert {document.id: document for document in made[projected.kind]} == one_by_one
    shops, facts = made["shops"], made["facts"]
    counted = Counter(
        offers=sum(bool(shop.offers) for shop in shops),  # type: ignore[union-attr]  # these are shops
        redirects=sum(bool(shop.redirects) for shop in shops),  # type: ignore[union-attr]
        shipping=sum(one.shipping is not None for one in facts),  # type: ignore[union-attr]  # these are facts
        policies=sum(bool(one.policies) for one in facts),  # type: ignore[union-attr]
        signals=sum(bool(one.signals) for one in facts),  # type: ignore[union-attr]
    )
    assert all(counted[what] > 0 for what in ("offers", "redirects", "shipping", "policies", "signals"))
    state.close()


@pytest.mark.rule("A4")
@pytest.mark.parametrize(
    ("domain", "reserved"),
    [
        ("a.test", True), ("a.b.example", True), ("a.invalid", True), ("a.localhost", True), ("example.com", True),
        ("shop.example.net", True), ("a.b.example.org", True), ("myexample.com", False), ("example.de", False),
        ("example.co.uk", False), ("test.com", False), ("example.com.internal", False), ("a.tests", False),
        ("a.internal", False),
    ],
)  # fmt: skip
def test_the_names_of_the_two_standards_are_reserved_and_no_others(domain: str, *, reserved: bool) -> None:
    assert is_reserved(domain) is reserved


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
        infixes=("mueller", "muller", "nordlicht"),
        labels=("internal",),
        dotted=(),
        rests=(),
        ships_to=("unknown:*",),
        codes=(),
        related_digest=sha256(b"unknown:*").hexdigest()[:16],
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
