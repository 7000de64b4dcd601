"""A typeahead follows its changes: by small segments, and by merges that take these in."""

import logging
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index_mappings.documents import CategoryEntry
from shop_directory.typeahead.manifest import (
    MAX_SEGMENTS,
    Covering,
    SegmentUse,
    TypeaheadManifest,
    bitmap_of,
    manifest_path,
)
from shop_directory.typeahead.segment import segment_path
from shop_directory.typeahead.writing.merging import BackgroundMerging, Input, merge, mergeable, newest_group, weight
from shop_directory.typeahead.writing.segment_file import open_segment
from shop_directory.typeahead.writing.store import GRACE_S
from tests.engines.typeahead.segmented import Followed, category, named, projected
from tests.rules.backends.strategies import shop_lines

_BASE = [named(f"b{number:02}", f"Kestrel {number}", 9.0) for number in range(20)]


@pytest.fixture
def merging() -> Iterator[BackgroundMerging]:
    merging = BackgroundMerging()
    yield merging
    merging.close()


def _add(world: Followed, numbers: Iterable[int]) -> None:
    for number in numbers:
        world.change([named(f"n{number}", f"Wren {number}")])


def _age(world: Followed, seconds: float = GRACE_S + 1) -> None:
    for path in world.directory.iterdir():
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def _ended(merging: BackgroundMerging) -> None:
    assert merging.process_id is not None
    os.waitid(os.P_PID, merging.process_id, os.WEXITED | os.WNOWAIT)


def test_the_last_segment_is_rewritten_while_it_is_small_and_then_another_one_begins(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE, small_shops=3)
    shapes = []
    for number in range(7):
        _add(world, [number])
        shapes.append(world.shape[0])
    assert shapes == [[20, 1], [20, 2], [20, 3], [20, 3, 1], [20, 3, 2], [20, 3, 3], [20, 3, 3, 1]]
    # Where there are as many segments as may be, the last one takes all.
    settled = [3] * (MAX_SEGMENTS - 2)
    _add(world, range(7, sum(settled) + 14))
    assert world.shape == [[20, *settled, 14]]


@pytest.mark.rule("V3")
def test_a_shop_that_is_replaced_or_removed_goes_from_wherever_it_was(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE, small_shops=1)
    world.change([named("n1", "Wren")])
    world.change([named("b01", "Wren Too"), named("n1", "Wren Again")], ["b02", "never"])
    assert world.shape == [[18, 0, 2]]
    world.change(removed=["b01", "n1", "b00"])
    assert world.shape == [[17, 0, 0]]


def test_a_segment_of_which_nothing_is_left_is_no_longer_named(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE, small_shops=3)
    world.change([named("n1", "Wren"), named("b01", "Wren")])
    world.change(removed=["n1", "b01"])
    assert world.shape == [[19]]


def test_all_shops_written_again_as_they_are_make_the_same_segment(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE, small_shops=3)
    before = world.manifest
    world.change(_BASE)
    assert world.manifest == before


def test_a_commit_without_changes_names_the_same_manifest(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE)
    before, files = world.name, world.files
    world.change()
    world.change(removed=["never"])
    assert (world.name, world.files) == (before, files)


def test_categories_follow_without_any_segment(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE)
    segments = world.manifest.coverings
    editor = world.editor()
    for slug, count in (("birds", 3), ("owls", 7), ("wrens", 3)):
        editor.put(category(slug, count))
    editor.commit()
    editor.put(category("birds", 9))
    editor.remove("categories", "owls")
    editor.remove("categories", "never")
    world.name = editor.commit()
    birds, wrens = (
        CategoryEntry(slug, slug.title(), count, (slug,), (f"1{slug}",)) for slug, count in (("birds", 9), ("wrens", 3))
    )
    assert world.manifest == TypeaheadManifest(segments, (birds, wrens))


def test_what_is_shown_comes_from_all_segments_between_two_ids(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE, small_shops=1)
    world.change([named("b01", "Wren"), named("b021", "Kite")], ["b03"])
    shown = world.editor().shown("b00", "b04")
    assert {shop_id: what[1] for shop_id, what in shown.items()} == {
        "b01": "Wren", "b02": "Kestrel 2", "b021": "Kite", "b04": "Kestrel 4",
    }  # fmt: skip


def test_files_of_the_newest_three_manifests_and_young_ones_stay(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE, small_shops=50)
    _add(world, range(5))
    assert len(world.files) == 12
    left = {"123-0.part", f"{'0' * 64}.segment", "notes.txt"}
    for name in left:
        (world.directory / name).write_bytes(b"half")
    _age(world)
    _add(world, range(5, 8))
    # Of the three new ones and of the one from which the last commit began.
    manifests = sorted(world.directory.glob("*.manifest"), key=lambda path: path.stat().st_mtime_ns)
    named_files = {
        f"{name}.segment"
        for path in manifests
        for name in TypeaheadManifest.from_bytes(path.read_bytes(), path.stem).files()
    }
    assert len(manifests) == 3
    assert world.files == {"notes.txt", *(path.name for path in manifests), *named_files}


