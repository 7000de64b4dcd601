"""A full build: what it publishes, what it reports, and that nothing else happens."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.generations import is_generation
from indexer.jobs.build import BuildOptions, BuildSummary, build
from indexer.jobs.reading import ReadCounts
from indexer.jobs.update import ChangeCounts
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Sink
from indexer.sources.ndjson import NdjsonCatalogue
from tests.support.catalogues import (
    build_into,
    coupon,
    offer,
    program,
    redirect,
    shipping,
    shop,
    trust,
    write_catalogue,
    write_catalogue_directory,
)
from tests.support.memory_sink import MemorySink

NOON: Final = datetime(2031, 5, 6, 12, tzinfo=UTC)
Shops = Iterable[Mapping[str, Any]]


@pytest.fixture(params=["memory", "embedded"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Sink:
    return MemorySink() if request.param == "memory" else EmbeddedSink(tmp_path / "index")


def _build(
    sink: Sink, folder: Path, shops: Shops, *, skip_invalid: bool = False, after: timedelta = timedelta()
) -> BuildSummary:
    source = NdjsonCatalogue(write_catalogue(folder / "shops.ndjson", shops))
    return build(source, sink, options=BuildOptions(skip_invalid=skip_invalid), clock=lambda: NOON + after)


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
        "shops": 6, "coupons": 4, "offers": 2, "shipping": 2, "trust": 1, "affiliate_programs": 1, "redirects": 3,
        "resource_accounts": 1, "categories": 2,
    }  # fmt: skip
    assert summary.catalogue.left_out == {
        "coupons": 3, "offers": 1, "shipping": 1, "trust": 1, "affiliate_programs": 1, "redirects": 2,
        "resource_accounts": 0, "categories": 1,
    }  # fmt: skip
    assert summary.stamp.counts == {"shops": 2, "categories": 2, "coupons": 1, "offers": 1, "facts": 2}


@pytest.mark.rule("G1")
def test_the_remains_of_a_killed_build_are_removed_by_the_next_one(tmp_path: Path) -> None:
    root = tmp_path / "index"
    remains = root / "generations" / "20310101t000000000000-0a1b2c" / "shops"
    remains.mkdir(parents=True)
    (root / "generations" / "notes").mkdir()
    summary = build_into(EmbeddedSink(root), write_catalogue(tmp_path / "shops.ndjson", [shop("A")]))
    assert summary.removed == (remains.parent.name,)
    assert sorted(path.name for path in (root / "generations").iterdir()) == [summary.stamp.generation, "notes"]


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
