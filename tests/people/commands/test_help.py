"""How the program speaks: help and its page, completion, `--json`, examples, and endings with a code of one table."""

import asyncio
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Final

import pytest

from shop_directory.settings.commands import ExitCode
from shop_directory.settings.reading import EnvironmentSettings, installed_sides, variable
from tests.people.commands.page import Description, all_descriptions, command_descriptions, commands_page
from tests.people.commands.world import PROGRAMS, environment, queue_up, ran, run
from tests.support.catalogues import shop
from tests.support.real.sources import REPOSITORY

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
    return command.words.split()[1:]


@pytest.mark.parametrize("command", all_descriptions(), ids=lambda command: "-".join(words_of(command)) or "program")
def test_help_fits_80_columns_and_shows_summary_examples_and_codes(command: Description, tmp_path: Path) -> None:
    shown = run(tmp_path, *words_of(command), "--help", COLUMNS=str(COLUMNS))
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert [line for line in lines if len(line) > COLUMNS] == []
    assert command.widest <= COLUMNS - 2  # a longer line would be broken, and its last word stand alone
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
    done = ran([sys.executable, "-c", _IMPORTED, *line.split()], tmp_path, environment(), check=True)
    code, imported = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert {"typer", "shop_directory"} <= set(imported)
    assert set(HEAVY) & set(imported) == set()