def test_what_a_stamp_may_still_name_stays_however_often_its_successor_fails(tmp_path: Path) -> None:
    world = Followed(tmp_path, _BASE)
    before = manifest_path(world.directory, world.name)
    editor = world.editor()
    for number in range(5):
        editor.put(named(f"n{number}", "Wren"))
        editor.commit()
        _age(world)
    assert before.exists()
    assert world.store.damaged(world.name) == ()


_ROOMY, _TIGHT = 10_000, 100


@pytest.mark.parametrize(
    ("most", "covering", "merged"),
    [
        (_ROOMY, [(100, 0)], (0, 0)),
        (_ROOMY, [(100, 26)], (0, 1)),  # a quarter of the base is gone
        (_ROOMY, [(100, 26), (3, 0)], (0, 1)),
        (_ROOMY, [(100, 0), (3, 0)], (0, 0)),
        (_ROOMY, [(100, 0), (5, 0)], (0, 0)),
        (_ROOMY, [(100, 0), (5, 0), (4, 0)], (0, 0)),
        (_ROOMY, [(100, 0), (5, 0), (5, 0)], (1, 3)),
        (_ROOMY, [(100, 0), (5, 0), (6, 0), (2, 0)], (1, 3)),
        (_ROOMY, [(100, 0), (5, 0), (6, 0), (9, 0)], (1, 4)),
        # The last one is rewritten, as there may be no more.
        (_ROOMY, [(1000, 0), *[(5, 0)] * (MAX_SEGMENTS - 2), (9, 0)], (1, MAX_SEGMENTS - 1)),
        (_ROOMY, [(100, 20), (10, 5), (5, 0)], (0, 3)),  # more than a quarter is gone or elsewhere
        (_ROOMY, [(10, 0), (5, 0)], (0, 2)),
        (_ROOMY, [(0, 0)], (0, 0)),
        (_TIGHT, [(100, 0), (90, 0), (9, 0)], (0, 0)),
        (
            _TIGHT,
            [(100, 0), (90, 0), (40, 0), (9, 0)],
            (0, 0),
        ),  # the last two may be, with less than a quarter elsewhere
        (_TIGHT, [(100, 0), (90, 0), (20, 0), (9, 0), (8, 0)], (2, 5)),
        (_TIGHT, [(100, 0), (90, 0), (60, 0), (5, 0), (5, 0)], (3, 5)),
        (_TIGHT, [(100, 26), (90, 0), (60, 0), (5, 0)], (0, 1)),  # it gets smaller alone
        (_TIGHT, [(100, 25), (90, 23), (60, 0), (5, 0)], (1, 2)),
        (_TIGHT, [(30, 0), (70, 0), (60, 0), (5, 0)], (0, 2)),  # these have become smaller before
        (_TIGHT, [(30, 0), (71, 0), (60, 0), (5, 0)], (0, 0)),
        (_TIGHT, [(300, 0), (60, 0), (5, 0)], (0, 0)),  # a build with a larger maximum made these
        (_TIGHT, [(300, 0)], (0, 0)),
        (_TIGHT, [(300, 76)], (0, 1)),
        # Those that can't be merged leave as much room as there would be without them.
        (_TIGHT, [*[(100, 0)] * 20, (9, 0), (9, 0)], (20, 22)),
    ],
)
def test_neighbours_are_merged_unless_too_large_and_the_base_when_a_quarter_of_it_is_elsewhere(
    most: int, covering: list[tuple[int, int]], merged: tuple[int, int]
) -> None:
    uses = tuple(
        SegmentUse(f"{place:064x}", 1, shops, bitmap_of(range(removed)))
        for place, (shops, removed) in enumerate(covering)
    )
    assert mergeable(uses, [use.shops for use in uses], 5, most) == uses[slice(*merged)]


def test_a_merge_is_adopted_alongside_its_inputs_which_are_removed_after_a_minute(
    tmp_path: Path, merging: BackgroundMerging
) -> None:
    world = Followed(tmp_path, _BASE, small_shops=2, merging=merging)
    _add(world, range(4))
    assert world.shape == [[20, 2, 2]]
    _ended(merging)
    (covering,) = world.manifest.coverings
    inputs = [use.name for use in covering]
    # Each of the inputs loses one shop meanwhile, and the last one changes another.
    world.change([named("n3", "Kite")], ["n0", "b00"])
    assert world.shape == [[19, 2, 1], [19, 1, 1, 1]]
    first, second = world.manifest.coverings
    assert [use.name for use in second[:3]] == inputs
    assert first[0] == second[0]
    assert first[-1] == second[-1]
    # Both stay up to date.
    world.change([named("n4", "Owl")], ["n1"])
    assert world.shape == [[19, 1, 2], [19, 0, 1, 2]]
    _age(world)
    world.change([named("n5", "Owl")])
    assert world.shape == [[19, 1, 2, 1]]
    assert merging.process_id is not None  # the next one


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_a_merge_that_is_killed_is_logged_and_restarted(
    tmp_path: Path, merging: BackgroundMerging, caplog: pytest.LogCaptureFixture, kind: signal.Signals
) -> None:
    world = Followed(tmp_path, _BASE, small_shops=2, merging=merging)
    _add(world, range(4))
    first = merging.process_id
    assert first is not None
    os.kill(first, kind)
    _ended(merging)
    with caplog.at_level(logging.WARNING):
        world.change([named("n4", "Wren")])
    assert [record.getMessage() for record in caplog.records] == [
        f"merging segments of the typeahead ended with code {-kind} and is retried"
    ]
    assert world.shape == [[20, 2, 2, 1]]
    assert merging.process_id not in {None, first}
    _ended(merging)
    world.change([named("n5", "Wren")])
    assert world.shape == [[20, 4, 2], [20, 2, 2, 2]]


