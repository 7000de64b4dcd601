"""Projection: a public record becomes its document, and the record's own words stay as they were stated."""

import json
from collections import Counter
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.category_forms import category_forms
from index_mappings.documents import (
    CategoryDocument,
    CategoryEntry,
    Shop,
    ShopDocument,
    category_from_stored,
    shop_from_stored,
    stored_part,
)
from index_mappings.tiers import rank_key
from indexer.jobs.reading import Reading, read_catalogue
from indexer.projection import Projector, is_reserved, project_category, project_facts, project_shop
from indexer.records.problems import ProblemLog
from indexer.records.related import RECORDS, DeliveryTimePart, ShippingRecord
from indexer.records.shop import ShopRecord
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.public_records import CarriedCategory, ShopFacts
from indexer.state.state import States
from tests.support.catalogues import shipping, shop, write_catalogue_directory
from tests.support.sample import SAMPLE

TIME: Final = "2031-05-06T07:08:09Z"


def _shipping(stated: list[str]) -> dict[str, Any]:
    record = ShippingRecord.model_validate(shipping("s1", checked_at="2031-05-06T09:08:09+02:00", destinations=stated))
    return dict(project_facts(ShopFacts("s1", "nord.internal", record)).shipping or {})


@pytest.mark.rule("A7", "A13")
def test_a_destination_that_is_stated_twice_counts_once_and_an_empty_list_is_as_if_left_out() -> None:
    carried = [_shipping(stated) for stated in (["EU", "CH", "EU"], [])]
    assert [(stated["destinations"], stated["checked_at"]) for stated in carried] == [
        (["EU", "CH"], TIME), (None, TIME),
    ]  # fmt: skip


@pytest.mark.rule("A7", "A13")
def test_a_statement_that_states_nothing_in_an_earlier_state_is_no_statement() -> None:
    empty = ShippingRecord(
        shop_id="s1", destinations=(), destinations_exhaustive=True, delivery_time=DeliveryTimePart()
    )
    assert project_facts(ShopFacts("s1", "nord.internal", empty)).shipping is None


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
        logo="https://img.nord-licht.internal/logo.svg",
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
        logo="https://img.nord-licht.internal/logo.svg",
        offers=(),
        offers_total=0,
        redirects=(),
        registrable="nord-licht.internal",
        main_label="nordlicht",
        stated=("mueller", "muller", "nord"),
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
        other_keys=("licht",),
        words=("licht", "mueller", "muller", "nord"),
        infixes=("mueller", "muller", "nordlicht"),
        labels=("internal",),
        dotted=(),
        rests=(),
        clipped=("lich", "muell", "muelle", "mull", "mulle", "nor"),
        ships_to=("unknown:*",),
        codes=(),
        related_digest=sha256(b"unknown:*").hexdigest()[:16],
    )  # fmt: skip


# Of each kind a record with a value in every field, as no other field has it.
_FULL: Final[dict[str, dict[str, Any]]] = {
    "shops": {
        "id": "s1", "name": "Nord", "domain": "nord.internal", "categories": [{"slug": "books", "name": "Libri"}],
        "countries": ["DE"], "popularity": 0.8125, "aliases": ["Süd"], "checkout_hosts": ["pay.internal"],
        "logo": "https://nord.internal/logo.svg", "visibility": "public", "source": "crawl", "version": 3,
        "updated_at": TIME,
    },
    "categories": {
        "slug": "books", "name": "Libri", "names": {"it": "volumi"}, "synonyms": ["tomes"], "version": 3,
        "updated_at": TIME,
    },
    "coupons": {
        "id": "c1", "shop_id": "s1", "code": "SAVE", "title": "Ten", "discount": {
            "kind": "amount", "value": "5.00", "currency": "EUR",
        },
        "min_order": {"amount": "49.00", "currency": "CHF"}, "countries": ["AT"], "valid_from": "2031-05-06T07:08:10Z",
        "valid_until": "2031-05-06T07:08:11Z", "verification_status": "verified_applied",
        "last_verified_at": "2031-05-06T07:08:12Z", "blocked_channels": ["stdio"], "blocked_countries": ["CH"],
        "source": "letter", "version": 3, "updated_at": TIME,
    },
    "offers": {
        "id": "o1", "shop_id": "s1", "title": "Lamp", "url": "https://nord.internal/p", "price": {
            "amount": "89.90", "currency": "USD",
        },
        "availability": "preorder", "version": 3, "updated_at": TIME,
    },
    "shipping": {
        "shop_id": "s1", "destinations": ["EU"], "excluded": ["MT"], "destinations_exhaustive": True,
        "delivery_time": {"min_days": 611, "max_days": 612, "as_stated": "soon"},
        "free_shipping_threshold": {"amount": "60", "currency": "SEK"}, "checked_at": "2031-05-06T07:08:13Z",
        "source": "policy_page", "version": 3, "updated_at": TIME,
    },
    "policies": {
        "shop_id": "s1", "kind": "returns", "country": "FI", "category": "finite", "days": 417,
        "counted_from": "delivered", "fees": "paid", "methods": ["by_mail"], "countries": ["NO"], "as_stated": "a moon",
        "source": "page", "checked_at": "2031-05-06T07:08:14Z", "version": 3, "updated_at": TIME,
    },
    "trust": {
        "shop_id": "s1", "kind": "registrar", "value": "R", "source": "rdap", "checked_at": "2031-05-06T07:08:15Z",
        "version": 3, "updated_at": TIME,
    },
    "affiliate_programs": {
        "shop_id": "s1", "network": "Net", "program_id": "p9", "url_template": "https://go.network.internal/{url}",
        "network_hosts": ["go.network.internal"], "commission_stated": "4 %", "disclosure": "We earn", "version": 3,
        "updated_at": TIME,
    },
    "redirects": {
        "from_domain": "nord.internal", "to_domain": "south.internal", "observed_at": "2031-05-06T07:08:16Z",
        "source": "seen", "version": 3, "updated_at": TIME,
    },
}  # fmt: skip
# What no answer shows, or in another form only; and how new a record is.
_NOT_STORED: Final[dict[str, set[str]]] = {
    "shops": {"checkout_hosts", "visibility", "source"},
    "affiliate_programs": {"url_template", "network_hosts"},
}
_AGE: Final = {"version", "updated_at"}
_OTHER_END: Final = {**_FULL["shops"], "id": "s2", "domain": "south.internal"}


