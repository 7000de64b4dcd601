"""How the program ends: with a code of the one table and a sentence, never with a traceback."""

import os
import re
import signal
import socket
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from tests.people.commands.world import PROGRAMS, environment, run

COMMIT: Final = "3f786850e387550fdab836ed7e6dc881de23001b"
BUILT_AT: Final = "2026-11-21T09:30:00Z"
_PATIENCE_S: Final = 30.0


@pytest.mark.parametrize(
    ("line", "code", "expected"),
    [
        ("index rolback", 2, "No such command 'rolback'. Did you mean 'rollback'?"),
        (
            "index status --data-dir my-shops/shops.ndjson",
            3,
            "The generations could not be listed: what is live in my-shops/shops.ndjson cannot be read",
        ),
    ],
)
def test_a_problem_is_reported_as_a_sentence_and_a_code(line: str, code: int, expected: str, folder: Path) -> None:
    done = run(folder, *line.split())
    assert (done.code, done.out, "Traceback" in done.err) == (code, "", False)
    assert expected in " ".join(re.sub("[│╭╮╰╯─]", " ", done.err).split())


def test_no_command_at_all_shows_the_help_and_is_wrong_usage(tmp_path: Path) -> None:
    bare, asked = run(tmp_path), run(tmp_path, "--help")
    assert (bare.code, bare.out.strip(), bare.err) == (2, asked.out.strip(), "")


@pytest.mark.parametrize("line", ["--help", "index build --help", "rechecks export", "config"])
def test_a_closed_pipe_is_not_reported_as_a_problem(line: str, folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [PROGRAMS / "shop-directory", *line.split()], cwd=folder, env=environment(), stdout=writer,
        stderr=subprocess.PIPE, timeout=60, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("options", "expected"), [([], ""), (["--json"], '{"error": {"code": "interrupted", "message": "Interrupted."}}\n')]
)
def test_ctrl_c_ends_with_130_and_without_a_traceback(options: list[str], expected: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(_PATIENCE_S)
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen(
            [PROGRAMS / "shop-directory", "token", "--store", "redis", "--redis-url", url, "list", *options],
            cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            connected, _ = silent.accept()
            with connected:
                process.send_signal(signal.SIGINT)
                ended = process.communicate(timeout=_PATIENCE_S)
    assert (process.returncode, *ended) == (130, "", expected)


def test_the_version_is_printed_with_the_commit_where_it_is_known(tmp_path: Path) -> None:
    built = {"SHOP_DIRECTORY_COMMIT": COMMIT, "SHOP_DIRECTORY_BUILT_AT": BUILT_AT}
    number = version("shop-directory")
    assert run(tmp_path, "--version").out == f"shop-directory {number}\n"
    known = f"shop-directory {number} (commit {COMMIT}, built at {BUILT_AT})\n"
    assert run(tmp_path, "--version", **built).out == known
    assert run(tmp_path, "version", "--json", **built).document == {
        "name": "shop-directory", "version": number, "commit": COMMIT, "built_at": BUILT_AT,
    }  # fmt: skip
