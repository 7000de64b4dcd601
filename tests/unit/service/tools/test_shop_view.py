"""What is written straight from the index is what the models that describe it would write, byte for byte."""

from dataclasses import asdict
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.documents import Shop
from service.search.protocol import Found, WordCount
from service.tools.find_shop import FindShopResponse, page_wire
from service.tools.list_coupons import Coupon, coupon_wire
from service.tools.shop_view import ShopView, shop_wire

TEXT: Final = st.text(st.characters(codec="utf-8"), max_size=8)
TEXTS: Final = st.lists(TEXT, max_size=3).map(tuple)
# As the indexer writes it; an engine may give its members back in any order.
OFFERS: Final = st.fixed_dictionaries(
    {
        "updated_at": st.none() | TEXT,
        "offer_id": TEXT,
        "price": st.none() | st.fixed_dictionaries({"currency": TEXT, "amount": TEXT}),
        "title": TEXT,
        "availability": st.sampled_from([None, "in_stock", "out_of_stock", "preorder", "discontinued"]),
    }
)
SHOPS: Final = st.builds(
    Shop,
    id=TEXT,
    name=TEXT,
    aliases=TEXTS,
    domain=TEXT,
    categories=st.lists(TEXT, min_size=1, max_size=3).map(tuple),
    countries=TEXTS,
    popularity=st.none(),
    offers=st.lists(OFFERS, max_size=2).map(tuple),
    offers_total=st.integers(0, 9),
)


MONEY: Final = st.fixed_dictionaries({"currency": TEXT, "amount": TEXT})
COUPONS: Final = st.fixed_dictionaries(
    {
        "source": st.none() | TEXT,
        "shop": st.fixed_dictionaries({"name": TEXT, "domain": TEXT, "id": TEXT}),
        "lastVerifiedAt": st.none() | TEXT,
        "verificationStatus": st.sampled_from(["verified_applied", "unverified"]),
        "validUntil": st.none() | TEXT,
        "validFrom": st.none() | TEXT,
        "countries": st.none() | st.lists(TEXT, max_size=3),
        "minOrder": st.none() | MONEY,
        "discount": st.none()
        | st.fixed_dictionaries(
            {"currency": st.none() | TEXT, "value": st.none() | TEXT, "kind": st.sampled_from(["percent", "other"])}
        ),
        "title": st.none() | TEXT,
        "code": TEXT,
    }
)


@pytest.mark.rule("A4")
@given(COUPONS)
def test_a_coupon_comes_out_as_its_model_does(view: dict[str, Any]) -> None:
    assert orjson.dumps(coupon_wire(view)) == orjson.dumps(Coupon.model_validate(view).model_dump(by_alias=True))


@pytest.mark.rule("A1", "A2", "I9", "I11")
@given(SHOPS)
def test_a_shop_comes_out_as_its_view_does(shop: Shop) -> None:
    assert orjson.dumps(shop_wire(shop)) == orjson.dumps(ShopView.model_validate(shop_wire(shop)).model_dump())


@pytest.mark.rule("I21", "I22", "I23", "I24")
@given(
    found=st.builds(
        Found,
        shops=st.lists(SHOPS, max_size=3).map(tuple),
        total=st.integers(0, 9),
        ignored=TEXTS,
        category_truncated=st.booleans(),
        did_you_mean=st.lists(SHOPS, max_size=3).map(tuple),
        word_counts=st.none() | st.lists(st.builds(WordCount, TEXT, st.integers(0, 9)), max_size=3).map(tuple),
    ),
    offset=st.integers(0, 9),
)
def test_a_page_comes_out_as_its_response_does(found: Found, offset: int) -> None:
    near: list[dict[str, Any]] = [
        {"id": shop.id, "name": shop.name, "domain": shop.domain} for shop in found.did_you_mean
    ]
    response = FindShopResponse.model_validate(
        {
            "results": [shop_wire(shop) for shop in found.shops],
            "total_count": found.total,
            "truncated": offset + len(found.shops) < found.total,
            "ignored_terms": found.ignored,
            "category_truncated": found.category_truncated,
            "did_you_mean": near,
            "word_counts": found.word_counts and [asdict(count) for count in found.word_counts],
        }
    )
    assert orjson.dumps(page_wire(found, offset)) == orjson.dumps(response.model_dump())
