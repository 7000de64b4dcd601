"""A full build: what it publishes and reports, its options, and what a fault or an interruption leaves (G1, G2, G3)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.documents import SCHEMA_VERSION, CouponDocument, ShopDocument
from index_mappings.generations import Stamp, is_generation
from indexer.jobs.build import BuildOptions, BuildSummary, ShrinkError, build, expected_work
from indexer.jobs.reading import ReadCounts
from indexer.jobs.update import ChangeCounts
from indexer.progress import Advance, Estimate
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.sinks.embedded.generation import EmbeddedWriter
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Sink, scan
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import NumberedRecord
from indexer.state.state import States
from tests.engines.following.followed import FollowedIndex
from tests.support.catalogues import (
    build_into,
    coupon,
    offer,
    policy,
    program,
    redirect,
    shipping,
    shop,
    trust,
    upsert,
    write_catalogue,
    write_catalogue_directory,
)
from tests.support.memory_sink import MemorySink, MemoryWriter

NOON: Final = datetime(2031, 5, 6, 12, tzinfo=UTC)
Shops = Iterable[Mapping[str, Any]]


@pytest.fixture
def sink(tmp_path: Path) -> EmbeddedSink:
    return EmbeddedSink(tmp_path / "index")


def _build(sink: Sink, folder: Path, shops: Shops, *, after: timedelta = timedelta()) -> BuildSummary:
    source = NdjsonCatalogue(write_catalogue(folder / "shops.ndjson", shops))
    return build(source, sink, clock=lambda: NOON + after)


def test_every_long_stage_of_a_build_is_in_the_estimate_of_its_whole_time(
    sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    def begin(self: Estimate, title: str) -> None:
        shown.append(title)
        begun(self, title)

    begun = Estimate.begin
    monkeypatch.setattr(Estimate, "begin", begin)
    files = {
        "shops": _world(),
        "coupons": [coupon("X", "s1")],
        "offers": [offer("o1", "s1")],
        "shipping": [shipping("s1")],
    }
    source = NdjsonCatalogue(write_catalogue_directory(tmp_path / "catalogue", **files))
    build(source, sink, clock=lambda: NOON)
    expected = list(expected_work(source, dry_run=False))
    quick = {"Indexing categories", "Writing out categories", "Publishing"}
    titles = [title for title in shown if title not in quick]
    assert {"Reading shops", "Sorting the records", "Indexing shops", "Verifying"} <= set(titles)
    # In this order, because a stage that begins ends those before it.
    assert titles == [title for title in expected if title in titles]


def _world() -> list[dict[str, Any]]:
    return [
        shop("Shown", "shown.internal", id="s1", categories=[("books", "Books")], version=1),
        shop("Older", "old.internal", id="s2", categories=[("books", "Zines")], version=1),
        shop("Newer", "new.internal", id="s2", categories=[("books", "Books"), "garden"], version=2),
        shop("Reviewed", "r.internal", id="s3", categories=["secret"], visibility="under_review"),
        shop("Removed", "shown.internal", id="s4", popularity=9, visibility="removed"),
        shop("Loser", "www.shown.internal", id="s5", categories=[("books", "Tomes")]),
    ]


@pytest.mark.rule("V1", "G1")
def test_a_build_publishes_public_shops_that_won_their_domain_and_counts_the_others(sink: Sink, tmp_path: Path) -> None:
    summary = _build(sink, tmp_path, _world())
    assert is_generation(summary.stamp.generation)
    assert summary == BuildSummary(
        stamp=replace(
            summary.stamp,
            schema_version=SCHEMA_VERSION,
            sequence=1,
            built_at="2031-05-06T12:00:00Z",
            source_position=None,
            counts={"shops": 2, "categories": 2, "coupons": 0, "offers": 0, "facts": 2},
        ),
        published=True,
        catalogue=ReadCounts({"shops": 6}, superseded=1, public=2, not_public=2, lost=((6, 1),), lost_domain=1),
        disputed_categories=0,
        changes=ChangeCounts(0, 0, 0),
        notes=("shops.ndjson:6: left out, its domain belongs to the shop of line 1",),
        problems=summary.problems,
        removed=(),
        restarts=0,
        seconds=summary.seconds,
    )
    assert (summary.problems.count, sink.live()) == (0, summary.stamp)


def test_a_category_of_several_names_is_noted(sink: Sink, tmp_path: Path) -> None:
    worlds = [shop(f"S{number}", categories=[("books", name)]) for number, name in enumerate(("A", "B", "B"))]
    summary = _build(sink, tmp_path, worlds)
    assert (summary.disputed_categories, summary.notes) == (
        1,
        ("category books has more than one display name; the most frequent is shown",),
    )


@pytest.mark.rule("V1.dependents")
def test_related_records_of_no_public_shop_are_left_out_and_counted_by_type(sink: Sink, tmp_path: Path) -> None:
    path = write_catalogue_directory(
        tmp_path / "catalogue",
        shops=_world(),
        coupons=[coupon("A", "s1"), coupon("B", "s3"), coupon("C", "s5"), coupon("D", "unknown")],
        offers=[offer("o1", "s2"), offer("o2", "s4")],
        shipping=[shipping("s1"), shipping("s3")],
        policies=[policy("s1", "returns"), policy("s1", "returns", "AT"), policy("s3", "returns")],
        trust=[trust("s4", "registrar", "R")],
        affiliate_programs=[program("s5", "Net")],
        redirects=[
            redirect("shown.internal", "new.internal"),
            redirect("shown.internal", "r.internal"),
            redirect("shown.internal", "www.shown.internal"),
        ],
        resource_accounts=[{"provider": "P", "account": "a"}],
        categories=[{"slug": "books"}, {"slug": "secret"}],
    )
    summary = build_into(sink, path)
    assert summary.catalogue.read == {
        "shops": 6, "coupons": 4, "offers": 2, "shipping": 2, "policies": 3, "trust": 1, "affiliate_programs": 1,
        "redirects": 3, "resource_accounts": 1, "categories": 2,
    }  # fmt: skip
    assert summary.catalogue.left_out == {
        "coupons": 3, "offers": 1, "shipping": 1, "policies": 1, "trust": 1, "affiliate_programs": 1,
        "redirects": 2, "resource_accounts": 0, "categories": 1,
    }  # fmt: skip
    assert summary.stamp.counts == {"shops": 2, "categories": 2, "coupons": 1, "offers": 1, "facts": 2}


@pytest.mark.rule("G1")
def test_the_embedded_pointer_names_the_live_generation_and_nothing_half_written_is_left(tmp_path: Path) -> None:
    root = tmp_path / "index"
    first = _build(EmbeddedSink(root), tmp_path, [shop("A")]).stamp.generation
    assert (root / "live").read_text() == f"{first}\n"
    second = _build(EmbeddedSink(root), tmp_path, [shop("A")], after=timedelta(minutes=1)).stamp.generation
    assert (root / "live").read_text() == f"{second}\n{first}\n"
    assert sorted(path.name for path in root.iterdir()) == ["generations", "indexer.lock", "live"]
    kinds = ["categories", "coupons", "facts", "offers", "shops"]
    inside = {path.name: sorted(part.name for part in path.iterdir()) for path in (root / "generations").iterdir()}
    of_each = sorted([*kinds, "committed", "operations.json", "stamp.json", "typeahead"])
    assert inside == {first: sorted([*of_each, "retired"]), second: of_each}


@pytest.mark.rule("G1")
@pytest.mark.parametrize(
    ("damaged", "text", "reason"),
    [
        ("stamp", "{}", "cannot be read: not a stamp document"),
        *(
            ("live", text, r"what is live in .* cannot be read: names no generation")
            for text in ("", "live\n", "\n", "{first}\n{first}\n{first}\n")
        ),
    ],
)
def test_a_damaged_stamp_or_pointer_stops_the_build_before_anything_is_written(
    tmp_path: Path, damaged: str, text: str, reason: str
) -> None:
    root = tmp_path / "index"
    live = _build(EmbeddedSink(root), tmp_path, [shop("A")]).stamp
    file = root / "live" if damaged == "live" else root / "generations" / live.generation / "stamp.json"
    written = text.replace("{first}", live.generation)
    file.write_text(written)
    with pytest.raises(SinkError, match=reason):
        _build(EmbeddedSink(root), tmp_path, [shop("B")], after=timedelta(minutes=1))
    assert [path.name for path in (root / "generations").iterdir()] == [live.generation]
    assert file.read_text() == written


TEN: Final = [shop(f"Shop {number}", id=f"s{number}", version=1) for number in range(10)]


class Operator(FollowedIndex):
    def publish(self, shops: Iterable[dict[str, Any]], options: BuildOptions | None = None) -> BuildSummary:
        self.rewrite({"shops": shops, "coupons": [coupon("A", "s0")]})
        return self.build(options or BuildOptions())

    def there(self) -> tuple[list[str], list[str]]:
        states = sorted(path.stem for path in self.states.directory.glob("*.sqlite*"))
        return [found.name for found in self.sink.generations()], states


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path, EmbeddedSink(tmp_path / "index"), {"shops": ()})


def _hidden(number: int) -> dict[str, Any]:
    return upsert("shops", {**TEN[number], "visibility": "under_review"}, 2)


@pytest.mark.rule("V1", "G3")
def test_shops_that_changes_brought_do_not_hide_how_many_are_not_public(operator: Operator) -> None:
    operator.publish(TEN)
    operator.append([_hidden(3), upsert("shops", shop("New", id="s10"), 2)])
    summaries = [operator.publish(TEN) for _ in range(2)]
    assert [
        (found.catalogue.read["shops"], found.catalogue.not_public, found.stamp.counts["shops"]) for found in summaries
    ] == [(10, 1, 10)] * 2


@pytest.mark.rule("G2", "G1")
@pytest.mark.parametrize(
    ("most", "left", "share"), [(0.2, 8, "20%"), (0.5, 5, "50%"), (0.7, 3, "70%"), (0.125, 9, "12.5%"), (0, 10, "0%")]
)
def test_a_build_may_lose_a_share_of_the_public_shops_and_one_that_loses_more_changes_nothing(
    operator: Operator, most: float, left: int, share: str
) -> None:
    live = operator.publish(TEN).stamp
    options = BuildOptions(most_shrink=most)
    for fewer in (left - 1, 0):
        hidden = [{**line, "visibility": "removed"} for line in TEN[fewer:]]
        message = f"^{fewer} of 10 public shops remain, and at most {share} may be lost: .* --allow-shrink$"
        with pytest.raises(ShrinkError, match=message):
            operator.publish([*TEN[:fewer], *hidden], options)
        assert operator.sink.live() == live
        assert operator.there() == ([live.generation], [live.generation])
    summary = operator.publish(TEN[:left], options)
    assert (summary.published, summary.stamp.counts["shops"], operator.sink.live()) == (True, left, summary.stamp)


def test_a_shop_whose_aliases_make_a_build_slow_is_noted_by_its_line(
    sink: Sink, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aliases = [f"{'many words ' * 9}{number}" for number in range(30)]
    summary = _build(sink, tmp_path, [shop("Lamp"), shop("Words", aliases=aliases), shop("Book", aliases=["One"] * 50)])
    (note,) = summary.notes
    assert re.fullmatch(r"shops\.ndjson:2: 2\d,\d{3} characters from each word of its names to the end: .*", note)
    # Before the index is written, so that it explains why that takes its time.
    first = next(line for line in capsys.readouterr().err.splitlines() if re.match("Shops with|Indexing", line))
    assert first == "Shops with long names, which take longer: 1, most of all shops.ndjson:2"


@pytest.mark.rule("G2")
@pytest.mark.parametrize("fresh", [False, True])
def test_a_build_that_loses_a_type_of_records_or_more_of_it_than_of_shops_is_refused(
    tmp_path: Path, *, fresh: bool
) -> None:
    sink = EmbeddedSink(tmp_path / "index")
    states = States(tmp_path / "states", sink.location)

    def built(folder: str, coupons: int, shops: int = 10, **others: Any) -> BuildSummary:  # noqa: ANN401 - options
        kinds: dict[str, list[dict[str, Any]]] = {
            "coupons": [coupon(f"CODE{number}", f"s{9 - number}", id=f"c{number}") for number in range(coupons)],
            "trust": [trust("s0", "registrar", "Some")],
        }
        catalogue = write_catalogue_directory(
            tmp_path / folder, shops=TEN[:shops], **{kind: lines for kind, lines in kinds.items() if lines}
        )
        if others.pop("lacks_trust", False):
            (catalogue / "trust.ndjson").unlink()
        return build(NdjsonCatalogue(catalogue), sink, states, BuildOptions(fresh_state=fresh, **others))

    live = built("first", 10).stamp
    for left, folder in ((7, "seven"), (0, "none")):
        with pytest.raises(ShrinkError, match=f"^{left} of 10 records of type coupons remain, and at most 20% may be"):
            built(folder, left)
    with pytest.raises(ShrinkError, match=r"^0 of 1 records of type trust remain, and at most 20% may be lost: "):
        built("no trust", 10, lacks_trust=True)
    assert sink.live() == live
    assert built("eight", 8).stamp.counts["coupons"] == 8
    assert built("fewer shops", 8, 8).stamp.counts["coupons"] == 6  # the others are lost with their shops
    assert built("allowed", 0, 8, allow_shrink=True, lacks_trust=True).stamp.counts["coupons"] == 0


@pytest.mark.rule("G2")
def test_a_first_build_and_one_after_an_empty_one_lose_nothing(operator: Operator) -> None:
    empty = BuildOptions(allow_empty=True)
    assert operator.publish([], empty).stamp.counts["shops"] == 0
    assert operator.publish([], empty).stamp.counts["shops"] == 0
    assert operator.publish(TEN[:1]).stamp.counts["shops"] == 1


@pytest.mark.rule("G2")
def test_to_lose_all_shops_has_to_be_allowed_in_both_ways(operator: Operator) -> None:
    live = operator.publish(TEN).stamp
    for options, refusal in (
        (BuildOptions(), ShrinkError),
        (BuildOptions(allow_empty=True), ShrinkError),
        (BuildOptions(allow_shrink=True), CatalogueError),
    ):
        with pytest.raises(refusal):
            operator.publish([], options)
        assert operator.sink.live() == live
    assert operator.publish([], BuildOptions(allow_empty=True, allow_shrink=True)).published is True


@pytest.mark.rule("G2", "G3", "G1")
@pytest.mark.parametrize(("hidden", "refused"), [(2, False), (3, True)])
def test_shops_that_changes_hide_after_the_catalogue_was_read_count_as_lost_too(
    operator: Operator, hidden: int, *, refused: bool
) -> None:
    live, sink = operator.publish(TEN).stamp, operator.sink
    late = BuildOptions(acceptance=lambda _: operator.append(map(_hidden, range(hidden))))
    if refused:
        with pytest.raises(ShrinkError, match="7 of 10 public shops remain"):
            operator.publish(TEN, late)
        assert operator.there() == ([live.generation], [live.generation])
        return
    summary = operator.publish(TEN, late)
    assert (summary.stamp.counts["shops"], summary.stamp.sequence, sink.live()) == (8, 2, summary.stamp)
    assert summary.changes == ChangeCounts(2, 0, 0, written=1, removed=5, updates=1)
    assert [key for key, _ in scan(sink.edit(summary.stamp.generation), "shops")] == [f"s{n}" for n in range(2, 10)]


@pytest.mark.rule("G2", "G1")
def test_acceptance_queries_are_asked_of_the_sealed_generation_and_stop_it_when_they_fail(operator: Operator) -> None:
    live = operator.publish(TEN).stamp
    asked: list[tuple[Stamp, Stamp | None]] = []

    def fail(stamp: Stamp) -> None:
        asked.append((stamp, operator.sink.live()))
        assert operator.sink.edit(stamp.generation).count("shops") == 9
        raise SinkError("an answer was wrong")

    with pytest.raises(SinkError, match="an answer was wrong"):
        operator.publish(TEN[:9], BuildOptions(acceptance=fail))
    assert [(stamp.counts["shops"], shown) for stamp, shown in asked] == [(9, live)]
    assert operator.there() == ([live.generation], [live.generation])
    heard: list[Stamp] = []
    assert operator.publish(TEN[:9], BuildOptions(acceptance=heard.append)).stamp == heard[0]


# Before or after which method of the embedded sink or its writer.
STEPS: Final[Mapping[str, tuple[type, str]]] = {
    "after add": (EmbeddedWriter, "add"),
    "after seal": (EmbeddedWriter, "seal"),
    "before count": (EmbeddedWriter, "count"),
    "before read": (EmbeddedWriter, "read"),
    "before edit": (EmbeddedSink, "edit"),
    "before publish": (EmbeddedSink, "publish"),
    "after publish": (EmbeddedSink, "publish"),
    "before retire": (EmbeddedSink, "retire"),
}
PUBLISHED: Final = ("after publish", "before retire")


def interrupt_at(step: str, job: Callable[[], object]) -> None:
    owner, name = STEPS[step]
    whole = getattr(owner, name)

    def interrupt(*arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as the method takes
        if step.startswith("after"):
            whole(*arguments, **named)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            job()


class InterruptedSource(NdjsonCatalogue):
    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        yield next(super().records(kind, problems, advance))
        raise KeyboardInterrupt


class UntidySink(EmbeddedSink):
    def drop(self, generation: str) -> None:
        raise SinkError(f"generation {generation} could not be removed: TheReason")


class UnansweringSink(EmbeddedSink):
    is_silent = False

    def publish(self, generation: str, replaced: str | None) -> None:
        super().publish(generation, replaced)
        self.is_silent = True
        raise SinkError("the generation could not be published: TheReason")

    def live(self) -> Stamp | None:
        if self.is_silent:
            raise SinkError("the stamp cannot be read: TheReason")
        return super().live()


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    return write_catalogue(tmp_path / "shops.ndjson", [shop("A"), shop("B")])


@pytest.mark.rule("G1")
def test_a_build_that_is_interrupted_while_reading_writes_nothing(tmp_path: Path, catalogue: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(InterruptedSource(catalogue), EmbeddedSink(tmp_path / "index"))
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["indexer.lock"]


@pytest.mark.rule("G1")
@pytest.mark.parametrize("step", [step for step in STEPS if step not in PUBLISHED])
def test_a_build_that_is_interrupted_while_writing_leaves_the_live_generation_its_state_and_nothing_else(
    tmp_path: Path, catalogue: Path, step: str
) -> None:
    root = tmp_path / "index"
    sink = EmbeddedSink(root)
    states = States(tmp_path / "state", sink.location)
    live = build(NdjsonCatalogue(catalogue), sink, states).stamp
    interrupt_at(step, lambda: build(NdjsonCatalogue(catalogue), sink, states))
    assert EmbeddedSink(root).live() == live
    assert [left.name for left in (root / "generations").iterdir()] == [live.generation]
    assert sorted(path.name for path in states.directory.iterdir()) == sorted([f"{live.generation}.sqlite", "place"])
    again = build(NdjsonCatalogue(catalogue), sink, states).stamp
    assert (sink.live(), states.has(again.generation)) == (again, True)


@pytest.mark.rule("G1")
@pytest.mark.parametrize("step", PUBLISHED)
def test_a_generation_that_is_live_is_retained_though_its_publisher_was_interrupted(
    tmp_path: Path, catalogue: Path, step: str
) -> None:
    root = tmp_path / "index"
    before = build_into(EmbeddedSink(root), catalogue).stamp
    interrupt_at(step, lambda: build_into(EmbeddedSink(root), catalogue))
    live = EmbeddedSink(root).live()
    assert live is not None
    assert live.generation > before.generation
    assert {left.name for left in (root / "generations").iterdir()} == {before.generation, live.generation}


@pytest.mark.rule("G1", "G3", "V1")
def test_the_state_stays_while_it_is_unknown_whether_its_generation_was_published(
    tmp_path: Path, catalogue: Path
) -> None:
    sink = UnansweringSink(tmp_path / "index")
    states = States(tmp_path / "state", sink.location)
    with pytest.raises(SinkError, match="TheReason"):
        build(NdjsonCatalogue(catalogue), sink, states)
    live = EmbeddedSink(tmp_path / "index").live()
    assert live is not None
    assert states.has(live.generation)


@pytest.mark.rule("G1", "G2")
def test_older_generations_that_can_not_be_removed_are_a_note_and_no_failure(tmp_path: Path, catalogue: Path) -> None:
    sink = UntidySink(tmp_path / "index")
    hours = (datetime(2031, 5, 6, hour, tzinfo=UTC) for hour in range(3))
    summaries = [build(NdjsonCatalogue(catalogue), sink, clock=repeat(hour).__next__) for hour in hours]
    oldest, _, last = summaries
    assert (sink.live(), last.published, last.removed) == (last.stamp, True, ())
    reason = f"generation {oldest.stamp.generation} could not be removed: TheReason"
    note = f"published, but older generations could not be removed ({reason}); the next job tries again"
    assert [summary.notes for summary in summaries] == [(), (), (note,)]


Defect = Callable[[str, list[object]], list[object]]
PUBLIC: Final = 400
HIDDEN: Final = "s_hidden"


def _loses_one(of: str) -> Defect:
    return lambda kind, given: given[1:] if kind == of else given


def _adds_one(kind: str, given: list[object]) -> list[object]:
    return [*given, given[0]] if kind == "shops" else given


def _alters_a_name(kind: str, given: list[object]) -> list[object]:
    match given:
        case [ShopDocument() as first, *others] if kind == "shops":
            return [replace(first, name="Other"), *others]
    return given


def _holds_a_hidden_one(of: str) -> Defect:
    def defect(kind: str, given: list[object]) -> list[object]:
        # In the position of a document that the sample passes over, so that counts and sample are right.
        match given:
            case [first, (ShopDocument() | CouponDocument()) as second, *others] if kind == of:
                return [first, replace(second, id=HIDDEN), *others]
        return given

    return defect


def _alters_the_coupons(kind: str, given: list[object]) -> list[object]:
    del kind
    return [replace(found, view={}) if isinstance(found, CouponDocument) else found for found in given]


def _catalogue(folder: Path) -> Path:
    shops: list[Mapping[str, Any]] = [shop(f"Shop {n}", f"s{n}.internal", id=f"s{n:03}") for n in range(PUBLIC)]
    return write_catalogue_directory(
        folder / "catalogue",
        shops=[*shops, shop("Hidden", id=HIDDEN, visibility="under_review")],
        coupons=[coupon("A", HIDDEN), *(coupon("A", f"s{n:03}") for n in range(PUBLIC))],
        offers=[offer("o1", "s001"), offer("o2", HIDDEN)],
    )


@pytest.mark.rule("G1.verified", "G1", "V1.silent")
@pytest.mark.parametrize(
    ("defect", "message"),
    [
        (_loses_one("shops"), "holds 399 shops, 400 were written"),
        (_loses_one("categories"), "holds 0 categories, 1 were written"),
        (_adds_one, "holds 401 shops, 400 were written"),
        (_alters_a_name, "shops read back from the new generation differ from what was written"),
        (_holds_a_hidden_one("shops"), "the new generation holds shops that may not be public"),
        (_loses_one("coupons"), "holds 399 coupons, 400 were written"),
        (_loses_one("offers"), "holds 0 offers, 1 were written"),
        (_loses_one("facts"), "holds 399 facts, 400 were written"),
        (_alters_the_coupons, "coupons read back from the new generation differ from what was written"),
        (_holds_a_hidden_one("coupons"), "the new generation holds coupons that may not be public"),
    ],
)
def test_a_generation_that_is_not_what_was_written_is_never_published(
    tmp_path: Path, defect: Defect, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, path = MemorySink(), _catalogue(tmp_path)
    live, documents = build_into(sink, path).stamp, sink.documents

    def add(writer: MemoryWriter, kind: str, documents: Iterable[object], _tick: Callable[[], None]) -> int:
        """Store other documents than were given, and return that all were stored."""
        given = list(documents)
        writer.documents[kind] = defect(kind, given)
        return len(given)

    monkeypatch.setattr(MemoryWriter, "add", add)
    with pytest.raises(SinkError, match=message) as error:
        build_into(sink, path)
    assert HIDDEN not in str(error.value)
    assert (sink.live(), sink.documents, sink._unpublished) == (live, documents, {})
