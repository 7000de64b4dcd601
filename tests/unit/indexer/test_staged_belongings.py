"""What belongs to shops is staged only where its shop is public, and the newest record of a key counts."""

from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from indexer.belongings import BELONGINGS, CouponRecord, OfferRecord, RedirectRecord
from indexer.records import ShopRecord
from indexer.staged_belongings import StagedBelongings
from indexer.staging import KeyTwiceError, Staging
from tests.catalogues import coupon, offer, program, redirect, shipping, shop, trust

Put = Callable[..., bool]
CANARY = "zqcanaryzq"


@pytest.fixture
def staging() -> Iterator[Staging]:
    """Two public shops, one under review, one removed, one that lost its domain."""
    shops = [
        shop("A", "a.internal", id="a", popularity=1),
        shop("B", "b.internal", id="b"),
        shop("Hidden", "h.internal", id="h", visibility="under_review"),
        shop("Removed", "r.internal", id="r", visibility="removed"),
        shop("Loser", "a.internal", id="l"),
    ]
    with Staging() as opened:
        for line, fields in enumerate(shops, start=1):
            opened.put(ShopRecord.model_validate(fields), line)
        opened.settle()
        yield opened


@pytest.fixture
def belongings(staging: Staging) -> StagedBelongings:
    return StagedBelongings(staging.connection)


def _put(belongings: StagedBelongings, kind: str, line: int = 1, /, **fields: Any) -> bool:  # noqa: ANN401 - JSON
    return belongings.put(kind, BELONGINGS[kind].model_validate(fields), line)


def _codes(belongings: StagedBelongings) -> list[tuple[str, str]]:
    return [(found.code, its_shop.id) for found, its_shop in belongings.coupons()]


@pytest.mark.rule("V1.dependents")
@pytest.mark.parametrize("owner", ["h", "r", "l", "nobody"])
def test_what_belongs_to_no_public_shop_is_refused_and_kept_from_every_answer(
    belongings: StagedBelongings, owner: str
) -> None:
    lines = {
        "coupons": coupon("A", owner),
        "offers": offer("o1", owner),
        "shipping": shipping(owner),
        "trust": trust(owner, "registrar", "R"),
        "affiliate_programs": program(owner, "Net"),
    }
    assert [_put(belongings, kind, **fields) for kind, fields in lines.items()] == [False] * 5
    assert [belongings.count(kind) for kind in lines] == [0] * 5
    assert [list(belongings.keys(kind)) for kind in lines] == [[]] * 5
    assert (list(belongings.coupons()), list(belongings.offers())) == ([], [])
    assert (belongings.newest_offers(owner, 3), belongings.shipping(owner), belongings.trust(owner)) == (
        ((), 0),
        None,
        (),
    )


@pytest.mark.rule("V1.dependents", "V1.silent")
def test_of_a_hidden_shops_records_only_the_key_and_the_version_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Staging() as staging:
        staging.put(ShopRecord.model_validate(shop("A", id="a")), 1)
        staging.put(ShopRecord.model_validate(shop("H", id=f"{CANARY}h", visibility="under_review")), 2)
        staging.settle()
        belongings = StagedBelongings(staging.connection)
        for owner in ("a", f"{CANARY}h"):
            mark = "shown" if owner == "a" else CANARY
            _put(belongings, "coupons", 1, **coupon(f"{mark}code", owner, id=f"c-{owner[-1]}", source=f"{mark}source"))
            _put(belongings, "offers", 1, **offer(f"o-{owner[-1]}", owner, title=f"{mark}title"))
        rows = staging.connection.execute("SELECT * FROM belongings WHERE record IS NULL ORDER BY key").fetchall()
        assert rows == [("coupons", "c-h", None, 1, None, None, None), ("offers", "o-h", None, 1, None, None, None)]
        staging.connection.execute("COMMIT")
        (path,) = tmp_path.rglob("staging.sqlite")
        # The shop's own id is kept: that of a record whose key is to be known when it comes again.
        written = path.read_bytes().replace(f"{CANARY}h".encode(), b"")
        assert b"shownsource" in written
        assert CANARY.encode() not in written


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_the_newest_version_wins_in_any_order_of_arrival(
    belongings: StagedBelongings, order: tuple[int, int, int]
) -> None:
    for line, version in enumerate(order, start=1):
        _put(belongings, "coupons", line, **coupon(f"CODE{version}", "a", id="c1", version=version))
    assert _codes(belongings) == [("CODE3", "a")]