@pytest.mark.rule("A1", "A13")
def test_every_stated_field_is_stored_and_every_stored_field_is_read_back(tmp_path: Path) -> None:
    assert {kind: {*record} for kind, record in _FULL.items()} == {
        kind: {*model.model_fields} for kind, model in RECORDS.items() if kind != "resource_accounts"
    }
    lines = {kind: [record] for kind, record in _FULL.items() if kind != "shops"}
    catalogue = write_catalogue_directory(tmp_path / "catalogue", shops=[_FULL["shops"], _OTHER_END], **lines)
    state = States(tmp_path / "state", "a test").create("whole")
    letters = DeadLetters(tmp_path / "letters.ndjson")
    read_catalogue(Reading(NdjsonCatalogue(catalogue), None, None, letters, skip_invalid=False), state, ProblemLog())
    stored = {
        projected.kind: [stored_part(document) for document in projected.documents()]
        for projected in Projector(state).all()
    }
    text = json.dumps(stored, ensure_ascii=False)
    for kind, record in _FULL.items():
        missing = [field for field, value in record.items() if not all(part in text for part in _parts(value))]
        assert {*missing} - _AGE == _NOT_STORED.get(kind, set()), kind
    # A field of a reading class that nothing fills has its default.
    shops = [shop_from_stored(one) for one in stored["shops"] if one["id"] == "s1"]
    read: list[Shop | CategoryEntry] = [*shops, *map(category_from_stored, stored["categories"])]
    empty = [field.name for one in read for field in fields(one) if not getattr(one, field.name)]
    assert (len(read), empty) == (2, [])
    assert {*stored["shops"][0]} - {field.name for field in fields(Shop)} == {"related_digest"}
    state.close()


def _parts(value: object) -> list[str]:
    """The texts of a value's parts, as JSON has them."""
    if isinstance(value, dict | list):
        return [part for one in (value.values() if isinstance(value, dict) else value) for part in _parts(one)]
    return [json.dumps(value, ensure_ascii=False)]


@pytest.mark.rule("F21")
@pytest.mark.parametrize(
    ("logo", "hosts", "shown"),
    [
        (None, ("images.internal",), False),
        ("https://nord.internal/a.svg", (), True),
        ("https://a.b.nord.internal/a.svg", (), True),
        ("https://images.internal/nord.svg", (), False),
        ("https://images.internal/nord.svg", ("images.internal",), True),
        ("https://images.internal/nord.svg", ("other.internal",), False),
        ("https://evil-nord.internal/a.svg", ("images.internal",), False),
        ("https://nord.internal.evil.internal/a.svg", ("images.internal",), False),
    ],
)
def test_a_logo_is_on_the_shops_domain_or_on_a_host_of_the_setting(
    logo: str | None, hosts: tuple[str, ...], *, shown: bool
) -> None:
    record = ShopRecord.model_validate(shop("Nord", "nord.internal", logo=logo))
    assert project_shop(record, logo_hosts=hosts).logo == (logo if shown else None)


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
    forms = category_forms("books", "Books", [("de", "Bücher & Co")], [("fr", "de Livres")])
    named = CarriedCategory("books", "Books", 3, 2, (("de", "Bücher & Co"),), (("fr", "de Livres"),))
    assert project_category(named) == CategoryDocument(
        id="books",
        rank=rank_key(3.0, "books"),
        name="Books",
        count=3,
        words=("books", "bucher", "livres"),
        names=forms.names,
        translations={"de": "Bücher & Co"},
    )
