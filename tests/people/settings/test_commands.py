"""What the commands say about settings: those in effect with secrets hidden, wrong ones, and unknown ones."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from shop_directory.command_line import command_line
from shop_directory.settings.reading import installed_sides

CANARY: Final = "zqcanaryzq"
MISSPELT: Final = (
    "SHOP_DIRECTORY_OPENSEARCH_URL is not a setting and is ignored. Is SHOP_DIRECTORY_OPENSEARCH_URLS meant?\n"
)


def _run(*arguments: str, **variables: str) -> Result:
    return CliRunner().invoke(
        command_line(), list(arguments), env={f"SHOP_DIRECTORY_{name}": value for name, value in variables.items()}
    )


def _secrets(folder: Path) -> Mapping[str, str]:
    (folder / "url").write_text(f"sqlite:///{CANARY}?password={CANARY}\n")
    return {
        "REDIS_URL": f"redis://reader:{CANARY}@one.example/0",
        "SQL_URL_FILE": str(folder / "url"),
        "API_TOKEN": CANARY,
        "OPENSEARCH_USER": "reader",
        "OPENSEARCH_PASSWORD": CANARY,
    }


def test_config_prints_what_is_in_effect_on_both_sides_and_no_secret(tmp_path: Path) -> None:
    done = _run("config", "--json", PORT="9001", COMMIT="", **_secrets(tmp_path))
    printed = json.loads(done.stdout)
    assert (done.exit_code, done.stderr, list(printed)) == (0, "", ["indexer", "service"])
    assert CANARY not in done.output
    assert {side: [len(printed[side]), len(kind.model_fields)] for side, kind in installed_sides().items()} == {
        side: [len(kind.model_fields)] * 2 for side, kind in installed_sides().items()
    }
    of_service, of_indexer = printed["service"], printed["indexer"]
    hidden = {"value": "(hidden)", "source": "environment"}
    assert of_service["SHOP_DIRECTORY_PORT"] == {"value": 9001, "source": "environment"}
    assert of_service["SHOP_DIRECTORY_COMMIT"] == {"value": None, "source": "default"}
    assert of_service["SHOP_DIRECTORY_OPENSEARCH_USER"] == {"value": "reader", "source": "environment"}
    assert [of_service[f"SHOP_DIRECTORY_{name}"] for name in ("REDIS_URL", "API_TOKEN")] == [hidden, hidden]
    assert of_service["SHOP_DIRECTORY_OPENSEARCH_PASSWORD"] == of_indexer["SHOP_DIRECTORY_OPENSEARCH_PASSWORD"]
    assert of_service["SHOP_DIRECTORY_OPENSEARCH_PASSWORD"] == hidden
    assert of_indexer["SHOP_DIRECTORY_SQL_URL"] == {"value": "(hidden)", "source": "file"}
    assert of_indexer["SHOP_DIRECTORY_OPENSEARCH_URLS"] == {"value": ["http://127.0.0.1:9200"], "source": "default"}


def test_config_prints_lines_for_people(tmp_path: Path) -> None:
    done = _run("config", **_secrets(tmp_path), MCP_ALLOWED_HOSTS="one.example,two.example:*")
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert (done.exit_code, CANARY in done.output, lines[0]) == (0, False, ["indexer:"])
    assert ["SHOP_DIRECTORY_SQL_URL", "file", "(hidden)"] in lines
    assert ["SHOP_DIRECTORY_MCP_ALLOWED_HOSTS", "environment", "one.example,two.example:*"] in lines
    assert ["SHOP_DIRECTORY_API_TOKEN", "environment", "(hidden)"] in lines
    assert ["SHOP_DIRECTORY_BUILT_AT", "default"] in lines
    assert ["service:"] in lines


def test_serve_prints_its_settings_with_its_options_and_ends(tmp_path: Path) -> None:
    done = _run("serve", "--print-config", "--port", "9002", HOST="127.0.0.2", **_secrets(tmp_path))
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert (done.exit_code, done.stderr, CANARY in done.output) == (0, "", False)
    assert ["SHOP_DIRECTORY_PORT", "option", "9002"] in lines
    assert ["SHOP_DIRECTORY_HOST", "environment", "127.0.0.2"] in lines
    assert ["SHOP_DIRECTORY_ENGINE", "default", "embedded"] in lines
    assert [name for name, *_ in lines] == [
        f"SHOP_DIRECTORY_{name.upper()}" for name in installed_sides()["service"].model_fields
    ]


@pytest.mark.parametrize("command", [("config",), ("serve",), ("mcp",), ("index", "status"), ("index", "build")])
def test_a_wrong_setting_stops_every_command_by_name(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "password").write_text("")
    done = _run(*command, ENGINE=CANARY, OPENSEARCH_PASSWORD_FILE=str(tmp_path / "password"))
    assert (done.exit_code, done.stdout, done.stderr) == (
        2,
        "",
        (
            "SHOP_DIRECTORY_OPENSEARCH_PASSWORD_FILE is wrong: the file is empty. "
            "SHOP_DIRECTORY_ENGINE is wrong: it must be embedded or opensearch.\n"
        ),
    )


@pytest.mark.parametrize("command", [("token", "list"), ("rechecks", "list")])
def test_a_secret_of_the_stores_comes_from_a_file_in_the_operators_commands_too(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "url").write_text(f"https://{CANARY}")
    wrong = _run(*command, TOKEN_STORE="redis", REPORTS="redis", REDIS_URL_FILE=str(tmp_path / "url"))
    assert (wrong.exit_code, wrong.stdout, CANARY in wrong.stderr) == (2, "", False)
    assert wrong.stderr.startswith("SHOP_DIRECTORY_REDIS_URL")
    both = _run(*command, REDIS_URL="redis://127.0.0.1", REDIS_URL_FILE=str(tmp_path / "url"))
    assert (both.exit_code, both.stdout, both.stderr) == (
        2,
        "",
        "SHOP_DIRECTORY_REDIS_URL and SHOP_DIRECTORY_REDIS_URL_FILE are both set: leave one of them out.\n",
    )


@pytest.mark.parametrize("command", [("config", "--json"), ("serve", "--print-config")])
def test_a_misspelt_variable_is_reported_with_the_one_that_is_meant(command: tuple[str, ...]) -> None:
    done = _run(*command, OPENSEARCH_URL=f"https://{CANARY}")
    assert (done.exit_code, done.stderr, CANARY in done.output) == (0, MISSPELT, False)


def test_the_indexer_reports_a_misspelt_variable_too(tmp_path: Path) -> None:
    done = _run("index", "status", DATA_DIR=str(tmp_path / "index"), OPENSEARCH_URL=CANARY, OPENSEARCH_USERS=CANARY)
    assert done.stderr == MISSPELT + (
        "SHOP_DIRECTORY_OPENSEARCH_USERS is not a setting and is ignored. Is SHOP_DIRECTORY_OPENSEARCH_USER meant?\n"
    )
    assert CANARY not in done.output


def test_an_unknown_variable_is_reported_alone_and_the_other_sides_settings_are_not() -> None:
    done = _run("serve", "--print-config", QUUX="1", MOST_SHRINK="0.3", SQL_URL_FILE="/nowhere", PORT_FILE="/nowhere")
    assert (done.exit_code, done.stderr) == (
        0,
        (
            "SHOP_DIRECTORY_PORT_FILE is ignored: only secret settings can be in a file.\n"
            "SHOP_DIRECTORY_QUUX is not a setting and is ignored.\n"
        ),
    )


def test_where_the_development_data_are_is_no_misspelt_setting(tmp_path: Path) -> None:
    shown = _run("config", DEV_DATA=str(tmp_path))
    served = _run("serve", "--print-config", DEV_DATA=str(tmp_path), DEV_DATUM="1")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert (served.exit_code, served.stderr) == (0, "SHOP_DIRECTORY_DEV_DATUM is not a setting and is ignored.\n")


def test_the_other_sides_wrong_settings_stop_no_command(tmp_path: Path) -> None:
    served = _run("serve", "--print-config", MOST_SHRINK=CANARY, OPENSEARCH_SHARDS="0")
    assert (served.exit_code, served.stderr) == (0, "")
    listed = _run("index", "status", DATA_DIR=str(tmp_path / "index"), PORT=CANARY)
    assert "PORT" not in listed.stderr
