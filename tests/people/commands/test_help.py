"""What help looks like: at 80 columns, without colours where they cannot be seen, and fast."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.people.commands.descriptions import Description, all_descriptions
from tests.people.commands.world import PROGRAMS, environment, run

COLUMNS: Final = 80
HEAVY: Final = (
    "opensearchpy",
    "tantivy",
    "mcp",
    "fastapi",
    "uvicorn",
    "sqlalchemy",
    "psycopg",
    "redis",
    "opentelemetry",
)
_IMPORTED: Final = """
import json, sys
sys.argv = ["shop-directory", *sys.argv[1:]]
import shop_directory.command_line
try:
    shop_directory.command_line.main()
except SystemExit as ended:
    print(json.dumps([ended.code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def words_of(command: Description) -> list[str]:
    """What comes after the program's name."""
    return command.words.split()[1:]


@pytest.mark.parametrize("command", all_descriptions(), ids=lambda command: "-".join(words_of(command)) or "program")
def test_help_fits_80_columns_and_shows_summary_examples_and_codes(command: Description, tmp_path: Path) -> None:
    shown = run(tmp_path, *words_of(command), "--help", COLUMNS=str(COLUMNS))
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert [line for line in lines if len(line) > COLUMNS] == []
    flowing = " ".join(shown.out.replace("│", " ").split())
    said = [command.summary, *command.paragraphs, *(f"{number} {meaning}" for number, meaning in command.codes)]
    assert [part for part in said if part not in flowing] == []
    # An example is a line of its own, to be copied.
    assert [example for example in command.examples if f"   {example}" not in map(str.rstrip, lines)] == []
    assert [name for one in command.parameters for name in one.names if name not in shown.out] == []


def test_the_short_option_shows_the_same_help(tmp_path: Path) -> None:
    for words in ([], ["index"], ["index", "build"]):
        assert run(tmp_path, *words, "-h") == run(tmp_path, *words, "--help")


def test_a_pipe_gets_no_escape_codes(tmp_path: Path) -> None:
    for words in (["--help"], ["index", "build", "--help"], ["no-such-command"]):
        done = run(tmp_path, *words, TERM="xterm-256color")
        assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
    ],
    ids=["colours", "dumb", "no colours"],
)
def test_a_terminal_gets_colours_unless_it_is_dumb_or_wants_none(variables: dict[str, str], *, coloured: bool) -> None:
    mine, theirs = pty.openpty()
    with subprocess.Popen(
        [PROGRAMS / "shop-directory", "serve", "--help"], stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment(**variables),
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(mine, 65_536):
                shown += chunk
        except OSError:  # how the kernel says that the other side of a terminal is closed
            os.close(mine)
    assert (process.returncode, b"Serve the directory over HTTP" in shown) == (0, True)
    # 31 to 37 are colours; bold and dim are not.
    assert (b"\x1b[1;36m" in shown) is coloured


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "index --help",
        "index build --help",
        "serve --help",
        "token revoke --help",
        "rechecks list --help",
        "--version",
    ],
)
def test_help_waits_for_no_engine_and_no_framework(line: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *line.split()], cwd=tmp_path, env=environment(),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    code, imported = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert {"typer", "shop_directory"} <= set(imported)
    assert set(HEAVY) & set(imported) == set()
