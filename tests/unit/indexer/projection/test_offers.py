"""Projection of coupons and offers: what callers see, and what is compared when they ask."""

from typing import Any, Final

import pytest

from index_mappings.documents import CouponDocument, OfferDocument
from index_mappings.rank import coupon_rank_key, newest_first_key
from index_mappings.timestamps import FAR_AHEAD, LONG_AGO
from indexer.projection.offers import is_reserved, offer_view, project_coupon, project_offer
from indexer.records.related import AffiliateProgramRecord, CouponRecord, OfferRecord
from indexer.records.shop import ShopRecord
from tests.support.catalogues import coupon, offer, program, shop

NORD: Final = ShopRecord.model_validate(shop("Nord", "nord.internal", id="s1", checkout_hosts=["pay.internal"]))
# 2031-05-06T07:08:09Z
TIME_US: Final = 1_935_817_689_000_000


def _coupon(**fields: Any) -> CouponDocument:  # noqa: ANN401 - JSON values
    return project_coupon(CouponRecord.model_validate(coupon("Save-5", "s1", id="c1", **fields)), NORD)


def _offer(url: str | None, **of_program: Any) -> OfferDocument:  # noqa: ANN401 - JSON values
    its_program = AffiliateProgramRecord.model_validate(program("s1", "Net", **of_program)) if of_program else None
    return project_offer(OfferRecord.model_validate(offer("o1", "s1", url=url)), NORD, its_program)


@pytest.mark.rule("A4")
def test_a_coupon_with_everything_stated_becomes_its_document() -> None:
    document = _coupon(
        title="Five off",
        discount={"kind": "amount", "value": "5.00", "currency": "EUR"},
        min_order={"amount": "20", "currency": "EUR"},
        countries=["DE", "AT"],
        valid_from="2031-05-06T09:08:09+02:00",
        valid_until="2031-05-07",
        verification_status="verified_applied",
        last_verified_at="2031-05-06T07:08:09.5Z",
        blocked_channels=["mcp"],
        blocked_countries=["US"],
        source="newsletter",
    )
    assert document == CouponDocument(
        id="c1",
        rank=coupon_rank_key(applied=True, last_verified_us=TIME_US + 500_000, coupon_id="c1"),
        shop_refs=("s1", "nord.internal"),
        valid_from_us=TIME_US,
        valid_until_us=TIME_US - (7 * 3_600 + 8 * 60 + 9) * 1_000_000 + (2 * 86_400 - 1) * 1_000_000,
        status="verified_applied",
        reserved="no",
        blocked_channels=("mcp",),
        blocked_countries=("US",),
        folded_code="save-5",
        view={
            "code": "Save-5",
            "title": "Five off",
            "discount": {"kind": "amount", "value": "5.00", "currency": "EUR"},
            "minOrder": {"amount": "20", "currency": "EUR"},
            "countries": ["DE", "AT"],
            "shop": {"id": "s1", "domain": "nord.internal", "name": "Nord"},
            "validFrom": "2031-05-06T07:08:09Z",
            "validUntil": "2031-05-07T23:59:59Z",
            "verificationStatus": "verified_applied",
            "lastVerifiedAt": "2031-05-06T07:08:09.500000Z",
            "source": "newsletter",
        },
    )


@pytest.mark.rule("A4", "A13", "I16", "I17")
def test_what_a_coupon_does_not_state_is_null_and_open() -> None:
    document = _coupon()
    assert (document.valid_from_us, document.valid_until_us, document.reserved) == (LONG_AGO, FAR_AHEAD, "no")
    assert document.rank == coupon_rank_key(applied=False, last_verified_us=None, coupon_id="c1")
    assert document.view == {
        "code": "Save-5",
        **dict.fromkeys(
            ("title", "discount", "minOrder", "countries", "validFrom", "validUntil", "lastVerifiedAt", "source")
        ),
        "shop": {"id": "s1", "domain": "nord.internal", "name": "Nord"},
        "verificationStatus": "unverified",
    }


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
def test_the_names_of_the_two_standards_are_reserved_and_no_others(domain: str, reserved: bool) -> None:  # noqa: FBT001
    assert is_reserved(domain) is reserved


@pytest.mark.rule("A2")
def test_an_offer_is_shown_without_its_url() -> None:
    record = OfferRecord.model_validate(
        offer(
            "o1",
            "s1",
            title="A lamp",
            url="https://nord.internal/lamp",
            price={"amount": "19.90", "currency": "EUR"},
            availability="in_stock",
            updated_at="2031-05-06T07:08:09Z",
        )
    )
    view = {
        "offer_id": "o1",
        "title": "A lamp",
        "price": {"amount": "19.90", "currency": "EUR"},
        "availability": "in_stock",
        "updated_at": "2031-05-06T07:08:09Z",
    }
    assert offer_view(record) == view
    assert project_offer(record, NORD, None) == OfferDocument(
        id="o1",
        rank=newest_first_key(TIME_US, "o1"),
        shop_refs=("s1", "nord.internal"),
        view=view,
        shop={"id": "s1", "domain": "nord.internal"},
        checkout_url="https://nord.internal/lamp",
        affiliate=None,
    )


@pytest.mark.rule("A2", "A13")
def test_what_an_offer_does_not_state_is_null() -> None:
    document = _offer(None)
    assert document.view == {
        "offer_id": "o1", "title": "Offer o1", "price": None, "availability": None, "updated_at": None,
    }  # fmt: skip
    assert (document.checkout_url, document.affiliate, document.rank) == (None, None, newest_first_key(None, "o1"))


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    ("url", "valid"),
    [
        ("https://nord.internal/a", True),
        ("https://shop.nord.internal/a", True),
        ("https://pay.internal/a", True),
        ("https://go.network.internal/a", False),
        ("http://nord.internal/a", False),
        ("nonsense", False),
    ],
)
def test_only_a_valid_url_is_stored_and_the_networks_host_is_none_of_them(url: str, valid: bool) -> None:  # noqa: FBT001
    document = _offer(url, program_id="p")
    assert document.checkout_url == (url if valid else None)
    assert (document.affiliate is not None) is valid


@pytest.mark.rule("A11")
def test_a_programme_comes_with_the_url_that_it_builds() -> None:
    document = _offer(
        "https://nord.internal/a?b=c", program_id="p1", commission_stated="4 %", disclosure="Advertisement"
    )
    assert document.affiliate == {
        "network": "Net",
        "program_id": "p1",
        "commission_stated": "4 %",
        "disclosure": "Advertisement",
        "url": "https://go.network.internal/click?to=https%3A%2F%2Fnord.internal%2Fa%3Fb%3Dc",
    }
