"""What a build takes over from the former state: an old catalogue does not undo newer changes (G3)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.records.related import RECORDS
from indexer.sources.protocol import Change
from indexer.state.changing import apply_changes
from indexer.state.remembered import Kept, take_over
from indexer.state.rows import Presence
from indexer.state.state import State
from tests.support.catalogues import coupon, offer, shop

pytestmark = pytest.mark.rule("G3")

TIME: Final = "2031-05-06T07:08:09Z"
LATER: Final = "2031-05-06T07:08:10Z"

# What a record says of its age: a version, a time, or nothing.
Age = int | str | None
Lines = Mapping[str, list[dict[str, Any]]]


def _shop(name: str, age: Age, shop_id: str = "s1") -> dict[str, Any]:
    aged = {} if age is None else {"version" if isinstance(age, int) else "updated_at": age}
    return shop(name, f"{shop_id}.internal", id=shop_id, **aged)


def _upsert(kind: str, fields: Mapping[str, Any]) -> Change:
    record = RECORDS[kind].model_validate(fields)
    return Change(kind, record.key, record.order, record, "changes:1")


def _delete(kind: str, key: str, age: Age) -> Change:
    aged = RECORDS["shops"].model_validate(_shop("A", age))
    return Change(kind, key, aged.order, None, "changes:1")


def _put(state: State, lines: Lines) -> None:
    for kind, records in lines.items():
        for line, fields in enumerate(records, start=1):
            record: Any = RECORDS[kind].model_validate(fields)
            if kind == "shops":
                state.rows.put("shops", record, line)
            else:
                state.rows.put(kind, record, line)


def _former(folder: Path, lines: Lines, *changes: Change) -> Path:
    path = folder / "former.sqlite"
    with State.create(path) as state:
        _put(state, lines)
        state.index()
        state.public.settle()
        state.seal()
    with State.open(path) as state, state.transaction():
        assert apply_changes(state, changes) == (len(changes), 0)
    return path


def _fresh(folder: Path, former: Path, lines: Lines) -> State:
    state = State.create(folder / "fresh.sqlite")
    _put(state, lines)
    take_over(state.connection, former)
    state.index()
    state.public.settle()
    return state


def _known(state: State, shop_id: str = "s1") -> tuple[Presence, str | None] | None:
    row = state.rows.row("shops", shop_id)
    return None if row is None else (row.presence, None if row.shop is None else row.shop.name)


CHANGED, CATALOGUE, DELETED = (
    (Presence.THERE, "Changed"), (Presence.THERE, "Catalogue"), (Presence.DELETED, None),
)  # fmt: skip


@pytest.mark.rule("V1")
@pytest.mark.parametrize("changed_by", ["upsert", "hide", "delete"])
@pytest.mark.parametrize(
    ("before", "changed", "catalogue", "is_newer"),
    [
        (1, 5, 1, False), (TIME, LATER, TIME, False), (TIME, 5, TIME, False), (None, 5, None, False),
        (None, TIME, None, False), (1, 5, 6, True), (TIME, LATER, 0, True),
    ],
)  # fmt: skip
def test_a_change_is_undone_by_a_newer_catalogue_alone(
    tmp_path: Path, changed_by: str, before: Age, changed: Age, catalogue: Age, *, is_newer: bool
) -> None:
    record = {**_shop("Changed", changed), "visibility": "under_review" if changed_by == "hide" else "public"}
    change = _delete("shops", "s1", changed) if changed_by == "delete" else _upsert("shops", record)
    former = _former(tmp_path, {"shops": [_shop("Catalogue", before)]}, change)
    with _fresh(tmp_path, former, {"shops": [_shop("Catalogue", catalogue)]}) as state:
        assert _known(state) == (CATALOGUE if is_newer else DELETED if changed_by == "delete" else CHANGED)
        assert list(state.public.shop_ids()) == (["s1"] if is_newer or changed_by == "upsert" else [])
    with State.open(former) as state:  # it was only read
        assert _known(state) == (DELETED if changed_by == "delete" else CHANGED)


@pytest.mark.rule("V1")
@pytest.mark.parametrize("changed_by", ["hide", "delete"])
def test_what_hides_wins_over_a_catalogue_of_the_same_version(tmp_path: Path, changed_by: str) -> None:
    hidden = _upsert("shops", {**_shop("Changed", 2), "visibility": "under_review"})
    former = _former(
        tmp_path, {"shops": [_shop("A", 1)]}, hidden if changed_by == "hide" else _delete("shops", "s1", 2)
    )
    with _fresh(tmp_path, former, {"shops": [_shop("A", 2)]}) as state:
        assert list(state.public.shop_ids()) == []


@pytest.mark.parametrize(
    ("former", "catalogue", "is_newer"),
    [
        (5, 4, False), (LATER, TIME, False), (None, 1, True), (None, TIME, True), (LATER, 0, True), (5, TIME, True),
        (5, None, True), (TIME, None, True),
    ],
)  # fmt: skip
def test_an_older_catalogue_does_not_undo_a_newer_one_unless_it_begins_or_ceases_to_state_versions(
    tmp_path: Path, former: Age, catalogue: Age, *, is_newer: bool
) -> None:
    path = _former(tmp_path, {"shops": [_shop("Former", former)]})
    with _fresh(tmp_path, path, {"shops": [_shop("Catalogue", catalogue)]}) as state:
        assert _known(state) == (CATALOGUE if is_newer else (Presence.THERE, "Former"))


def test_the_tombstone_of_a_shop_that_no_catalogue_has_stays_through_many_builds(tmp_path: Path) -> None:
    former = _former(tmp_path, {"shops": [_shop("A", 1)]}, _delete("shops", "s1", 2))
    for turn in range(3):
        folder = tmp_path / str(turn)
        with _fresh(folder, former, {"shops": [_shop("B", 9, "s2")]}) as state:
            assert _known(state) == (Presence.DELETED, None)
            assert apply_changes(state, [_upsert("shops", _shop("Late", 1))]) == (0, 0)
            state.seal()
        former = folder / "fresh.sqlite"


@pytest.mark.parametrize(("late", "known"), [(4, None), (5, "Late"), (6, "Late")])
def test_a_shop_that_the_catalogue_has_no_more_is_not_brought_back_by_an_older_change(
    tmp_path: Path, late: int, known: str | None
) -> None:
    former = _former(tmp_path, {"shops": [_shop("A", 5), _shop("B", 1, "s2")]})
    with _fresh(tmp_path, former, {"shops": [_shop("B", 1, "s2")]}) as state:
        assert _known(state) == (Presence.MISSING, None)
        assert [found.id for found, _ in state.public.shops()] == ["s2"]
        apply_changes(state, [_upsert("shops", _shop("Late", late))])
        assert _known(state) == ((Presence.MISSING, None) if known is None else (Presence.THERE, known))


@pytest.mark.parametrize(("again", "known"), [(4, Presence.MISSING), (5, Presence.THERE)])
def test_a_shop_that_a_catalogue_lacked_comes_back_with_the_next_catalogue_unless_that_is_older(
    tmp_path: Path, again: int, known: Presence
) -> None:
    former = _former(tmp_path, {"shops": [_shop("A", 5)]})
    with _fresh(tmp_path / "lacking", former, {"shops": []}) as state:
        assert _known(state) == (Presence.MISSING, None)
        state.seal()
    with _fresh(tmp_path / "again", tmp_path / "lacking" / "fresh.sqlite", {"shops": [_shop("A", again)]}) as state:
        assert _known(state) == (known, "A" if known is Presence.THERE else None)


@pytest.mark.parametrize(
    ("changed", "newest", "stays"),
    [
        (7, 6, True),
        (6, 6, False),
        (5, 6, False),
        (LATER, TIME, True),
        (TIME, TIME, False),
        (TIME, 0, False),
        (0, TIME, True),
        (1, None, True),
    ],
)
def test_a_shop_that_a_change_brought_stays_while_it_is_newer_than_all_that_the_catalogue_has(
    tmp_path: Path, changed: Age, newest: Age, *, stays: bool
) -> None:
    former = _former(tmp_path, {"shops": []}, _upsert("shops", _shop("Brought", changed)))
    with _fresh(tmp_path, former, {"shops": [_shop("B", newest, "s2")]}) as state:
        assert _known(state) == ((Presence.THERE, "Brought") if stays else (Presence.MISSING, None))
        assert sorted(state.public.shop_ids()) == (["s1", "s2"] if stays else ["s2"])


@pytest.mark.rule("V1")
def test_a_database_decides_what_it_lacks_however_new_the_change_was_that_brought_it(tmp_path: Path) -> None:
    former = _former(tmp_path, {"shops": []}, _upsert("shops", _shop("Brought", 7)))
    with State.create(tmp_path / "fresh.sqlite") as state:
        _put(state, {"shops": [_shop("B", 6, "s2")]})
        assert take_over(state.connection, former, current=True) == {}
        state.index()
        state.public.settle()
        assert (_known(state), list(state.public.shop_ids())) == ((Presence.MISSING, None), ["s2"])
        # One that was written after the database was read is read again as a change.
        assert apply_changes(state, [_upsert("shops", _shop("Brought", 7))]) == (1, 0)


def test_nothing_is_remembered_of_a_record_that_said_nothing_of_its_age(tmp_path: Path) -> None:
    former = _former(tmp_path, {"shops": [_shop("A", None), _shop("B", None, "s2")]})
    with _fresh(tmp_path, former, {"shops": [_shop("Renamed", None, "s2")]}) as state:
        assert (_known(state), _known(state, "s2")) == (None, (Presence.THERE, "Renamed"))


def test_related_records_are_remembered_type_by_type(tmp_path: Path) -> None:
    former = _former(
        tmp_path,
        {
            "shops": [_shop("A", 1)],
            "coupons": [coupon("OLD", "s1", id="x", version=1), coupon("GONE", "s1", id="gone", version=3)],
            "offers": [offer("x", "s1", version=1)],
        },
        _upsert("coupons", coupon("NEW", "s1", id="x", version=50)),
        _upsert("coupons", coupon("BROUGHT", "s1", id="brought", version=11)),
        _delete("offers", "x", 2),
    )
    lines: Lines = {
        "shops": [_shop("A", 1)],
        "coupons": [coupon("OLD", "s1", id="x", version=10)],
        "offers": [offer("x", "s1", version=1), offer("brought", "s1", version=99)],
    }
    with _fresh(tmp_path, former, lines) as state:
        rows = {
            (kind, key): row.presence if (row := state.rows.row(kind, key)) else None
            for kind in ("coupons", "offers")
            for key in ("x", "gone", "brought")
        }
        assert rows == {
            ("coupons", "x"): Presence.THERE,
            ("coupons", "gone"): Presence.MISSING,
            ("coupons", "brought"): Presence.THERE,
            ("offers", "x"): Presence.DELETED,
            ("offers", "gone"): None,
            ("offers", "brought"): Presence.THERE,
        }
        assert sorted(found.code for found, _ in state.public.coupons()) == ["BROUGHT", "NEW"]
        assert [found.id for found, _, _ in state.public.offers()] == ["brought"]


def test_what_was_kept_is_counted_by_type_and_listed_for_the_owner_alone(tmp_path: Path) -> None:
    former = _former(
        tmp_path,
        {"shops": [_shop("A", None), _shop("Same", None, "same"), _shop("Gone", None, "gone")]},
        _upsert("shops", {**_shop("A", 2), "visibility": "under_review"}),
        _upsert("shops", _shop("Same", 2, "same")),
        _upsert("shops", _shop("New", 2, "new")),
        _upsert("shops", _shop("Another", 3, "another")),
        _delete("shops", "gone", 4),
        _delete("shops", "unknown", 4),
        _upsert("coupons", coupon("NEW", "new", id="c1", version=2)),
    )
    state, listing = State.create(tmp_path / "fresh.sqlite"), tmp_path / "kept.ndjson"
    with state:
        _put(state, {"shops": [_shop("A", None), _shop("Same", None, "same"), _shop("Gone", None, "gone")]})
        assert take_over(state.connection, former, listing) == {"shops": Kept(2, 2), "coupons": Kept(1, 0)}
        state.seal()
    assert [tuple(json.loads(line).values()) for line in listing.read_text(encoding="utf-8").splitlines()] == [
        ("shops", "s1", "older"),
        ("shops", "gone", "older"),
        ("shops", "new", "lacks it"),
        ("shops", "another", "lacks it"),
        ("coupons", "c1", "lacks it"),
    ]
    assert listing.stat().st_mode & 0o777 == 0o600
    with State.create(tmp_path / "last.sqlite") as last:
        _put(last, {"shops": [_shop(name, 9, name) for name in ("s1", "same", "gone", "new", "another")]})
        _put(last, {"coupons": [coupon("NEW", "new", id="c1", version=9)]})
        assert take_over(last.connection, tmp_path / "fresh.sqlite", listing) == {}
    assert not listing.exists()


def test_a_type_that_the_catalogue_has_no_more_leaves_tombstones(tmp_path: Path) -> None:
    former = _former(tmp_path, {"shops": [_shop("A", 1)], "coupons": [coupon("A", "s1", id="c1", version=4)]})
    with _fresh(tmp_path, former, {"shops": [_shop("A", 1)]}) as state:
        row = state.rows.row("coupons", "c1")
        assert (row is not None and row.presence, state.public.count("coupons")) == (Presence.MISSING, 0)
        assert apply_changes(state, [_upsert("coupons", coupon("A", "s1", id="c1", version=3))]) == (0, 0)


def test_what_the_former_states_follower_has_written_lately_is_taken_over(tmp_path: Path) -> None:
    former = _former(tmp_path, {"shops": [_shop("A", 1)]})
    with State.open(former) as following:
        with following.transaction():
            apply_changes(following, [_delete("shops", "s1", 2)])
        with _fresh(tmp_path, former, {"shops": [_shop("A", 1)]}) as state:
            assert _known(state) == (Presence.DELETED, None)
