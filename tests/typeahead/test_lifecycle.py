"""What key presses are answered from follows its generation: built with it, committed with each change, tidied up."""

import asyncio
import errno
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index_mappings.documents import ShopDocument
from index_mappings.typeahead import Moment
from indexer.project import project_shop
from indexer.records import ShopRecord
from indexer.sinks import embedded_typeahead, typeahead_texts
from indexer.sinks.embedded import EmbeddedSink
from indexer.sinks.protocol import SinkError
from service.search.protocol import SuggestQuery
from tests.conformance.strategies import COUNTRIES, queries, shop_lines
from tests.integration.generations import Documents, sealed
from tests.typeahead.generation import Changed
from tests.typeahead.kept import document

BIRDS = [
    document("s1", "Kestrel Bird", popularity=3.0),
    document("s2", "Kestrel", popularity=1.0, countries=["DE"]),
    document("s3", "Wren & Owl", popularity=2.0),
]


async def test_a_build_has_one_file_and_its_moment(tmp_path: Path) -> None:
    world = Changed(tmp_path, BIRDS)
    assert world.files == ["at-1.json", "base-1.texts"]
    assert world.moment(1) == Moment("base-1", None)
    assert await world.names("kest") == ["Kestrel Bird", "Kestrel"]
    assert await world.names("kesterl", "FR") == ["Kestrel Bird"]


async def test_each_commit_has_a_moment_and_the_newest_three_are_kept(tmp_path: Path) -> None:
    world = Changed(tmp_path, BIRDS)
    for number in range(2, 7):
        world.change([document(f"n{number}", f"Kestrel {number}")])
        assert world.moment(number) == Moment("base-1", f"changes-{number}")
        kept = range(max(1, number - 2), number + 1)
        assert world.files == sorted([
            *(f"at-{sequence}.json" for sequence in kept),
            *(f"changes-{sequence}.texts" for sequence in kept if sequence > 1),
            "base-1.texts",
        ])  # fmt: skip
    assert await world.names("kestrel ") == [
        "Kestrel", "Kestrel Bird", "Kestrel 2", "Kestrel 3", "Kestrel 4", "Kestrel 5", "Kestrel 6",
    ]  # fmt: skip


async def test_shops_of_several_changes_are_in_order_among_themselves(tmp_path: Path) -> None:
    world = Changed(tmp_path, BIRDS)
    for shop_id in ("z", "m", "a"):
        world.change([document(shop_id, f"Kite {shop_id}", popularity=1.0)])
    for limit in (1, 2, 3):
        assert await world.names("kite", limit=limit) == ["Kite a", "Kite m", "Kite z"][:limit]
    # The last of all ids is one that can go as well.
    world.change([document("s3", "Wren", popularity=2.0)], ["z"])
    assert await world.names("wren") == ["Wren"]
    assert await world.names("kite") == ["Kite a", "Kite m"]


async def test_a_commit_that_changes_no_shop_names_the_same_files(tmp_path: Path) -> None:
    world = Changed(tmp_path, BIRDS)
    world.change([document("s4", "Kite")])
    for sequence in (3, 4, 5):
        world.change()
        assert world.moment(sequence) == Moment("base-1", "changes-2")
    assert world.files == ["at-3.json", "at-4.json", "at-5.json", "base-1.texts", "changes-2.texts"]
    assert await world.names("kite") == ["Kite"]


async def test_after_many_changes_all_is_written_anew_and_old_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_typeahead, "_FEW", 2)
    world = Changed(tmp_path, BIRDS)
    bases = []
    for number in range(2, 9):
        # The last of them replaces a shop that was changed before: that makes no more changes than there are.
        world.change([document("n3" if number == 8 else f"n{number}", f"Kestrel {number}", popularity=number)])
        bases.append(world.moment(number))
        found = sorted((shop for shop in world.shops.values() if "kestrel" in shop.words), key=lambda shop: shop.rank)
        assert await world.names("kestr") == [shop.name for shop in found]
    assert bases == [
        Moment("base-1", "changes-2"), Moment("base-1", "changes-3"), Moment("base-4", None),
        Moment("base-4", "changes-5"), Moment("base-4", "changes-6"), Moment("base-7", None),
        Moment("base-7", "changes-8"),
    ]  # fmt: skip
    assert world.files == [
        "at-6.json", "at-7.json", "at-8.json", "base-4.texts", "base-7.texts", "changes-6.texts", "changes-8.texts",
    ]  # fmt: skip


