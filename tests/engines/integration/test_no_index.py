"""A service that finds no index says so, says where it looked to its operator, and answers once one is published."""

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.embedded import stamp_path
from indexer.sinks.embedded.sink import EmbeddedSink
from service.app import create_app
from service.settings.service import Settings
from tests.engines.conftest import Engine
from tests.support.catalogues import build_into, shop, write_catalogue
from tests.support.served import get, post, served
from tests.support.stdio_lines import INITIALIZE

NO_INDEX: Final = (
    "No index is published where this service looks for one, so nothing can be answered. The operator builds one with "
    "shop-directory index build, or corrects the location, which the log names. Try again in 2 seconds."
)
READY: Final = (
    "search: nothing is published yet. Build the index with shop-directory index build; the log of this process says "
    "where it looks."
)


@pytest.mark.rule("O1", "G4.schema", "E5", "I73")
def test_without_an_index_calls_are_not_ready_and_an_index_published_later_is_served(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = engine.settings
    looked_in = str(given.data_dir) if given.engine == "embedded" else f"{given.index_prefix}-stamp"
    with served(create_app(given)) as base:
        replies = [post(base, "/tool/find_shop", {"query": "lamp"}), get(base, "/suggest?q=lamp")]
        ready = get(base, "/ready")
        build_into(engine.sink, write_catalogue(tmp_path / "shops.ndjson", [shop("Lamp")]))
        found = post(base, "/tool/find_shop", {"query": "lamp"})
    assert [(reply.status, reply.json["code"], reply.json["detail"]) for reply in replies] == [
        (503, "not_ready", NO_INDEX)
    ] * 2
    assert (ready.status, ready.json["code"], ready.json["detail"]) == (503, "not_ready", READY)
    assert not [reply for reply in (*replies, ready) if looked_in in reply.body.decode()]
    assert (found.status, [one["name"] for one in found.json["results"]]) == (200, ["Lamp"])
    at_start = [record.getMessage() for record in caplog.records if record.getMessage().startswith("there is no index")]
    assert len(at_start) == 1
    assert looked_in in at_start[0]
    assert "shop-directory index build" in at_start[0]


@pytest.mark.rule("G4.schema", "O1")
def test_an_index_of_another_schema_is_logged_at_the_start_with_both_versions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "index"
    stamp = build_into(EmbeddedSink(folder), write_catalogue(tmp_path / "shops.ndjson", [shop("Lamp")])).stamp
    other = replace(stamp, schema_version=SCHEMA_VERSION + 1).as_wire()
    stamp_path(folder, stamp.generation).write_text(json.dumps(other), encoding="utf-8")
    with caplog.at_level(logging.WARNING), served(create_app(Settings(data_dir=folder))) as base:
        reply = post(base, "/tool/find_shop", {"query": "lamp"})
    assert (reply.status, reply.json["code"]) == (503, "not_ready")
    assert "has a schema version that this service does not read" in reply.json["detail"]
    versions = f"schema version {SCHEMA_VERSION + 1}, this service reads {SCHEMA_VERSION}"
    assert [
        record.getMessage()
        for record in caplog.records
        if record.getMessage().startswith("there is no index") and versions in record.getMessage()
    ]


@pytest.mark.rule("I4", "E2", "E2.wait", "E5")
def test_over_stdio_a_wrong_folder_is_reported_to_the_client_without_and_on_stderr_with_its_path(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "wrong folder"
    call = {"name": "find_shop", "arguments": {"query": "lamp"}}
    messages = [INITIALIZE, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}]
    ended = subprocess.run(
        [sys.executable, "-m", "shop_directory", "mcp", "--data-dir", str(folder)],
        input="\n".join(json.dumps(message) for message in messages),
        capture_output=True,
        cwd=tmp_path,
        text=True,
        timeout=60,
        check=True,
    )
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, ended.stdout.splitlines())}
    problem = json.loads(answers[2]["content"][0]["text"])
    assert (answers[2]["isError"], problem["code"], problem["detail"]) == (True, "not_ready", NO_INDEX)
    assert "wrong folder" not in ended.stdout
    assert f"nothing is published in {folder}, the directory of --data-dir or SHOP_DIRECTORY_DATA_DIR" in ended.stderr
