"""With `--json` standard output holds one JSON document and nothing else; a problem is one on standard error."""

import asyncio
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Final

import pytest

from indexer.catalogue.schema import KINDS
from tests.people.commands.descriptions import command_descriptions
from tests.people.commands.world import PROGRAMS, TOKEN_ID, environment, queue_up, run

_BUILT: Final = (
    "generation published unchanged counts read left_out not_public superseded lost_domain disputed_categories "
    "skipped_invalid changes kept kept_listing notes removed_generations restarts seconds"
)
_FOLLOWED: Final = (
    "generation applied older refused documents_written documents_removed updates failures status_failures reconciled "
    "seconds"
)
_NO_CATALOGUE: Final = (
    "there is no catalogue at nowhere, which --catalogue names: give a directory of NDJSON files or one file of shops."
)
# Each command with `--json`, how it is asked here, and the fields of its answer; `[]` is a list of such objects.
ANSWERS: Final = {
    "serve": ("serve --print-config", "SHOP_DIRECTORY_ENGINE"),
    "check": ("check --list", "rules unseen"),
    "config": ("config", "service indexer"),
    "version": ("version", "name version commit built_at"),
    "catalogue schema": ("catalogue schema", "$schema title description $defs"),
    "catalogue validate": ("catalogue validate my-shops", "problems valid bad_records records public_shops notes"),
    "catalogue init": ("catalogue init json-init", "directory files"),
    "catalogue from-csv": ("catalogue from-csv shops.csv json-csv", "directory shops not_public bad_rows columns"),
    "index build": ("index build --catalogue my-shops --dry-run", _BUILT),
    "index follow": ("index follow --catalogue my-shops --once", _FOLLOWED),
    "index status": ("index status", "location generations"),
    "index rollback": ("index rollback --dry-run", "generation published counts replaced changes"),
    "index prune": ("index prune --dry-run", "removed_generations dry_run"),
    "index verify": ("index verify", "generation faults found repaired refused checked seconds"),
    "token new": ("token --path new.sqlite new --name till", "token id name class expires_at"),
    "token list": ("token --path new.sqlite list", "[]"),
    "token revoke": (f"token revoke {TOKEN_ID[::-1]}", "revoked"),
    "rechecks list": ("rechecks list", "depth lag pending dead workers rechecks dead_letters"),
    "rechecks ack": ("rechecks ack --worker desk-9 1", "acknowledged not_held"),
}
# Streams: one object a line.
LINES: Final = {
    "rechecks claim": ("rechecks claim --worker desk-2 --idle 0", "id deliveries claimed_by idle_seconds report"),
    "rechecks export": ("rechecks export", "reported_at kind shop_id code reason source"),
}
PROBLEMS: Final = {
    "index biuld": (2, "usage", "No such command 'biuld'. Did you mean 'build'?"),
    "index build --catalog x": (2, "usage", "No such option: --catalog (Possible options: --catalogue)"),
    "catalogue schema shop": (2, "usage", f"There is no such kind: name one of {', '.join(KINDS)}."),
    "catalogue init my-shops": (1, "bad_input", "Nothing was written: my-shops is not empty: name another directory."),
    "index build --mapping x": (2, "usage", "--mapping goes with --sql."),
    "index build --catalogue nowhere": (1, "bad_input", f"Nothing was published: {_NO_CATALOGUE}"),
    "index build --data-dir my-shops/shops.ndjson/x": (
        1,
        "bad_input",
        "Nothing was published: the state directory my-shops/shops.ndjson/x.state cannot be used: Not a directory.",
    ),
    "index status --engine zebra": (2, "usage", "--engine is wrong: it must be embedded or opensearch."),
    "serve --port 99999": (2, "usage", "--port is wrong: it must be a port from 0 (any free one) to 65535."),
    "token new": (2, "usage", "Missing option '--name'."),
    "token revoke none": (1, "bad_input", "There is no token with this id; `list` shows the ids."),
    "token --path my-shops list": (
        3,
        "unavailable",
        (
            "The token store can't be used (the token file FOLDER/my-shops: Is a directory). "
            "If a token was to be issued or revoked, `list` will show whether it was."
        ),
    ),
    "rechecks claim --worker a/b": (
        2,
        "usage",
        "Invalid value for '--worker': must be 1 to 64 letters, digits, dots, underscores, hyphens or @",
    ),
    "rechecks ack --worker desk-9 1": (1, "bad_input", "Not held by desk-9: 1."),
}


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
