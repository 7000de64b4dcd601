"""The one command: its subcommands come from the entry points that are installed."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

import pytest
import typer
from typer.testing import CliRunner

import shop_directory.command_line as program
from shop_directory.settings.commands import problems_as_json
from tests.support import forked
from tests.support.served import get
from tests.support.worlds import embedded_world

REPOSITORY: Final = Path(__file__).parents[3]
COMMANDS: Final = {"serve": "service.__main__:serve", "mcp": "service.__main__:mcp", "index": "indexer.__main__:index"}


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The command as an installation has it, and with a part whose library is missing."""
    named = {**COMMANDS, "broken": "service.no_such_module:command"}
    found = [EntryPoint(name, value, program.GROUP) for name, value in named.items()]
    # Tests of other commands may have asked for JSON; the program itself resets this at its start.
    problems_as_json(asked=False)
    monkeypatch.setattr(program, "entry_points", lambda group: found if group == program.GROUP else [])
    return program.command_line()


def test_a_part_that_is_not_installed_names_itself_and_leaves_the_others_usable(command_line: typer.Typer) -> None:
    result = CliRunner().invoke(command_line, ["broken"])
    assert result.exit_code == 1
    assert result.output == "shop-directory broken: Not usable: service.no_such_module is not installed.\n"
    assert CliRunner().invoke(command_line, ["--help"]).exit_code == 0


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which another program listens at all addresses: a service that is not refused ends in another way."""
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    with socket.create_server(("", 0), family=family, dualstack_ipv6=dual) as taken:
        yield taken.getsockname()[1]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.0.2.7", "::ffff:192.0.2.7", "directory.internal", "localhost.internal"]
)
def test_listening_beyond_this_machine_without_an_operations_key_is_refused_with_both_ways_out(
    command_line: typer.Typer, monkeypatch: pytest.MonkeyPatch, taken_port: int, host: str, workers: int
) -> None:
    shared = {"SHOP_DIRECTORY_LIMITER": "redis", "SHOP_DIRECTORY_REPORTS": "redis"} if workers > 1 else {}
    for name, value in shared.items():
        monkeypatch.setenv(name, value)
    options = ["--host", host, "--port", str(taken_port), "--workers", str(workers)]
    result = CliRunner().invoke(command_line, ["serve", *options])
    message = (
        f"SHOP_DIRECTORY_HOST is {host}, so other machines would read /metrics, /metrics/resources and /api/ops/state: "
        "set a key for them in SHOP_DIRECTORY_OPS_KEY, or SHOP_DIRECTORY_OPEN_OPERATIONS=true if that is meant.\n"
    )
    assert (result.exit_code, result.output) == (2, message)


@pytest.mark.parametrize(
    ("host", "environment"),
    [
        ("127.0.0.1", {}),
        ("localhost", {}),
        ("0.0.0.0", {"SHOP_DIRECTORY_OPS_KEY": "a-key-of-sixteen-and-more"}),
        ("0.0.0.0", {"SHOP_DIRECTORY_OPEN_OPERATIONS": "true"}),
    ],
)
def test_the_service_listens_on_this_machine_or_with_a_key_or_where_open_operations_are_meant(
    tmp_path: Path, host: str, environment: dict[str, str]
) -> None:
    given = {**os.environ, "PYTHONPATH": str(REPOSITORY), "SHOP_DIRECTORY_DATA_DIR": str(tmp_path), **environment}
    command = [sys.executable, "-m", "service", "serve", "--host", host, "--port", "0"]
    with forked.start(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        result = server.stdout.readline()
        server.send_signal(signal.SIGINT)
    assert result.startswith("Shop Directory serves at http://")


def test_serve_says_what_it_waits_for_then_that_it_serves_gives_hints_and_ends_on_a_signal(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [
        sys.executable, "-m", "service", "serve", "--port", "0", "--data-dir", str(tmp_path / "index"), "--hints",
    ]  # fmt: skip
    with forked.start(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline().decode()
            assert embedded_world(tmp_path) == tmp_path / "index"
            while (line := process.stdout.readline().decode()).startswith("Listening at "):
                pass
            url = line.rpartition(" ")[2].strip()
            ready = get(url, "/ready").status
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
    assert (line, ready) == (f"Shop Directory serves at {url}\n", 200)
    nothing = "Build the index with shop-directory index build; the log of this process says where it looks."
    assert first == f"Listening at {url}, not ready yet: search: nothing is published yet. {nothing}\n"
    assert [line for line in rest.decode().splitlines() if line] == [
        "Things to try:",
        f"  {url}/ in a browser: type lumn, or look at {url}/docs",
        f"  curl '{url}/suggest?q=lumn'",
        f"  curl {url}/tool/list_categories -H 'content-type: application/json' -d '{{}}'",
        f"  an MCP client at {url}/mcp",
    ]
