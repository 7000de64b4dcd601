"""The newest record of a key counts, a domain has one shop, and records are read only where their shop is public."""

from collections.abc import Iterable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from indexer.records.related import RECORDS, CategoryNamesRecord, CouponRecord, RedirectRecord
from indexer.records.shop import VERSION, Order, ShopRecord
from indexer.state.public_records import CarriedCategory
from indexer.state.rows import DuplicateKeyError, Origin, Presence, Row
from indexer.state.state import State
from tests.support.catalogues import coupon, offer, program, redirect, shop

CANARY = "zqcanaryzq"


def _shop(name: str, domain: str | None = None, /, **fields: Any) -> ShopRecord:  # noqa: ANN401 - JSON values
    return ShopRecord.model_validate(shop(name, domain, **fields))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with State.create(tmp_path / "state" / "new.sqlite") as created:
        created.index()
        yield created


def _put(state: State, records: Iterable[ShopRecord]) -> list[bool]:
    return [state.rows.put("shops", record, line) for line, record in enumerate(records, start=1)]


def _settled(state: State) -> list[ShopRecord]:
    """The public shops, each of which is found by its id and by its domain too."""
    state.public.settle()
    winners = [shop for shop, _, _ in state.public.shops()]
    assert state.public.count("shops") == len(winners)
    assert list(state.public.shop_ids()) == sorted(winner.id for winner in winners)
    assert [state.public.shop(winner.id) for winner in winners] == winners
    assert [state.public.domain_holder(winner.domain) for winner in winners] == [winner.id for winner in winners]
    return winners


@pytest.mark.rule("G3")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_record_with_a_version_is_newer_than_one_with_a_time_alone(state: State, order: tuple[int, int]) -> None:
    records = (_shop("Timed", id="s1", updated_at="2099-01-01T00:00:00Z"), _shop("Versioned", id="s1", version=0))
    assert _put(state, (records[position] for position in order)) == [True, False]
    assert [found.name for found in _settled(state)] == ["Versioned"]


@pytest.mark.rule("V1")
@pytest.mark.parametrize("seen", [("public", "removed"), ("under_review", "public"), ("public", "removed", "public")])
def test_of_two_records_that_no_version_orders_a_hidden_one_hides_the_shop(state: State, seen: tuple[str, ...]) -> None:
    state.rows.put("shops", _shop("A", id="s1", visibility=seen[0]), 1)
    for line, visibility in enumerate(seen[1:], start=2):
        with pytest.raises(DuplicateKeyError):
            state.rows.put("shops", _shop("A", id="s1", visibility=visibility), line)
    assert (_settled(state), state.public.shop("s1")) == ([], None)