async def test_of_many_shops_with_many_changes_the_index_answers_alone_and_no_commit_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded_typeahead, "_FEW", 1)
    monkeypatch.setattr(embedded_typeahead, "_SOON_WRITTEN", 3)
    world = Changed(tmp_path, BIRDS)
    world.change([document("n2", "Kestrel 2")])
    assert "at-2.json" in world.files
    for number in (3, 4):
        world.change([document(f"n{number}", f"Kestrel {number}")])
        assert caplog.text.count("until the next build") == 1
        assert world.files == ["at-1.json", "at-2.json", "base-1.texts", "changes-2.texts"]
        answers = await (await world.index_only()).suggest(SuggestQuery("kestr", None, 20))
        assert len(answers.shops) == number + 1


async def test_a_shop_that_is_removed_or_hidden_is_in_no_answer_after_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Changed(tmp_path, BIRDS)
    world.change(removed=["s1"])
    asked = {"kestrel": ["Kestrel"], "kestrel bird": ["Kestrel"], "brid": [], "kesterl": ["Kestrel"]}
    assert {typed: await world.names(typed) for typed in asked} == asked
    # One that came with a change goes with another, and one that was there comes back under another name.
    world.change([document("s4", "Kestrel Four"), document("s1", "Kite")], ["s9"])
    assert await world.names("kestrel") == ["Kestrel", "Kestrel Four"]
    world.change(removed=["s4", "s2"])
    assert [await world.names(typed) for typed in ("kestrel", "kiet", "bird")] == [[], ["Kite"], []]
    # What is written anew is what the index holds.
    monkeypatch.setattr(embedded_typeahead, "_FEW", 0)
    world.change(removed=["s1"])
    assert world.moment(5) == Moment("base-5", None)
    assert [await world.names(typed) for typed in ("kestrel", "kite", "wren")] == [[], [], ["Wren & Owl"]]


@pytest.mark.parametrize("lost", ["directory", "moment", "base", "changes", "garbage"])
async def test_a_generation_that_has_lost_its_texts_or_never_had_any_gets_them_with_its_next_commit(
    tmp_path: Path, lost: str
) -> None:
    world = Changed(tmp_path, BIRDS)
    world.change([document("s4", "Kestrel Four")], ["s2"])
    if lost == "directory":
        shutil.rmtree(world.directory)
    elif lost == "garbage":
        (world.directory / "at-2.json").write_text("[]")
    else:
        name = {"moment": "at-2.json", "base": "base-1.texts", "changes": "changes-2.texts"}[lost]
        (world.directory / name).unlink()
    world.change([document("s5", "Kestrel Five", countries=["DE"])])
    assert world.moment(3) == Moment("base-3", None)
    assert await world.names("kestrel") == ["Kestrel Bird", "Kestrel Four", "Kestrel Five"]
    assert await world.names("kestrel", "FR") == ["Kestrel Bird", "Kestrel Four"]


async def test_what_is_damaged_is_passed_over_by_readers_and_mended_by_the_next_change(tmp_path: Path) -> None:
    world = Changed(tmp_path, BIRDS)
    path = world.directory / "base-1.texts"
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    world.change([document("s4", "Kestrel Four")])
    assert world.moment(2) == Moment("base-2", None)
    assert await world.names("kestrel") == ["Kestrel", "Kestrel Bird", "Kestrel Four"]


def test_what_killed_writers_left_goes_with_the_next_edit_and_the_next_build(tmp_path: Path) -> None:
    world = Changed(tmp_path, BIRDS)
    left = [
        world.directory / name for name in ("base-2.texts.77.new", "changes-2.texts.sqlite.77.new", "at-2.json.77.new")
    ]
    for next_job in (_edited, _begun):
        for path in left:
            path.write_bytes(b"half")
        next_job(world)
        assert world.files == ["at-1.json", "base-1.texts"]