# The shell's own functions: what bash does when a line is completed, without a terminal.
_BASH = """
source <(shop-directory --show-completion bash)
COMP_WORDS=({words} {last}) COMP_CWORD={number}
_shop_directory_completion shop-directory
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed_in_bash(folder: Path, line: str) -> list[str]:
    *words, last = line.split(" ")
    script = _BASH.format(words=" ".join(words), last=f"'{last}'", number=len(words))
    done = ran(["bash", "--norc", "-c", script], folder, environment(), check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("shop-directory index re", []),
        ("shop-directory index ro", ["rollback"]),
        ("shop-directory t", ["token"]),
        ("shop-directory index build --cat", ["--catalogue"]),
        ("shop-directory index build --engine ", ["embedded", "opensearch"]),
        ("shop-directory serve --engine o", ["opensearch"]),
        ("shop-directory token --store ", ["sqlite", "redis"]),
        ("shop-directory token --path none.sqlite revoke ", []),
    ],
)
def test_bash_completes_commands_options_and_values(line: str, offered: list[str], tmp_path: Path) -> None:
    assert completed_in_bash(tmp_path, line) == offered
    assert list(tmp_path.iterdir()) == []


def test_bash_completes_the_ids_of_tokens_from_the_store_that_the_line_names(tmp_path: Path) -> None:
    issued = [run(tmp_path, "token", "--path", "t.sqlite", "new", "--name", name, "--json").document for name in "ab"]
    ids = [token["id"] for token in issued]
    assert completed_in_bash(tmp_path, "shop-directory token --path t.sqlite revoke ") == ids
    assert completed_in_bash(tmp_path, f"shop-directory token --path t.sqlite revoke {ids[1][:15]}") == ids[1:]
    assert completed_in_bash(tmp_path, "shop-directory token revoke ") == []


def test_zsh_completes_with_what_each_is_for(tmp_path: Path) -> None:
    issued = run(tmp_path, "token", "--path", "t.sqlite", "new", "--name", "price widget", "--json").document
    asked = {"_SHOP_DIRECTORY_COMPLETE": "complete_zsh"}
    groups = run(tmp_path, **asked, _TYPER_COMPLETE_ARGS="shop-directory tok")
    ids = run(tmp_path, **asked, _TYPER_COMPLETE_ARGS="shop-directory token --path t.sqlite revoke ")
    assert groups.out == """_arguments '*: :(("token":"Issue, list and revoke API tokens."))'\n"""
    assert ids.out == f"""_arguments '*: :(("{issued["id"]}":"price widget"))'\n"""
    assert [done.code for done in (groups, ids)] == [0, 0]


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


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_the_output_is_reported_as_a_sentence(folder: Path, unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PROGRAMS / "shop-directory", "version"], cwd=folder, env={**environment(), "PYTHONUNBUFFERED": unbuffered},
            stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, b"The output can't be written: No space left on device.\n")


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


PAGE: Final = REPOSITORY / "docs" / "commands.md"
COMMANDS: Final = command_descriptions()
_ENVIRONMENT: Final = re.compile(r"\[env: (\w+)\]")


def named(command: Description) -> str:
    return command.words.removeprefix("shop-directory ").replace(" ", "-")


def test_the_page_is_what_the_program_says() -> None:
    assert commands_page() == PAGE.read_text(encoding="utf-8"), "write it again by `make commands`"


@pytest.mark.parametrize("command", COMMANDS, ids=named)
def test_a_command_has_a_summary_of_one_sentence_examples_and_exit_codes_of_the_table(command: Description) -> None:
    assert re.fullmatch(r"[A-Z][^.]*\.", command.summary), command.summary
    assert [example for example in command.examples if command.words not in example] == []
    assert command.examples
    numbers = [number for number, _ in command.codes]
    assert numbers[:1] == [0]
    assert sorted(set(numbers)) == numbers
    assert set(numbers) <= set(ExitCode)


@pytest.mark.parametrize("command", all_descriptions(), ids=named)
def test_every_option_says_in_a_sentence_what_it_is_for(command: Description) -> None:
    silent = [one.names for one in command.parameters if not re.match(r"[A-Za-z].*\.( \[env: \w+\])?$", one.help)]
    assert silent == []


@pytest.mark.parametrize("command", all_descriptions(), ids=named)
def test_a_variable_that_an_option_names_is_a_setting_with_the_default_that_help_shows(command: Description) -> None:
    settings: dict[str, tuple[type[EnvironmentSettings], str]] = {
        variable(name): (kind, name) for kind in installed_sides().values() for name in kind.model_fields
    }
    for one in command.parameters:
        for found in _ENVIRONMENT.findall(one.help):
            kind, name = settings[found]
            default = kind.model_fields[name].get_default(call_default_factory=True)
            if found == "SHOP_DIRECTORY_STATE_DIR":
                assert (default, one.default) == (None, "alongside the embedded index")
            else:
                assert one.default == shown(default), found


def shown(default: Any) -> str:  # noqa: ANN401 - any setting
    if default is None:
        return ""
    return str(default.get_secret_value() if hasattr(default, "get_secret_value") else default)


# What runs until it gets a signal to stop.
_LASTING: Final = re.compile(r"shop-directory (serve (?!.*--print-config)|index follow (?!.*--once))")
_PORT: Final = "--port 8080"
EXAMPLES: Final = tuple(dict.fromkeys(example for command in all_descriptions() for example in command.examples))
LASTING: Final = tuple(example for example in EXAMPLES if _LASTING.search(example))
ENDING: Final = tuple(example for example in EXAMPLES if example not in LASTING)
# Where an example looks for a service.
_ADDRESS: Final = "http://127.0.0.1:8080"
_QUOTAS: Final = '{"reads": 100000, "suggest": 100000, "reports": 0}'


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Where the index of the folder is served, with quotas that no test waits for."""
    with subprocess.Popen(
        [PROGRAMS / "shop-directory", "serve", "--port", "0", "--json"], cwd=folder,
        env=environment(SHOP_DIRECTORY_DRAIN_SECONDS="0", SHOP_DIRECTORY_QUOTA_ANONYMOUS=_QUOTAS),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()


@pytest.mark.parametrize("example", ENDING)
def test_an_example_ends_well(example: str, folder: Path, request: pytest.FixtureRequest) -> None:
    line = example.replace(_ADDRESS, request.getfixturevalue("address")) if _ADDRESS in example else example
    done = ran(["bash", "-c", line], folder, environment())
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("example", LASTING)
def test_an_example_that_lasts_does_its_work_and_ends_well_on_sigterm(example: str, folder: Path) -> None:
    serves = " serve " in example
    if not serves:
        change(folder / "changes.ndjson")
        change(folder / "my-shops" / "changes.ndjson")
    with subprocess.Popen(
        ["bash", "-c", example.replace(_PORT, "--port 0")], cwd=folder,
        env=environment(SHOP_DIRECTORY_DRAIN_SECONDS="0"), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        impatient = threading.Timer(_PATIENCE_S, process.kill)
        impatient.start()
        stream = process.stdout if serves else process.stderr
        assert stream is not None
        said = until(stream, "http://" if serves else "changes applied")
        # Of a pipeline the first: what follows it comes to its end by itself.
        os.kill([*children(process.pid), process.pid][0], signal.SIGTERM)
        out, err = process.communicate()
        impatient.cancel()
    assert (process.returncode, "Traceback" in said + err) == (0, False), said + err
    assert serves or out.startswith("Followed for ")


def change(file: Path) -> None:
    line = {"op": "upsert", "type": "shops", "record": shop("Zinnia", id="zinnia"), "version": time.time_ns()}
    with file.open("a", encoding="utf-8") as changes:
        changes.write(f"{json.dumps(line)}\n")


def children(process: int) -> list[int]:
    return [int(found) for found in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def until(stream: IO[str], words: str) -> str:
    said = ""
    while words not in said and (line := stream.readline()):
        said += line
    return said
