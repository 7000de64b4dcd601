"""Projection of coupons and offers: which domains are reserved, and which URLs are stored."""

from typing import Final

import pytest

from indexer.projection.offers import is_reserved, project_offer
from indexer.records.related import AffiliateProgramRecord, OfferRecord
from indexer.records.shop import ShopRecord
from tests.support.catalogues import offer, program, shop

NORD: Final = ShopRecord.model_validate(shop("Nord", "nord.internal", id="s1", checkout_hosts=["pay.internal"]))


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
def test_only_a_valid_url_is_stored_and_the_networks_host_is_none_of_them(url: str, *, valid: bool) -> None:
    its_program = AffiliateProgramRecord.model_validate(program("s1", "Net"))
    document = project_offer(OfferRecord.model_validate(offer("o1", "s1", url=url)), NORD, its_program)
    assert document.checkout_url == (url if valid else None)
    assert (document.affiliate is not None) is valid
