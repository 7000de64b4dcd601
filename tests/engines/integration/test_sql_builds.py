"""The same catalogue through SQL and NDJSON makes the same indices, built and followed, in both engines."""

import json
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import BigInteger, Text, event, insert, text

from index_mappings.documents import DOCUMENTS
from indexer.jobs.build import BuildOptions, build
from indexer.jobs.following import Following, FollowOptions
from indexer.jobs.update import ChangeCounts
from indexer.progress import Advance
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.protocol import Sink, scan
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import ChangeSource, NumberedRecord, Source
from indexer.sources.sql.catalogue import ROWS_PER_PAGE, SqlCatalogue, SqlChanges
from indexer.sources.sql.tables import TableMapping, load_mapping
from indexer.state.state import States
from tests.engines.conftest import Engine
from tests.engines.integration.test_sql_source import SAMPLE, load
from tests.support.sql_databases import CUT_OFF, FIELDS, Database, shop_row

MAPPING = """
[shops]
version = "version"
[coupons]
[offers]
[shipping]
[trust]
[affiliate_programs]
[redirects]
[resource_accounts]
[categories]
"""


def _held(sink: Sink) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    live = sink.live()
    assert live is not None
    editor = sink.edit(live.generation)
    return {kind: list(scan(editor, kind)) for kind in DOCUMENTS}


def _built(source: Source, sink: Sink, states: States) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    summary = build(source, sink, states, BuildOptions(allow_shrink=True, fresh_state=True))
    held = _held(sink)
    assert {kind: len(documents) for kind, documents in held.items()} == summary.stamp.counts
    assert all(summary.stamp.counts.values())
    return held


def _followed(changes: ChangeSource | None, sink: Sink, states: States) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    assert changes is not None
    summary = Following(sink, states, changes, FollowOptions(once=True)).run(threading.Event())
    assert summary.changes.applied == 2
    changes.close()
    return _held(sink)


@pytest.mark.rule("G1", "G3")
def test_the_same_catalogue_through_sql_and_ndjson_gives_identical_indices(
    database: Database,
    engine: Engine,
    tmp_path: Path,
) -> None:
    load(database, SAMPLE)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(MAPPING, encoding="utf-8")
    folder = tmp_path / "catalogue"
    folder.mkdir()
    for file in SAMPLE.glob("*.ndjson"):
        (folder / file.name).write_bytes(file.read_bytes())
    rows = SqlCatalogue(database.url, load_mapping(mapping))
    states = States(tmp_path / "state", "the test's")
    shops = [json.loads(line) for line in (SAMPLE / "shops.ndjson").read_text().splitlines()]
    shown = [line for line in shops if line["visibility"] == "public"]
    renamed, hidden = shown[0], shown[1]
    newer = max(line.get("version") or 0 for line in shops) + 1

    from_rows = _built(rows, engine.sink, states)
    statement = "UPDATE shops SET name = 'Renamed', version = :version WHERE id = :id"
    hide = "UPDATE shops SET visibility = 'removed', version = :version WHERE id = :id"
    database.run(
        text(statement).bindparams(version=newer, id=renamed["id"]),
        text(hide).bindparams(version=newer + 1, id=hidden["id"]),
    )
    changed_rows = _followed(rows.changes(), engine.sink, states)

    assert _built(NdjsonCatalogue(folder), engine.sink, states) == from_rows
    records = ({**renamed, "name": "Renamed"}, {**hidden, "visibility": "removed"})
    with (folder / "changes.ndjson").open("w", encoding="utf-8") as lines:
        for number, record in enumerate(records):
            record.pop("version", None)
            record.pop("updated_at", None)
            change = {"op": "upsert", "type": "shops", "record": record, "version": newer + number}
            lines.write(f"{json.dumps(change)}\n")
    changed_lines = _followed(NdjsonCatalogue(folder).changes(), engine.sink, states)
    assert changed_lines == changed_rows != from_rows


