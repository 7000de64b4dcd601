"""State files: private, whole or refused; the newest record of a key counts, and old catalogues undo nothing (G3)."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.jobs.build import build
from indexer.progress import Advance
from indexer.records.problems import ProblemLog
from indexer.records.related import RECORDS, CategoryNamesRecord, CouponRecord, RedirectRecord
from indexer.records.shop import VERSION, Order, ShopRecord
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import NumberedRecord
from indexer.state.public_records import CarriedCategory
from indexer.state.rows import DuplicateKeyError, Origin, Presence, Row
from indexer.state.state import State, StateError, States
from tests.support.catalogues import coupon, offer, program, redirect, shop, write_catalogue

OLDER: Final = "20310506t070809000010-0a1b2c"
NEWER: Final = "20310507t070809000010-0a1b2c"
CANARY: Final = "zqcanaryzq"
ADVICE: Final = "build again to create it: shop-directory index build"


def _sealed(path: Path) -> Path:
    with State.create(path) as state:
        state.rows.put("shops", ShopRecord.model_validate(shop(CANARY, id="s1", visibility="under_review")), 1)
        state.index()
        state.public.settle()
        state.position = "p-1"
        state.seal()
    return path


def _modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}


@pytest.mark.rule("V1.silent", "G3")
def test_a_state_and_all_its_files_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    path = _sealed(tmp_path / "deeper" / "states" / "a.sqlite")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with State.open(path) as state:
        with state.transaction():
            state.position = "p-2"
        assert _modes(path.parent) == {"a.sqlite": 0o600, "a.sqlite-shm": 0o600, "a.sqlite-wal": 0o600}
    assert _modes(path.parent) == {"a.sqlite": 0o600}
    assert CANARY.encode() in path.read_bytes()


@pytest.mark.rule("V1.silent")
def test_a_directory_of_states_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    directory = tmp_path / "states"
    directory.mkdir(mode=0o755)
    States(directory, "here")
    assert directory.stat().st_mode & 0o777 == 0o700


class WatchedCatalogue(NdjsonCatalogue):
    def watch(self, directory: Path) -> "WatchedCatalogue":
        self._watched = directory
        self.seen: dict[str, int] = {}
        return self

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        for read in super().records(kind, problems, advance):
            there = (self._watched, *self._watched.rglob("*"))
            self.seen |= {path.suffix or path.name[:14]: path.stat().st_mode & 0o777 for path in there[1:]}
            yield read


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize("bad", [0, 1])
def test_a_build_without_a_directory_of_states_makes_a_private_one_and_removes_it_even_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    catalogue = write_catalogue(tmp_path / "shops.ndjson", [shop("A"), shop("B"), *[{"id": "bad"}] * bad])
    source = WatchedCatalogue(catalogue).watch(temporary)
    if bad:
        with pytest.raises(Exception, match="1 bad record:"):
            build(source, EmbeddedSink(tmp_path / "index"))
    else:
        build(source, EmbeddedSink(tmp_path / "index"))
    assert source.seen.pop("place") is not None
    assert source.seen == {"shop-directory": 0o700, "state": 0o700, ".sqlite": 0o600}
    assert list(temporary.iterdir()) == []


@pytest.mark.rule("G3")
@pytest.mark.parametrize("name", ["with space", "50%25", "a#b", "a?mode=memory", "ü"])
def test_a_state_lies_where_its_path_says_whatever_the_path_is_called(tmp_path: Path, name: str) -> None:
    path = _sealed(tmp_path / name / "a.sqlite")
    assert [found.relative_to(tmp_path) for found in tmp_path.rglob("*") if found.is_file()] == [
        path.relative_to(tmp_path)
    ]
    with State.open(path) as state:
        assert state.position == "p-1"


@pytest.mark.rule("G3")
def test_a_change_and_the_position_are_saved_together_or_not_at_all(tmp_path: Path) -> None:
    path = _sealed(tmp_path / "a.sqlite")

    def fail_midway(state: State) -> None:
        with state.transaction():
            state.pending.add("shops", "s1")
            state.position = "p-2"
            raise KeyboardInterrupt

    with State.open(path) as state:
        with pytest.raises(KeyboardInterrupt):
            fail_midway(state)
        assert (state.position, state.pending.count()) == ("p-1", 0)
        with state.transaction():
            state.pending.add("shops", "s1")
            state.position = "p-3"
    with State.open(path) as state:
        assert (state.position, state.pending.count()) == ("p-3", 1)


def _changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


DAMAGED: Final = f"is damaged: {ADVICE} --fresh-state$"
UNUSABLE: Final = f"is unfinished or of another version: {ADVICE} --fresh-state$"
DAMAGES: Final[dict[str, tuple[Callable[[Path], object], str]]] = {
    "lost": (Path.unlink, f"the state of the live generation is lost .*: {ADVICE}$"),
    "overwritten": (lambda path: path.write_bytes(b"\0garbage" * 999), DAMAGED),
    "emptied": (lambda path: path.write_bytes(b""), DAMAGED),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:5_000]), DAMAGED),
    "unsealed": (lambda path: _changed(path, "DELETE FROM meta WHERE name = 'sealed'"), UNUSABLE),
    "of another version": (
        lambda path: _changed(path, "UPDATE meta SET value = '0' WHERE name = 'version'"),
        UNUSABLE,
    ),
}


@pytest.mark.rule("G3")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_that_cannot_be_used_is_refused_with_advice(tmp_path: Path, damage: str) -> None:
    inflict, message = DAMAGES[damage]
    path = _sealed(tmp_path / "a.sqlite")
    inflict(path)
    with pytest.raises(StateError, match=message) as error:
        State.open(path)
    assert str(path) in str(error.value)


@pytest.mark.rule("G3", "V1")
def test_a_sound_state_that_cannot_be_opened_is_not_to_be_given_up(tmp_path: Path) -> None:
    path = _sealed(tmp_path / "a.sqlite")
    path.with_name("a.sqlite-wal").mkdir()  # refused to every user, as a file of another user is
    with pytest.raises(StateError, match=r"cannot be opened .* check that this user may") as error:
        State.open(path)
    assert "--fresh-state" not in str(error.value)


@pytest.mark.rule("G3")
@pytest.mark.parametrize("damage", ["overwritten", "emptied", "cut short", "unsealed", "of another version"])
def test_a_build_does_not_forget_by_itself_what_a_damaged_state_remembered(tmp_path: Path, damage: str) -> None:
    sink = EmbeddedSink(tmp_path / "index")
    states = States(tmp_path / "state", sink.location)
    source = NdjsonCatalogue(write_catalogue(tmp_path / "shops.ndjson", [shop("A")]))
    live = build(source, sink, states).stamp
    DAMAGES[damage][0](states.path(live.generation))
    with pytest.raises(StateError, match=r"--fresh-state"):
        build(source, sink, states)
    assert sink.live() == live
    assert [path.name for path in (tmp_path / "index" / "generations").iterdir()] == [live.generation]


def test_a_new_state_is_never_put_over_another_one(tmp_path: Path) -> None:
    path = _sealed(tmp_path / "a.sqlite")
    with pytest.raises(StateError, match="cannot be created"):
        State.create(path)
    with State.open(path) as state:
        assert state.position == "p-1"


def test_a_directory_of_states_is_for_one_index(tmp_path: Path) -> None:
    States(tmp_path / "states", "the first index")
    States(tmp_path / "states", "the first index")
    with pytest.raises(StateError, match=r"belongs to the first index: name another one for the second index"):
        States(tmp_path / "states", "the second index")


def test_a_directory_of_states_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "states").write_text("a file")
    with pytest.raises(StateError, match="cannot be used: File exists"):
        States(tmp_path / "states", "here")


def test_states_are_named_like_their_generations_and_pruned_with_them(tmp_path: Path) -> None:
    states = States(tmp_path / "states", "here")
    for generation in (OLDER, NEWER):
        _sealed(states.path(generation))
        for suffix in ("-wal", "-shm", "-journal"):
            Path(f"{states.path(generation)}{suffix}").touch()
    states.dead_letters.touch()
    (states.directory / "notes.sqlite").touch()
    assert (states.has(OLDER), states.prune({NEWER}), states.has(OLDER)) == (True, (OLDER,), False)
    retained = [states.path(NEWER).name + suffix for suffix in ("", "-journal", "-shm", "-wal")]
    assert sorted(path.name for path in states.directory.iterdir()) == sorted(
        [*retained, "dead-letters.ndjson", "notes.sqlite", "place"]
    )
    assert states.prune({NEWER}) == ()


SECRET = "zqcanaryzq"


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
    winners = [shop for shop, _ in state.public.shops()]
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
def test_a_domain_is_won_by_popularity_then_by_the_smaller_id_and_losers_are_reported_by_line(state: State) -> None:
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
def test_a_category_has_its_most_frequent_name_then_the_smaller_and_counts_public_shops_only(state: State) -> None:
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
        CarriedCategory("books", "Books & Zines", 2, 1, (("de", "Bücher"), ("fr", "Livres")), (("en", "Hefte"),)),
        CarriedCategory("garden", "Allotment", 2, 2, (), (("de", "Rasen"),)),
    ]
    assert list(state.public.categories()) == carried
    assert [state.public.category(slug) for slug in ("books", "garden", "secret")] == [*carried, None]
    assert state.public.left_out("categories") == 1


@pytest.fixture
def owners(state: State) -> State:
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


@pytest.mark.parametrize(("first", "second"), [(None, None), (5, 5), (5, None), (None, 5)])
@pytest.mark.parametrize("owner", ["a", "h"])
def test_a_key_that_comes_twice_without_a_newer_version_is_an_error_that_names_no_value(
    owners: State, first: int | None, second: int | None, owner: str
) -> None:
    _add(owners, "coupons", 3, **coupon("A", owner, id=SECRET, version=first))
    with pytest.raises(DuplicateKeyError) as error:
        _add(owners, "coupons", 9, **coupon("B", "a", id=SECRET, version=second))
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
def test_a_redirect_is_read_only_between_two_public_shops_and_each_finds_it(owners: State) -> None:
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
