"""The options of a build: the shrink guard, a dry run, acceptance queries, a fresh state (G2, G3)."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.generations import Stamp
from indexer.jobs.build import BuildOptions, BuildSummary, ShrinkError, build
from indexer.jobs.update import ChangeCounts
from indexer.records.problems import CatalogueError
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import scan
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.state import States
from tests.support.catalogues import coupon, shop, write_catalogue_directory

NOON: Final = datetime(2031, 5, 6, 12, tzinfo=UTC)
TEN: Final = [shop(f"Shop {number}", id=f"s{number}", version=1) for number in range(10)]


class Operator:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sink = EmbeddedSink(folder / "index")
        self.states = States(folder / "state", self.sink.location)

    def build(self, shops: Iterable[dict[str, Any]], options: BuildOptions | None = None) -> BuildSummary:
        path = write_catalogue_directory(self.folder / "catalogue", shops=shops, coupons=[coupon("A", "s0")])
        return build(NdjsonCatalogue(path), self.sink, self.states, options, clock=lambda: NOON)

    def change(self, *changes: dict[str, Any]) -> None:
        with (self.folder / "catalogue" / "changes.ndjson").open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(change)}\n" for change in changes)

    def there(self) -> tuple[list[str], list[str]]:
        states = sorted(path.stem for path in self.states.directory.glob("*.sqlite*"))
        return [found.name for found in self.sink.generations()], states


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def _hidden(number: int) -> dict[str, Any]:
    record = {name: value for name, value in TEN[number].items() if name != "version"}
    return {"op": "upsert", "type": "shops", "version": 2, "record": {**record, "visibility": "under_review"}}


@pytest.mark.rule("V1", "G3")
def test_shops_that_changes_brought_do_not_hide_how_many_are_not_public(operator: Operator) -> None:
    operator.build(TEN)
    added = {name: value for name, value in shop("New", id="s10").items() if name != "version"}
    operator.change(_hidden(3), {"op": "upsert", "type": "shops", "version": 2, "record": added})
    summaries = [operator.build(TEN) for _ in range(2)]
    assert [
        (found.catalogue.read["shops"], found.catalogue.not_public, found.stamp.counts["shops"]) for found in summaries
    ] == [(10, 1, 10)] * 2


@pytest.mark.rule("G2")
@pytest.mark.parametrize(
    ("left", "options"),
    [(8, BuildOptions()), (5, BuildOptions(most_shrink=0.5)), (3, BuildOptions(most_shrink=0.7))],
)
def test_a_build_may_lose_a_share_of_the_public_shops(operator: Operator, left: int, options: BuildOptions) -> None:
    operator.build(TEN)
    summary = operator.build(TEN[:left], options)
    assert (summary.published, summary.stamp.counts["shops"], operator.sink.live()) == (True, left, summary.stamp)


@pytest.mark.rule("G2", "G1")
@pytest.mark.parametrize(
    ("left", "options", "message"),
    [
        (7, BuildOptions(), "7 of 10 public shops remain, and at most 20% may be lost"),
        (4, BuildOptions(most_shrink=0.5), "4 of 10 public shops remain, and at most 50% may be lost"),
        (8, BuildOptions(most_shrink=0.125), "8 of 10 public shops remain, and at most 12.5% may be lost"),
        (9, BuildOptions(most_shrink=0), "9 of 10 public shops remain, and at most 0% may be lost"),
        (0, BuildOptions(), "0 of 10 public shops remain, and at most 20% may be lost"),
    ],
)
def test_a_build_that_loses_more_is_refused_and_leaves_the_live_generation_alone(
    operator: Operator, left: int, options: BuildOptions, message: str
) -> None:
    live = operator.build(TEN).stamp
    hidden = [{**line, "visibility": "removed"} for line in TEN[left:]]
    with pytest.raises(ShrinkError, match=f"^{message}: .* --allow-shrink$"):
        operator.build([*TEN[:left], *hidden], options)
    assert operator.sink.live() == live
    assert operator.there() == ([live.generation], [live.generation])


@pytest.mark.rule("G2")
def test_a_first_build_and_one_after_an_empty_one_lose_nothing(operator: Operator) -> None:
    empty = BuildOptions(allow_empty=True)
    assert operator.build([], empty).stamp.counts["shops"] == 0
    assert operator.build([], empty).stamp.counts["shops"] == 0
    assert operator.build(TEN[:1]).stamp.counts["shops"] == 1


@pytest.mark.rule("G2")
def test_to_lose_all_shops_has_to_be_allowed_in_both_ways(operator: Operator) -> None:
    live = operator.build(TEN).stamp
    for options, refusal in (
        (BuildOptions(), ShrinkError),
        (BuildOptions(allow_empty=True), ShrinkError),
        (BuildOptions(allow_shrink=True), CatalogueError),
    ):
        with pytest.raises(refusal):
            operator.build([], options)
        assert operator.sink.live() == live
    assert operator.build([], BuildOptions(allow_empty=True, allow_shrink=True)).published is True


@pytest.mark.rule("G2", "G3")
def test_shops_that_changes_hide_count_as_lost(operator: Operator) -> None:
    live = operator.build(TEN).stamp
    operator.change(*(_hidden(number) for number in range(3)))
    with pytest.raises(ShrinkError, match="7 of 10 public shops remain"):
        operator.build(TEN)
    assert operator.there() == ([live.generation], [live.generation])


@pytest.mark.rule("G2", "G3", "G1")
@pytest.mark.parametrize(("hidden", "refused"), [(2, False), (3, True)])
def test_shops_that_changes_hide_after_the_catalogue_was_read_count_as_lost_too(
    operator: Operator, hidden: int, *, refused: bool
) -> None:
    live, sink = operator.build(TEN).stamp, operator.sink
    late = BuildOptions(acceptance=lambda _: operator.change(*map(_hidden, range(hidden))))
    if refused:
        with pytest.raises(ShrinkError, match="7 of 10 public shops remain"):
            operator.build(TEN, late)
        assert operator.there() == ([live.generation], [live.generation])
        return
    summary = operator.build(TEN, late)
    assert (summary.stamp.counts["shops"], summary.stamp.sequence, sink.live()) == (8, 2, summary.stamp)
    assert summary.changes == ChangeCounts(2, 0, 0, written=1, removed=5, updates=1)
    assert [key for key, _ in scan(sink.edit(summary.stamp.generation), "shops")] == [f"s{n}" for n in range(2, 10)]


@pytest.mark.rule("G2", "G1")
def test_acceptance_queries_are_asked_of_the_sealed_generation_and_stop_it_when_they_fail(operator: Operator) -> None:
    live = operator.build(TEN).stamp
    asked: list[tuple[Stamp, Stamp | None]] = []

    def fail(stamp: Stamp) -> None:
        asked.append((stamp, operator.sink.live()))
        assert operator.sink.edit(stamp.generation).count("shops") == 9
        raise SinkError("an answer was wrong")

    with pytest.raises(SinkError, match="an answer was wrong"):
        operator.build(TEN[:9], BuildOptions(acceptance=fail))
    assert [(stamp.counts["shops"], shown) for stamp, shown in asked] == [(9, live)]
    assert operator.there() == ([live.generation], [live.generation])
    heard: list[Stamp] = []
    assert operator.build(TEN[:9], BuildOptions(acceptance=heard.append)).stamp == heard[0]