class _CutOff(SqlCatalogue):
    """A catalogue whose transaction the server ends before it counts or while it reads the rows of a table."""

    def __init__(self, database: Database, kind: str, *, within: bool) -> None:
        super().__init__(database.url, {kind: TableMapping() for kind in ("shops", "coupons")})
        self._database, self._kind, self._within = database, kind, within

    def size(self, kind: str) -> int:
        if kind == self._kind and not self._within:
            self._database.run(CUT_OFF)
        return super().size(kind)

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Generator[NumberedRecord, None, None]:
        for number, record in enumerate(super().records(kind, problems, advance)):
            if kind == self._kind and self._within and number == 0:
                self._database.run(CUT_OFF)
            yield record


@pytest.mark.rule("G1", "G3")
@pytest.mark.parametrize(("kind", "within"), [("coupons", False), ("shops", True)], ids=["between", "within"])
def test_a_build_whose_transaction_is_ended_publishes_nothing_and_the_next_one_all(
    postgres_database: Database, tmp_path: Path, kind: str, *, within: bool
) -> None:
    shops = postgres_database.table("shops", FIELDS)
    coupons = postgres_database.table(
        "coupons", {name: Text() for name in ("id", "shop_id", "code", "verification_status")}
    )
    rows = range(2 * ROWS_PER_PAGE + 1)
    postgres_database.run(
        insert(shops).values([shop_row(number) for number in rows]),
        insert(coupons).values(
            [{"id": f"c{at}", "shop_id": f"s{at:05}", "code": "A", "verification_status": "unverified"} for at in rows]
        ),
    )
    sink = EmbeddedSink(tmp_path / "index")
    states = States(tmp_path / "state", sink.location)
    live = build(SqlCatalogue(postgres_database.url), sink, states).stamp
    assert (live.counts["shops"], live.counts["coupons"]) == (len(rows), len(rows))
    with pytest.raises(CatalogueError, match=rf"^the table {kind} cannot be read: the server ended the connection"):
        build(_CutOff(postgres_database, kind, within=within), sink, states)
    assert (sink.live(), [path.stem for path in states.directory.glob("*.sqlite")]) == (live, [live.generation])
    assert build(SqlCatalogue(postgres_database.url), sink, states).stamp.counts == live.counts


@pytest.mark.rule("G3")
def test_a_follower_whose_transaction_is_ended_tries_again_and_loses_no_change(
    postgres_database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shops = postgres_database.table("shops", {**FIELDS, "version": BigInteger()})
    postgres_database.run(insert(shops).values([shop_row(number, version=number) for number in range(3)]))
    source = SqlCatalogue(postgres_database.url, {"shops": TableMapping(version="version")})
    sink = EmbeddedSink(tmp_path / "index")
    states = States(tmp_path / "state", sink.location)
    build(source, sink, states)
    postgres_database.run(insert(shops).values([shop_row(number, version=number) for number in range(3, 40)]))
    changes = source.changes()
    assert isinstance(changes, SqlChanges)
    cuts = list[str]()

    def cut_off(_connection: Any, _cursor: Any, statement: str, *_others: object) -> None:  # noqa: ANN401 - SQLAlchemy
        if "FROM shops" in statement and len(cuts) < 3:
            cuts.append(statement)
            postgres_database.run(CUT_OFF)

    event.listen(changes._engine, "before_cursor_execute", cut_off)
    stop = threading.Event()

    def stop_at_the_end(_: ChangeCounts) -> None:
        if sink.edit(build_of(sink)).count("shops") == 40:
            stop.set()

    options = FollowOptions(interval=0.01, micro_batch=10)
    summary = Following(sink, states, changes, options, on_batch=stop_at_the_end).run(stop)
    changes.close()
    assert (len(cuts), summary.failures, summary.changes.applied) == (3, 3, 37)
    assert all("the server ended the connection (SQLSTATE 57P01)" in message for message in caplog.messages)


def build_of(sink: Sink) -> str:
    """The name of the live generation."""
    live = sink.live()
    assert live is not None
    return live.generation
