"""The shell of the pages goes on as a person's does, and nothing that goes wrong in it passes for right."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.people.docs.shell import CommandFailedError, Shell, commands
from tests.people.docs.world import crontab_command, without_comment
from tests.support.sample import SampleService


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with Shell(tmp_path / "here", tmp_path / "home", {"PATH": "/usr/local/bin:/usr/bin:/bin"}) as begun:
        yield begun


def test_a_folder_and_a_variable_hold_for_the_next_command(shell: Shell) -> None:
    shell.run("mkdir there && cd there")
    shell.run("NAME=$(echo a name)")
    assert shell.run('echo "$PWD" "$NAME"') == f"{shell.folder / 'there'} a name\n"
    assert shell.variable("NAME") == "a name"
    shell.begin()
    assert shell.run('echo "$PWD" "${NAME-none}"') == f"{shell.folder} none\n"


def test_nothing_of_the_environment_of_the_tests_is_in_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DIRECTORY_ENGINE", "opensearch")
    assert shell.variable("SHOP_DIRECTORY_ENGINE") == ""


def test_a_command_that_fails_is_a_failure_with_what_it_said(shell: Shell) -> None:
    with pytest.raises(CommandFailedError, match=r"ended with 7: first\nand why"):
        shell.run("echo first; echo and why >&2; exit 7")
    with pytest.raises(CommandFailedError, match="no-such-command"):
        shell.run("no-such-command --at-all")


@pytest.mark.parametrize(("path", "status"), [("/tool/get_shop", 405), ("/nothing", 404), ("/suggest", 400)])
def test_an_answer_that_is_an_error_is_a_failure_of_its_command(
    shell: Shell, sample: SampleService, path: str, status: int
) -> None:
    with pytest.raises(CommandFailedError, match=f"{status}"):
        shell.run(f"curl {sample.base}{path}")


def test_what_goes_on_is_waited_for_and_ended(shell: Shell) -> None:
    shell.start("sh -c 'echo begun > begun; exec sleep 60'", (shell.folder / "begun").is_file)
    assert shell.run("cat begun") == "begun\n"
    shell.end_lasting()
    shell.end_lasting()


def test_what_should_go_on_and_ends_is_a_failure(shell: Shell) -> None:
    with pytest.raises(CommandFailedError, match=r"did not become ready: no\n"):
        shell.start("echo no", lambda: False)
    shell.start("sh -c 'echo begun > begun; read -r _ < /dev/null; exit 3'", (shell.folder / "begun").is_file)
    shell.run("sleep 0.2")
    with pytest.raises(CommandFailedError, match="had ended by itself"):
        shell.end_lasting()


def test_a_block_is_taken_apart_into_its_commands() -> None:
    block = "# only said\none 'a\nb'  # and why\n\ntwo \\\n  --more \"c\"\nthree\n"
    assert commands(block) == ["one 'a\nb'  # and why", 'two \\\n  --more "c"', "three"]
    with pytest.raises(AssertionError, match="a command without an end"):
        commands("one 'a\n")


def test_a_comment_and_the_times_of_a_crontab_are_no_part_of_a_command() -> None:
    assert without_comment("make run     # it runs") == "make run"
    assert without_comment("curl '#a' -d '#b'") == "curl '#a' -d '#b'"
    assert crontab_command("0 3 * * 1-5   build --json >> log\n") == "build --json >> log"
    with pytest.raises(AssertionError, match="no line of a crontab"):
        crontab_command("build --json\n")
