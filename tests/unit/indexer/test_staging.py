"""Staging: the newest record of a key counts whatever the order of arrival, and a domain has one shop."""

from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from indexer.records import ShopRecord
from indexer.staging import CarriedCategory, KeyTwiceError, Staging
from indexer.visibility import is_public
from tests.catalogues import shop


def _shop(name: str, domain: str | None = None, /, **fields: Any) -> ShopRecord:  # noqa: ANN401 - JSON values
    return ShopRecord.model_validate(shop(name, domain, **fields))


def _put(staging: Staging, shops: Iterable[ShopRecord]) -> list[bool]:
    return [staging.put(record, line) for line, record in enumerate(shops, start=1)]


@pytest.mark.rule("V1")
def test_the_gate_lets_public_shops_through_and_no_other() -> None:
    stated = {seen: is_public(_shop("A", visibility=seen)) for seen in ("public", "under_review", "removed")}
    assert stated == {"public": True, "under_review": False, "removed": False}


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_the_newest_version_wins_in_any_order_of_arrival(order: tuple[int, ...]) -> None:
    with Staging() as staging:
        new = _put(staging, (_shop(f"Name {version}", id="s1", version=version) for version in order))
        assert (new, staging.settle()) == ([True, False, False], 1)
        assert [(found.name, found.version) for found in staging.winners()] == [("Name 3", 3)]


def test_the_latest_time_wins_whatever_its_zone() -> None:
    with Staging() as staging:
        times = ("2031-05-06T09:00:00+02:00", "2031-05-06T07:30:00Z", "2031-05-06T09:15:00+02:00")
        _put(staging, (_shop(f"Name {number}", id="s1", updated_at=time) for number, time in enumerate(times)))
        staging.settle()
        assert [found.name for found in staging.winners()] == ["Name 1"]


@pytest.mark.parametrize(("first", "second"), [(None, None), (5, 5), (5, None), (None, 5)])
def test_a_key_that_comes_twice_without_a_newer_version_is_an_error(first: int | None, second: int | None) -> None:
    with Staging() as staging:
        staging.put(_shop("One", id="zqcanaryzq", version=first), 3)
        with pytest.raises(KeyTwiceError) as error:
            staging.put(_shop("Other", id="zqcanaryzq", version=second), 9)
        assert str(error.value) == "is already the key of line 3, and no version says which of them is newer"


@pytest.mark.rule("V1")
@pytest.mark.parametrize("seen", [("public", "removed"), ("under_review", "public"), ("public", "removed", "public")])
def test_of_two_records_that_no_version_orders_a_hidden_one_keeps_the_shop_hidden(seen: tuple[str, ...]) -> None:
    with Staging() as staging:
        staging.put(_shop("A", id="s1", visibility=seen[0]), 1)
        for line, visibility in enumerate(seen[1:], start=2):
            with pytest.raises(KeyTwiceError):
                staging.put(_shop("A", id="s1", visibility=visibility), line)
        assert (staging.settle(), list(staging.winners()), list(staging.public_ids())) == (0, [], [])


@pytest.mark.rule("V1")
@pytest.mark.parametrize("hidden", ["under_review", "removed"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_newer_hidden_record_hides_the_older_public_one_in_any_order(hidden: str, order: tuple[int, int]) -> None:
    records = (_shop("Old", id="s1", version=1), _shop("New", id="s1", version=2, visibility=hidden))
    with Staging() as staging:
        _put(staging, (records[place] for place in order))
        assert (staging.settle(), list(staging.winners()), list(staging.public_ids())) == (0, [], [])
        assert list(staging.categories()) == []


@pytest.mark.rule("V1")
def test_a_newer_public_record_shows_a_shop_that_was_hidden() -> None:
    with Staging() as staging:
        _put(staging, (_shop("New", id="s1", version=2), _shop("Old", id="s1", version=1, visibility="removed")))
        assert staging.settle() == 1
        assert [found.name for found in staging.winners()] == ["New"]


@pytest.mark.rule("V1", "M1")
def test_a_domain_is_won_by_popularity_then_by_the_smaller_id_and_losers_are_told_by_line() -> None:
    with Staging() as staging:
        _put(
            staging,
            [
                _shop("Less", "https://www.A.internal/", id="s1", popularity=0.2),
                _shop("Later", "b.internal", id="s3"),
                _shop("More", "a.internal", id="s9", popularity=0.3),
                _shop("Earlier", "B.internal.", id="s2", popularity=0),
                _shop("Hidden", "a.internal", id="s0", popularity=9, visibility="under_review"),
                _shop("Alone", "c.internal", id="S1"),
            ],
        )
        assert staging.settle() == 3
        assert [(found.id, found.domain) for found in staging.winners()] == [
            ("s9", "a.internal"),
            ("S1", "c.internal"),
            ("s2", "b.internal"),
        ]
        assert list(staging.lost_domains()) == [(1, 3), (2, 4)]
        assert sorted(staging.public_ids()) == ["S1", "s2", "s9"]


@pytest.mark.rule("R1")
def test_a_domain_is_staged_as_it_is_read_back() -> None:
    with Staging() as staging:
        _put(staging, (_shop("A", "www.www.a.internal", id="s1"), _shop("B", "a.internal..", id="s2")))
        assert staging.settle() == 1
        assert [(found.id, found.domain) for found in staging.winners()] == [("s1", "a.internal")]


@pytest.mark.rule("V1")
def test_a_category_has_its_most_frequent_name_then_the_smaller_and_counts_winning_shops_only() -> None:
    with Staging() as staging:
        _put(
            staging,
            [
                _shop("A", id="s1", categories=[("books", "Zines"), ("garden", "Garden")]),
                _shop("B", id="s2", categories=[("books", "Books"), ("garden", "Allotment")]),
                _shop("C", id="s3", categories=[("books", "Zines")]),
                _shop("D", id="s4", categories=[("garden", "Hidden")], visibility="removed"),
                _shop("E", id="s5", categories=[("garden", "Hidden")], visibility="under_review"),
                _shop("F", id="s6", categories=[("secret", "Secret")], visibility="under_review"),
            ],
        )
        staging.settle()
        assert list(staging.categories()) == [
            CarriedCategory("books", "Zines", 3, 2),
            CarriedCategory("garden", "Allotment", 2, 2),
        ]


@pytest.mark.rule("V1.silent")
def test_the_staging_file_is_its_owners_alone_holds_no_hidden_value_and_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Staging() as staging:
        _put(staging, (_shop("Shown", id="s1"), _shop("zqcanaryzq", id="s2", visibility="under_review")))
        staging.settle()
        (directory,) = tmp_path.iterdir()
        files = list(directory.iterdir())
        assert [(file.name, file.stat().st_mode & 0o777) for file in files] == [("staging.sqlite", 0o600)]
        assert directory.stat().st_mode & 0o777 == 0o700
        assert b"Shown" in files[0].read_bytes()
        assert b"zqcanaryzq" not in files[0].read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_the_staging_file_is_gone_after_a_failure_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def put_twice() -> None:
        with Staging() as staging:
            _put(staging, (_shop("A", id="s1"), _shop("A", id="s1")))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyTwiceError):
        put_twice()
    assert list(tmp_path.iterdir()) == []