def test_a_merge_ends_with_its_sink_and_leaves_files_only(tmp_path: Path, merging: BackgroundMerging) -> None:
    world = Followed(tmp_path, _BASE, small_shops=2, merging=merging)
    _add(world, range(4))
    process = merging.process_id
    assert process is not None
    merging.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    _age(world)
    world.merging = None
    world.change([named("n4", "Wren")])
    assert not list(world.directory.glob("*.part"))


class _Inline(BackgroundMerging):
    """Merges in this process, so that every commit meets a finished merge; some are late."""

    def __init__(self, late: Iterator[bool]) -> None:
        super().__init__()
        self._late = late
        self._merged: tuple[Path, tuple[Covering, SegmentUse]] | None = None
        # The greatest weight of several segments that were merged into one.
        self.heaviest = 0

    def start(self, directory: Path, inputs: Covering) -> None:
        if inputs and self._merged is None:
            merged = [Input(open_segment(segment_path(directory, use.name)), use.removed) for use in inputs]
            if len(merged) > 1:
                self.heaviest = max(self.heaviest, sum(weight(one.segment.contents) for one in merged))
            self._merged = directory, (inputs, merge(directory, merged))

    def finished(self, directory: Path) -> tuple[Covering, SegmentUse] | None:
        if self._merged is None or next(self._late):
            return None
        (where, finished), self._merged = self._merged, None
        return finished if where == directory else None


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(small=st.integers(1, 6), most=st.sampled_from((1, 20, 60, 10_000)), data=st.data())
def test_after_any_changes_and_merges_each_covering_has_what_it_must(
    small: int, most: int, data: st.DataObject
) -> None:
    shops = st.builds(projected, st.integers(0, 12).map("s{}".format), shop_lines())
    late = (data.draw(st.booleans()) for _ in iter(int, 1))
    with TemporaryDirectory() as directory:
        built = {shop.id: shop for shop in data.draw(st.lists(shops, max_size=8))}
        merging = _Inline(late)
        world = Followed(Path(directory), list(built.values()), small, merging, most)
        for _ in range(data.draw(st.integers(1, 8))):
            changed = {shop.id: shop for shop in data.draw(st.lists(shops, max_size=4))}
            removed = data.draw(st.sets(st.integers(0, 12).map("s{}".format), max_size=3)) - changed.keys()
            if data.draw(st.booleans()):
                _age(world)
            world.change(changed.values(), removed)
            assert world.store.damaged(world.name) == ()
            assert merging.heaviest <= most
            assert all(len(some) - newest_group(some, most) <= MAX_SEGMENTS for some in world.weights)
            assert len(world.manifest.coverings) <= 2


@pytest.mark.parametrize("event", ["rebuilt", "tidied", "elsewhere"])
def test_a_merge_of_what_is_not_current_any_more_is_dropped(tmp_path: Path, event: str) -> None:
    merging = _Inline(iter([False] * 99))
    world = Followed(tmp_path, _BASE, small_shops=2, merging=merging)
    built = world.name
    _add(world, range(4))
    match event:
        case "rebuilt":
            world.name, world.shops = built, {shop.id: shop for shop in _BASE}
        case "tidied":
            assert merging._merged is not None
            segment_path(world.directory, merging._merged[1][1].name).unlink()
        case _:
            assert merging._merged is not None
            merging._merged = (tmp_path / "elsewhere", merging._merged[1])
    world.change([named("n9", "Kite")])
    assert world.shape == ([[20, 1]] if event == "rebuilt" else [[20, 2, 2, 1]])


def test_a_merge_that_lacks_a_shop_which_is_current_again_is_dropped(tmp_path: Path) -> None:
    merging = _Inline(iter([True, False]))
    world = Followed(tmp_path, _BASE, small_shops=30, merging=None)
    former = world.name
    world.small_shops = 2
    world.change([], [f"b{number:02}" for number in range(10)])
    assert world.shape == [[10]]
    merging.start(world.directory, world.manifest.coverings[0])
    # Another job has gone back to what was there before.
    world.name, world.shops, world.merging = former, {shop.id: shop for shop in _BASE}, merging
    world.change([named("n1", "Wren")])
    world.change([named("n2", "Wren")])
    assert world.shape == [[20, 2]]