@pytest.mark.rule("V1.dependents")
@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize(
    ("owners", "kept"), [(("a", "b"), [("NEW", "b")]), (("a", "h"), []), (("h", "b"), [("NEW", "b")])]
)
def test_a_record_that_moved_belongs_to_its_new_shop_alone(
    belongings: StagedBelongings, order: tuple[int, int], owners: tuple[str, str], kept: list[tuple[str, str]]
) -> None:
    lines = {
        version: (coupon(code, owner, id="c1", version=version), offer("o1", owner, title=code, version=version))
        for version, code, owner in ((1, "OLD", owners[0]), (2, "NEW", owners[1]))
    }
    for line, version in enumerate(order, start=1):
        _put(belongings, "coupons", line, **lines[version][0])
        _put(belongings, "offers", line, **lines[version][1])
    assert _codes(belongings) == kept
    assert [(found.title, its_shop.id) for found, its_shop, _ in belongings.offers()] == kept
    assert [belongings.newest_offers(owner, 3)[1] for owner in ("a", "b")] == [0, len(kept)]
    assert (belongings.count("coupons"), list(belongings.keys("coupons"))) == (len(kept), ["c1"] * len(kept))


@pytest.mark.parametrize(("first", "second"), [(None, None), (5, 5), (5, None), (None, 5)])
@pytest.mark.parametrize("owner", ["a", "h"])
def test_a_key_that_comes_twice_without_a_newer_version_is_an_error_that_names_no_value(
    belongings: StagedBelongings, first: int | None, second: int | None, owner: str
) -> None:
    _put(belongings, "coupons", 3, **coupon("A", owner, id=CANARY, version=first))
    with pytest.raises(KeyTwiceError) as error:
        _put(belongings, "coupons", 9, **coupon("B", "a", id=CANARY, version=second))
    assert str(error.value) == "is already the key of line 3, and no version says which of them is newer"


def test_the_same_key_of_another_type_is_another_record(belongings: StagedBelongings) -> None:
    _put(belongings, "coupons", **coupon("A", "a", id="x"))
    _put(belongings, "offers", **offer("x", "b"))
    assert (belongings.count("coupons"), belongings.count("offers")) == (1, 1)


@pytest.mark.rule("M11.other_lists", "A1.offers")
def test_a_shops_newest_offers_come_first_and_all_are_counted(belongings: StagedBelongings) -> None:
    times = {"o1": None, "o2": "2031-05-06T07:08:09Z", "o3": "2031-05-06T09:08:09+02:00", "o4": "2031-05-07T00:00:00Z"}
    for offer_id, time in times.items():
        _put(belongings, "offers", **offer(offer_id, "a", updated_at=time))
    _put(belongings, "offers", **offer("o5", "b", updated_at="2032-01-01T00:00:00Z"))
    newest, total = belongings.newest_offers("a", 3)
    assert ([found.id for found in newest], total) == (["o4", "o2", "o3"], 4)


def test_offers_come_with_their_shop_and_its_first_programme_by_network(belongings: StagedBelongings) -> None:
    for network in ("Zeta", "Alpha"):
        _put(belongings, "affiliate_programs", **program("a", network))
    _put(belongings, "affiliate_programs", **program("h", "Aaa"))
    for offer_id, owner in (("o1", "a"), ("o2", "b")):
        _put(belongings, "offers", **offer(offer_id, owner))
    assert [
        (found.id, its_shop.id, its_program and its_program.network)
        for found, its_shop, its_program in belongings.offers()
    ] == [("o1", "a", "Alpha"), ("o2", "b", None)]


@pytest.mark.rule("A12", "V1.dependents")
def test_a_redirect_is_kept_only_between_two_public_shops_and_each_finds_it(belongings: StagedBelongings) -> None:
    def put(start: str, end: str) -> bool:
        return belongings.put_redirect(RedirectRecord.model_validate(redirect(start, end)), 1)

    assert put("https://www.a.internal/x", "b.internal")
    hidden = [
        ("a.internal", "h.internal"),
        ("r.internal", "a.internal"),
        ("a.internal", "x.internal"),
        ("a.internal", "A.internal."),
    ]
    assert [put(start, end) for start, end in hidden] == [False] * len(hidden)
    kept = (RedirectRecord(from_domain="a.internal", to_domain="b.internal"),)
    assert [belongings.redirects(domain) for domain in ("a.internal", "b.internal", "h.internal")] == [kept, kept, ()]
    assert belongings.count("redirects") == 1


def test_what_is_read_back_is_what_was_put(belongings: StagedBelongings) -> None:
    fields = coupon(
        "A", "a", valid_until="2031-05-06T07:08:09.000001+02:00", discount={"kind": "percent", "value": "5"}
    )
    offered = offer("o1", "a", price={"amount": "9.90", "currency": "EUR"})
    _put(belongings, "coupons", **fields)
    _put(belongings, "offers", **offered)
    ((found, _),) = belongings.coupons()
    ((found_offer, _, _),) = belongings.offers()
    assert (found, found_offer) == (CouponRecord.model_validate(fields), OfferRecord.model_validate(offered))
