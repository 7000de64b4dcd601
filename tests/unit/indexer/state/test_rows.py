"""Related records are read only where their shop is public, and the newest record of a key counts."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from indexer.records.related import RECORDS, CouponRecord, RedirectRecord
from indexer.records.shop import VERSION, Order, ShopRecord
from indexer.state.rows import DuplicateKeyError, Origin, Presence, Row
from indexer.state.state import State
from tests.support.catalogues import coupon, offer, program, redirect, shop

CANARY = "zqcanaryzq"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """Of two public shops, one under review, and a removed one."""
    shops = [
        shop("A", "a.internal", id="a"),
        shop("B", "b.internal", id="b"),
        shop("Hidden", "h.internal", id="h", visibility="under_review"),
        shop("Removed", "r.internal", id="r", visibility="removed"),
    ]
    with State.create(tmp_path / "state" / "new.sqlite") as created:
        created.index()
        for line, fields in enumerate(shops, start=1):
            created.rows.put("shops", ShopRecord.model_validate(fields), line)
        created.public.settle()
        yield created


def _put(state: State, kind: str, line: int = 1, /, **fields: Any) -> bool:  # noqa: ANN401 - JSON values
    return state.rows.put(kind, RECORDS[kind].model_validate(fields), line)


def _codes(state: State) -> list[tuple[str, str]]:
    return [(found.code, its_shop.id) for found, its_shop in state.public.coupons()]


@pytest.mark.rule("G3")
@pytest.mark.parametrize("owner", ["a", "h"])
def test_a_row_says_all_that_is_known_of_a_record_of_any_shop(state: State, owner: str) -> None:
    fields = coupon("A", owner, id="c1", version=4)
    _put(state, "coupons", 7, **fields)
    text = CouponRecord.model_validate(fields).model_dump_json()
    assert state.rows.row("coupons", "c1") == Row(
        "coupons", "c1", Order(VERSION, 4), Origin.CATALOGUE, 7, Presence.THERE, shown=True, owner=owner, text=text
    )
    tombstone = Row("coupons", "c1", Order(VERSION, 5), Origin.CHANGE, 0, Presence.DELETED)
    state.rows.write(tombstone)
    assert state.rows.row("coupons", "c1") == tombstone
    assert (
        state.public.count("coupons"),
        state.public.left_out("coupons"),
        list(state.public.coupons()),
    ) == (
        0,
        0,
        [],
    )
    assert state.rows.row("coupons", "c2") is None


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_the_newest_version_wins_in_any_order_of_arrival(state: State, order: tuple[int, int, int]) -> None:
    for line, version in enumerate(order, start=1):
        _put(state, "coupons", line, **coupon(f"CODE{version}", "a", id="c1", version=version))
    assert _codes(state) == [("CODE3", "a")]


@pytest.mark.parametrize(("first", "second"), [(None, None), (5, 5), (5, None), (None, 5)])
@pytest.mark.parametrize("owner", ["a", "h"])
def test_a_key_that_comes_twice_without_a_newer_version_is_an_error_that_names_no_value(
    state: State, first: int | None, second: int | None, owner: str
) -> None:
    _put(state, "coupons", 3, **coupon("A", owner, id=CANARY, version=first))
    with pytest.raises(DuplicateKeyError) as error:
        _put(state, "coupons", 9, **coupon("B", "a", id=CANARY, version=second))
    assert str(error.value) == "is already the key of line 3, and no version says which of them is newer"


def test_offers_come_with_their_shop_and_its_first_programme_by_network(state: State) -> None:
    for network in ("Zeta", "Alpha"):
        _put(state, "affiliate_programs", **program("a", network))
    _put(state, "affiliate_programs", **program("h", "Aaa"))
    for offer_id, owner in (("o1", "a"), ("o2", "b")):
        _put(state, "offers", **offer(offer_id, owner))
    assert [
        (found.id, its_shop.id, its_program and its_program.network)
        for found, its_shop, its_program in state.public.offers()
    ] == [("o1", "a", "Alpha"), ("o2", "b", None)]


@pytest.mark.rule("A12", "V1.dependents")
def test_a_redirect_is_read_only_between_two_public_shops_and_each_finds_it(
    state: State,
) -> None:
    left = redirect("https://www.a.internal/x", "b.internal")
    hidden = [
        redirect("a.internal", "h.internal"),
        redirect("r.internal", "a.internal"),
        redirect("a.internal", "x.internal"),
        redirect("a.internal", "A.internal."),
    ]
    for line, fields in enumerate((left, *hidden), start=1):
        assert _put(state, "redirects", line, **fields)
    found = (RedirectRecord(from_domain="a.internal", to_domain="b.internal"),)
    assert [state.public.redirects(domain) for domain in ("a.internal", "b.internal")] == [found, found]
    assert state.public.left_out("redirects") == len(hidden)
    assert sorted(state.public.linked_domains("a.internal")) == [
        "a.internal", "b.internal", "h.internal", "r.internal", "x.internal",
    ]  # fmt: skip
