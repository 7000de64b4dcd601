"""Related records are read only where their shop is public, and the newest record of a key counts."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from indexer.records.related import RECORDS, CouponRecord, OfferRecord, RedirectRecord
from indexer.records.shop import ShopRecord
from indexer.sources.protocol import VERSION, Order
from indexer.state.related import RelatedRow, StateRelatedRecords
from indexer.state.schema import DuplicateKeyError, Origin, Presence
from indexer.state.state import State
from tests.support.catalogues import coupon, offer, program, redirect, shipping, shop, trust

CANARY = "zqcanaryzq"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """Two public shops, one under review, one removed, one that lost its domain."""
    shops = [
        shop("A", "a.internal", id="a", popularity=1),
        shop("B", "b.internal", id="b"),
        shop("Hidden", "h.internal", id="h", version=1, visibility="under_review"),
        shop("Removed", "r.internal", id="r", visibility="removed"),
        shop("Loser", "a.internal", id="l"),
    ]
    with State.create(tmp_path / "state" / "new.sqlite") as created:
        created.index()
        for line, fields in enumerate(shops, start=1):
            created.shops.put(ShopRecord.model_validate(fields), line)
        created.shops.settle()
        yield created


@pytest.fixture
def related_records(state: State) -> StateRelatedRecords:
    return state.related_records


def _put(related_records: StateRelatedRecords, kind: str, line: int = 1, /, **fields: Any) -> bool:  # noqa: ANN401 - JSON
    return related_records.put(kind, RECORDS[kind].model_validate(fields), line)


def _codes(related_records: StateRelatedRecords) -> list[tuple[str, str]]:
    return [(found.code, its_shop.id) for found, its_shop in related_records.coupons()]


def _of_each_kind(owner: str) -> dict[str, dict[str, Any]]:
    return {
        "coupons": coupon("A", owner, id="c1"),
        "offers": offer("o1", owner),
        "shipping": shipping(owner),
        "trust": trust(owner, "registrar", "R"),
        "affiliate_programs": program(owner, "Net"),
    }


@pytest.mark.rule("V1.dependents")
@pytest.mark.parametrize("owner", ["h", "r", "l", "unknown"])
def test_related_records_of_no_public_shop_are_left_out_of_every_answer(
    related_records: StateRelatedRecords, owner: str
) -> None:
    lines = _of_each_kind(owner)
    assert [_put(related_records, kind, **fields) for kind, fields in lines.items()] == [True] * 5
    assert [related_records.count(kind) for kind in lines] == [0] * 5
    assert [related_records.left_out(kind) for kind in lines] == [1] * 5
    assert [list(related_records.keys(kind)) for kind in lines] == [[]] * 5
    assert (list(related_records.coupons()), list(related_records.offers())) == ([], [])


@pytest.mark.rule("V1.dependents", "G3")
def test_related_records_of_a_hidden_shop_wait_and_come_back_with_it(
    state: State, related_records: StateRelatedRecords
) -> None:
    lines = _of_each_kind("h")
    for kind, fields in lines.items():
        _put(related_records, kind, **fields)
    shown = ShopRecord.model_validate(shop("Hidden", "h.internal", id="h", version=2))
    state.shops.put(shown, 9)
    state.shops.settle()
    records = {kind: RECORDS[kind].model_validate(fields) for kind, fields in lines.items()}
    assert list(related_records.coupons()) == [(records["coupons"], shown)]
    assert list(related_records.offers()) == [(records["offers"], shown, records["affiliate_programs"])]
    assert related_records.newest_offers("h", 3) == ((records["offers"],), 1)
    assert (related_records.shipping("h"), related_records.trust("h")) == (records["shipping"], (records["trust"],))
    assert [(related_records.count(kind), related_records.left_out(kind)) for kind in lines] == [(1, 0)] * 5


@pytest.mark.rule("G3")
@pytest.mark.parametrize("owner", ["a", "h"])
def test_a_row_says_all_that_is_known_of_a_record_of_any_shop(related_records: StateRelatedRecords, owner: str) -> None:
    fields = coupon("A", owner, id="c1", version=4)
    _put(related_records, "coupons", 7, **fields)
    text = CouponRecord.model_validate(fields).model_dump_json()
    assert related_records.row("coupons", "c1") == RelatedRow(
        "coupons", "c1", Order(VERSION, 4), Origin.CATALOGUE, 7, Presence.THERE, owner, None, None, text
    )
    tombstone = RelatedRow.tombstone("coupons", "c1", Order(VERSION, 5))
    related_records.write(tombstone)
    assert related_records.row("coupons", "c1") == tombstone
    assert (related_records.count("coupons"), related_records.left_out("coupons"), list(related_records.coupons())) == (
        0,
        0,
        [],
    )
    assert related_records.row("coupons", "c2") is None


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_the_newest_version_wins_in_any_order_of_arrival(
    related_records: StateRelatedRecords, order: tuple[int, int, int]
) -> None:
    for line, version in enumerate(order, start=1):
        _put(related_records, "coupons", line, **coupon(f"CODE{version}", "a", id="c1", version=version))
    assert _codes(related_records) == [("CODE3", "a")]


@pytest.mark.rule("V1.dependents")
@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize(
    ("owners", "left"), [(("a", "b"), [("NEW", "b")]), (("a", "h"), []), (("h", "b"), [("NEW", "b")])]
)
def test_a_record_that_moved_is_related_to_its_new_shop_alone(
    related_records: StateRelatedRecords, order: tuple[int, int], owners: tuple[str, str], left: list[tuple[str, str]]
) -> None:
    lines = {
        version: (coupon(code, owner, id="c1", version=version), offer("o1", owner, title=code, version=version))
        for version, code, owner in ((1, "OLD", owners[0]), (2, "NEW", owners[1]))
    }
    for line, version in enumerate(order, start=1):
        _put(related_records, "coupons", line, **lines[version][0])
        _put(related_records, "offers", line, **lines[version][1])
    assert _codes(related_records) == left
    assert [(found.title, its_shop.id) for found, its_shop, _ in related_records.offers()] == left
    assert [related_records.newest_offers(owner, 3)[1] for owner in ("a", "b")] == [0, len(left)]
    assert (related_records.count("coupons"), list(related_records.keys("coupons"))) == (len(left), ["c1"] * len(left))


@pytest.mark.parametrize(("first", "second"), [(None, None), (5, 5), (5, None), (None, 5)])
@pytest.mark.parametrize("owner", ["a", "h"])
def test_a_key_that_comes_twice_without_a_newer_version_is_an_error_that_names_no_value(
    related_records: StateRelatedRecords, first: int | None, second: int | None, owner: str
) -> None:
    _put(related_records, "coupons", 3, **coupon("A", owner, id=CANARY, version=first))
    with pytest.raises(DuplicateKeyError) as error:
        _put(related_records, "coupons", 9, **coupon("B", "a", id=CANARY, version=second))
    assert str(error.value) == "is already the key of line 3, and no version says which of them is newer"


def test_the_same_key_of_another_type_is_another_record(related_records: StateRelatedRecords) -> None:
    _put(related_records, "coupons", **coupon("A", "a", id="x"))
    _put(related_records, "offers", **offer("x", "b"))
    assert (related_records.count("coupons"), related_records.count("offers")) == (1, 1)


@pytest.mark.rule("M11.other_lists", "A1.offers")
def test_a_shops_newest_offers_come_first_and_all_are_counted(related_records: StateRelatedRecords) -> None:
    times = {"o1": None, "o2": "2031-05-06T07:08:09Z", "o3": "2031-05-06T09:08:09+02:00", "o4": "2031-05-07T00:00:00Z"}
    for offer_id, time in times.items():
        _put(related_records, "offers", **offer(offer_id, "a", updated_at=time))
    _put(related_records, "offers", **offer("o5", "b", updated_at="2032-01-01T00:00:00Z"))
    newest, total = related_records.newest_offers("a", 3)
    assert ([found.id for found in newest], total) == (["o4", "o2", "o3"], 4)


def test_offers_come_with_their_shop_and_its_first_programme_by_network(related_records: StateRelatedRecords) -> None:
    for network in ("Zeta", "Alpha"):
        _put(related_records, "affiliate_programs", **program("a", network))
    _put(related_records, "affiliate_programs", **program("h", "Aaa"))
    for offer_id, owner in (("o1", "a"), ("o2", "b")):
        _put(related_records, "offers", **offer(offer_id, owner))
    assert [
        (found.id, its_shop.id, its_program and its_program.network)
        for found, its_shop, its_program in related_records.offers()
    ] == [("o1", "a", "Alpha"), ("o2", "b", None)]


@pytest.mark.rule("A12", "V1.dependents")
def test_a_redirect_is_read_only_between_two_public_shops_and_each_finds_it(
    related_records: StateRelatedRecords,
) -> None:
    left = redirect("https://www.a.internal/x", "b.internal")
    hidden = [
        redirect("a.internal", "h.internal"),
        redirect("r.internal", "a.internal"),
        redirect("a.internal", "x.internal"),
        redirect("a.internal", "A.internal."),
    ]
    for line, fields in enumerate((left, *hidden), start=1):
        assert _put(related_records, "redirects", line, **fields)
    found = (RedirectRecord(from_domain="a.internal", to_domain="b.internal"),)
    assert [related_records.redirects(domain) for domain in ("a.internal", "b.internal")] == [found, found]
    assert related_records.left_out("redirects") == len(hidden)
    assert sorted(related_records.linked_domains("a.internal")) == [
        "a.internal", "b.internal", "h.internal", "r.internal", "x.internal",
    ]  # fmt: skip


def test_what_is_read_back_is_what_was_put(related_records: StateRelatedRecords) -> None:
    fields = coupon(
        "A", "a", valid_until="2031-05-06T07:08:09.000001+02:00", discount={"kind": "percent", "value": "5"}
    )
    offered = offer("o1", "a", price={"amount": "9.90", "currency": "EUR"})
    _put(related_records, "coupons", **fields)
    _put(related_records, "offers", **offered)
    ((found, _),) = related_records.coupons()
    ((found_offer, _, _),) = related_records.offers()
    assert (found, found_offer) == (CouponRecord.model_validate(fields), OfferRecord.model_validate(offered))
