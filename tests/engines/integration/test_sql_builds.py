"""The same catalogue through SQL and NDJSON makes the same indices, built and followed, in both engines."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from index_mappings.documents import DOCUMENTS
from indexer.jobs.build import BuildOptions, build
from indexer.jobs.following import Following, FollowOptions
from indexer.sinks.protocol import Sink
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import ChangeSource, Source
from indexer.sources.sql.catalogue import SqlCatalogue
from indexer.sources.sql.mapping import load_mapping
from indexer.state.states import States
from tests.engines.conftest import Engine
from tests.engines.integration.test_sql_source import SAMPLE, load
from tests.support.sql_databases import Database

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
    return {kind: list(editor.scan(kind)) for kind in DOCUMENTS}


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
