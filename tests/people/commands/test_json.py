"""With `--json` standard output holds one JSON document and nothing else; a problem is one on standard error."""

import asyncio
import json
import re
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.people.commands.descriptions import command_descriptions
from tests.people.commands.world import PROGRAMS, environment, queue_up, run

_TABLES: Final = tomllib.loads(Path(__file__).with_name("json.toml").read_text(encoding="utf-8"))
ANSWERS: Final[dict[str, list[str]]] = _TABLES["answers"]
LINES: Final[dict[str, list[str]]] = _TABLES["lines"]
PROBLEMS: Final = _TABLES["problems"]


def test_every_command_that_prints_an_answer_has_json_and_is_asked_here() -> None:
    commands = {one.words.removeprefix("shop-directory "): one for one in command_descriptions()}
    having = {words for words, one in commands.items() if any("--json" in option.names for option in one.parameters)}
    # `mcp` speaks JSON only.
    assert set(commands) - having == {"mcp"}
    assert having == {*ANSWERS, *LINES}


@pytest.mark.parametrize("command", ANSWERS)
def test_the_answer_is_one_json_document(command: str, folder: Path) -> None:
    line, fields = ANSWERS[command]
    document = run(folder, *line.split(), "--json").document
    if fields == "[]":
        assert isinstance(document, list)
    else:
        assert set(fields.split()) <= set(document)
        assert command == "serve" or set(document) == set(fields.split())


@pytest.mark.parametrize("command", LINES)
def test_a_stream_is_one_json_object_a_line(command: str, folder: Path, tmp_path: Path) -> None:
    line, fields = LINES[command]
    # A queue of its own: the examples take re-checks off that of the folder.
    asyncio.run(queue_up(tmp_path / "reports.sqlite"))
    done = run(folder, *line.split(), "--json", SHOP_DIRECTORY_REPORTS_FILE=str(tmp_path / "reports.sqlite"))
    assert (done.code, done.err) == (0, "")
    assert [set(json.loads(one)) for one in done.out.splitlines()] == [set(fields.split())] * 2


@pytest.mark.parametrize("line", PROBLEMS)
def test_a_problem_is_an_object_with_its_code_on_standard_error(line: str, folder: Path) -> None:
    code, name, message = PROBLEMS[line]
    done = run(folder, *line.split(), "--json")
    assert (done.code, done.error) == (
        code,
        {"error": {"code": name, "message": message.replace("FOLDER", str(folder))}},
    )
    assert done.out == "" or isinstance(done.document, dict)


def test_serve_says_in_one_document_where_it_listens_and_nothing_more(folder: Path) -> None:
    with subprocess.Popen(
        [PROGRAMS / "shop-directory", "serve", "--port", "0", "--hints", "--json"], cwd=folder,
        env=environment(SHOP_DIRECTORY_DRAIN_SECONDS="0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        document = json.loads(process.stdout.readline())
        taken = run(folder, "serve", "--port", document["url"].rpartition(":")[2], "--json")
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=30)
    assert (list(document), rest, process.returncode) == (["url"], "", 0)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", document["url"])
    port = document["url"].rpartition(":")[2]
    message = (
        f"Nothing is served at 127.0.0.1 port {port}: another program listens there. "
        "Choose another port by --port; 0 takes a free one."
    )
    assert (taken.code, taken.out) == (3, "")
    assert taken.error == {"error": {"code": "unavailable", "message": message}}