def _edited(world: Changed) -> None:
    world.sink.edit(world.stamp.generation).close()


def _begun(world: Changed) -> None:
    world.sink.begin("20310506t120000000000-abcdef").discard()


async def test_a_change_that_was_not_committed_is_made_again(tmp_path: Path) -> None:
    world = Changed(tmp_path, BIRDS)
    editor = world.sink.edit(world.stamp.generation)
    editor.write("shops", [document("s4", "Kestrel Four")], ["s1"])
    editor.show()
    editor._typeahead.commit(1, 2)  # killed here, before the stamp is written
    editor.close()
    world.change([document("s4", "Kestrel Four"), document("s5", "Kestrel Five")], ["s1"])
    assert world.stamp.sequence == 2
    assert await world.names("kestrel") == ["Kestrel", "Kestrel Four", "Kestrel Five"]


def _full(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_full_disk_fails_a_commit_and_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Changed(tmp_path, BIRDS)
    for broken in ("fsync", "_tables"):
        with monkeypatch.context() as disk:
            if broken == "fsync":
                disk.setattr(os, "fsync", _full)
            else:
                disk.setattr(typeahead_texts, "_TABLES", f"PRAGMA max_page_count = 1; {typeahead_texts._TABLES}")
            with pytest.raises(SinkError, match="what key presses are answered from could not be written"):
                world.change([document("s4", "Kestrel Four")])
        assert world.files == ["at-1.json", "base-1.texts"], broken
        assert world.sink.live() == world.stamp
    world.change([document("s4", "Kestrel Four")])
    assert await world.names("kestrel f", limit=1) == ["Kestrel Four"]


@pytest.mark.parametrize("broken", ["fsync", "begin", "rows"])
def test_a_full_disk_fails_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    if broken == "fsync":
        monkeypatch.setattr(os, "fsync", _full)
    else:
        pages = {"begin": 1, "rows": 6}[broken]
        tables = typeahead_texts._TABLES
        first = f"PRAGMA max_page_count = {pages};"
        monkeypatch.setattr(
            typeahead_texts, "_TABLES", f"{first} {tables}" if broken == "begin" else f"{tables} {first}"
        )
    many = tuple(document(f"s{number}", f"Kestrel {number}") for number in range(1_000))
    with pytest.raises(SinkError, match="the shops could not be written"):
        sealed(EmbeddedSink(tmp_path), Documents({"shops": many}))
    assert [path.name for path in tmp_path.glob("generations/*/typeahead/*")] == []


def _projected(lines: list[dict[str, Any]]) -> list[ShopDocument]:
    return [project_shop(ShopRecord.model_validate({"source": "test", **line})) for line in lines]


_several = st.lists(shop_lines(), min_size=1, max_size=8)


@pytest.mark.rule("M9", "M9.typos", "M9.words", "M1", "M7")
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(few=st.sampled_from((0, 4, 2_000)), several=st.lists(_several, min_size=1, max_size=4), data=st.data())
def test_after_any_changes_texts_and_index_say_the_same(
    few: int, several: list[list[dict[str, Any]]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(embedded_typeahead, "_FEW", few)
        world: Changed | None = None
        known: list[dict[str, Any]] = []
        for lines in several:
            ids = data.draw(st.lists(st.integers(0, 12), min_size=len(lines), max_size=len(lines), unique=True))
            named = [{"id": f"s{number}", **line} for number, line in zip(ids, lines, strict=True)]
            known += named
            if world is None:
                world = Changed(Path(directory), _projected(named))
            else:
                removed = data.draw(st.sets(st.integers(0, 12), max_size=3)) - set(ids)
                world.change(_projected(named), [f"s{number}" for number in removed])
            asked = [query for _ in range(14) if isinstance(query := data.draw(queries(known)), SuggestQuery)]
            asked += [
                SuggestQuery(query.text, data.draw(st.sampled_from((None, *COUNTRIES))), data.draw(st.integers(1, 20)))
                for query in asked
            ]
            asyncio.run(world.suggested(asked))
