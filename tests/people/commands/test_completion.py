"""Completion in bash and zsh: commands, options, and the values that the program knows."""

import subprocess
from pathlib import Path

import pytest

from tests.people.commands.world import environment, run

# The shell's own functions: what bash does when a line is completed, without a terminal.
_BASH = """
source <(shop-directory --show-completion bash)
COMP_WORDS=({words} {last}) COMP_CWORD={number}
_shop_directory_completion shop-directory
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed_in_bash(folder: Path, line: str) -> list[str]:
    """What bash offers at the end of a line."""
    *words, last = line.split(" ")
    script = _BASH.format(words=" ".join(words), last=f"'{last}'", number=len(words))
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, env=environment(), capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
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