@pytest.mark.rule("V1")
@pytest.mark.parametrize("hidden", ["under_review", "removed"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_newer_hidden_record_hides_the_older_public_one_in_any_order(
    state: State, hidden: str, order: tuple[int, int]
) -> None:
    records = (_shop("Old", id="s1", version=1), _shop("New", id="s1", version=2, visibility=hidden))
    _put(state, (records[position] for position in order))
    assert (_settled(state), state.public.shop("s1"), state.public.domain_holder(records[0].domain)) == ([], None, None)
    assert (list(state.public.categories()), state.public.category("things")) == ([], None)


@pytest.mark.rule("V1", "M1")
def test_a_domain_is_won_by_popularity_then_by_the_smaller_id_and_losers_are_reported_by_line(
    state: State,
) -> None:
    _put(
        state,
        [
            _shop("Less", "https://www.A.internal/", id="s1", popularity=0.2),
            _shop("Later", "b.internal", id="s3"),
            _shop("More", "a.internal", id="s9", popularity=0.3),
            _shop("Earlier", "B.internal.", id="s2", popularity=0),
            _shop("Hidden", "a.internal", id="s0", popularity=9, visibility="under_review"),
            _shop("Alone", "c.internal", id="S1"),
        ],
    )
    assert [(found.id, found.domain) for found in _settled(state)] == [
        ("s9", "a.internal"),
        ("S1", "c.internal"),
        ("s2", "b.internal"),
    ]
    assert state.public.lost_domains(9) == (((1, 3), (2, 4)), 2)
    assert state.public.lost_domains(1) == (((1, 3),), 2)
    assert list(state.public.shop_ids()) == ["S1", "s2", "s9"]
    assert [state.public.shop(shop_id) for shop_id in ("s0", "s1", "s3", "unknown")] == [None] * 4


@pytest.mark.rule("R1")
def test_a_domain_is_stored_as_it_is_read_back(state: State) -> None:
    _put(state, (_shop("A", "www.www.a.internal", id="s1"), _shop("B", "a.internal..", id="s2")))
    assert [(found.id, found.domain) for found in _settled(state)] == [("s1", "a.internal")]


@pytest.mark.rule("V1")
def test_a_category_has_its_most_frequent_name_then_the_smaller_and_counts_public_shops_only(
    state: State,
) -> None:
    _put(
        state,
        [
            _shop("A", id="s1", categories=[("books", "Zines"), ("garden", "Garden")]),
            _shop("B", id="s2", categories=[("books", "Books"), ("garden", "Allotment")]),
            _shop("C", id="s3", categories=[("books", "Zines")]),
            _shop("D", id="s4", categories=[("garden", "Hidden")], visibility="removed"),
            _shop("E", id="s5", categories=[("garden", "Hidden")], visibility="under_review"),
            _shop("F", id="s6", categories=[("secret", "Secret")], visibility="under_review"),
        ],
    )
    state.public.settle()
    carried = [CarriedCategory("books", "Zines", 3, 2), CarriedCategory("garden", "Allotment", 2, 2)]
    assert list(state.public.categories()) == carried
    assert [state.public.category(slug) for slug in ("books", "garden", "secret")] == [*carried, None]


def test_a_category_has_the_names_that_the_catalogue_gives_it(state: State) -> None:
    _put(
        state,
        [
            _shop("A", id="s1", categories=[("books", "Zines"), ("garden", "Garden")]),
            _shop("B", id="s2", categories=[("books", "Books"), ("garden", "Allotment")]),
            _shop("C", id="s3", categories=[("secret", "Secret")], visibility="under_review"),
        ],
    )
    for line, named in enumerate(
        (
            {
                "slug": "books",
                "name": "Books & Zines",
                "names": {"de": "Bücher", "fr": "Livres"},
                "synonyms": ["Hefte"],
            },
            {"slug": "garden", "synonyms": {"de": ["Rasen"]}},
            {"slug": "secret", "synonyms": ["hush"]},
        )
    ):
        state.rows.put("categories", CategoryNamesRecord.model_validate(named), line)
    state.public.settle()
    carried = [
        CarriedCategory("books", "Books & Zines", 2, 1, (("de", "Bücher"), ("fr", "Livres"), ("en", "Hefte"))),
        CarriedCategory("garden", "Allotment", 2, 2, (("de", "Rasen"),)),
    ]
    assert list(state.public.categories()) == carried
    assert [state.public.category(slug) for slug in ("books", "garden", "secret")] == [*carried, None]
    assert state.public.left_out("categories") == 1


@pytest.fixture
def owners(state: State) -> State:
    """Of two public shops, one under review, and a removed one."""
    _put(
        state,
        [
            _shop("A", "a.internal", id="a"),
            _shop("B", "b.internal", id="b"),
            _shop("Hidden", "h.internal", id="h", visibility="under_review"),
            _shop("Removed", "r.internal", id="r", visibility="removed"),
        ],
    )
    state.public.settle()
    return state


def _add(owners: State, kind: str, line: int = 1, /, **fields: Any) -> bool:  # noqa: ANN401 - JSON values
    return owners.rows.put(kind, RECORDS[kind].model_validate(fields), line)


def _codes(owners: State) -> list[tuple[str, str]]:
    return [(found.code, its_shop.id) for found, its_shop in owners.public.coupons()]


@pytest.mark.rule("G3")
@pytest.mark.parametrize("owner", ["a", "h"])
def test_a_row_says_all_that_is_known_of_a_record_of_any_shop(owners: State, owner: str) -> None:
    fields = coupon("A", owner, id="c1", version=4)
    _add(owners, "coupons", 7, **fields)
    text = CouponRecord.model_validate(fields).model_dump_json()
    assert owners.rows.row("coupons", "c1") == Row(
        "coupons", "c1", Order(VERSION, 4), Origin.CATALOGUE, 7, Presence.THERE, shown=True, owner=owner, text=text
    )
    tombstone = Row("coupons", "c1", Order(VERSION, 5), Origin.CHANGE, 0, Presence.DELETED)
    owners.rows.write(tombstone)
    assert owners.rows.row("coupons", "c1") == tombstone
    assert (owners.public.count("coupons"), owners.public.left_out("coupons"), [*owners.public.coupons()]) == (0, 0, [])
    assert owners.rows.row("coupons", "c2") is None


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_the_newest_version_wins_in_any_order_of_arrival(owners: State, order: tuple[int, int, int]) -> None:
    for line, version in enumerate(order, start=1):
        _add(owners, "coupons", line, **coupon(f"CODE{version}", "a", id="c1", version=version))
    assert _codes(owners) == [("CODE3", "a")]


@pytest.mark.parametrize(("first", "second"), [(None, None), (5, 5), (5, None), (None, 5)])
@pytest.mark.parametrize("owner", ["a", "h"])
def test_a_key_that_comes_twice_without_a_newer_version_is_an_error_that_names_no_value(
    owners: State, first: int | None, second: int | None, owner: str
) -> None:
    _add(owners, "coupons", 3, **coupon("A", owner, id=CANARY, version=first))
    with pytest.raises(DuplicateKeyError) as error:
        _add(owners, "coupons", 9, **coupon("B", "a", id=CANARY, version=second))
    assert str(error.value) == "is already the key of line 3, and no version says which of them is newer"


def test_offers_come_with_their_shop_and_its_first_programme_by_network(owners: State) -> None:
    for network in ("Zeta", "Alpha"):
        _add(owners, "affiliate_programs", **program("a", network))
    _add(owners, "affiliate_programs", **program("h", "Aaa"))
    for offer_id, owner in (("o1", "a"), ("o2", "b")):
        _add(owners, "offers", **offer(offer_id, owner))
    assert [
        (found.id, its_shop.id, its_program and its_program.network)
        for found, its_shop, its_program in owners.public.offers()
    ] == [("o1", "a", "Alpha"), ("o2", "b", None)]


@pytest.mark.rule("A12", "V1.dependents")
def test_a_redirect_is_read_only_between_two_public_shops_and_each_finds_it(
    owners: State,
) -> None:
    left = redirect("https://www.a.internal/x", "b.internal")
    hidden = [
        redirect("a.internal", "h.internal"),
        redirect("r.internal", "a.internal"),
        redirect("a.internal", "x.internal"),
        redirect("a.internal", "A.internal."),
    ]
    for line, fields in enumerate((left, *hidden), start=1):
        assert _add(owners, "redirects", line, **fields)
    found = (RedirectRecord(from_domain="a.internal", to_domain="b.internal"),)
    assert [owners.public.redirects(domain) for domain in ("a.internal", "b.internal")] == [found, found]
    assert owners.public.left_out("redirects") == len(hidden)
    assert sorted(owners.public.linked_domains("a.internal")) == [
        "a.internal", "b.internal", "h.internal", "r.internal", "x.internal",
    ]  # fmt: skip
