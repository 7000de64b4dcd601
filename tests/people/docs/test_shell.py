"""The shell of the pages goes on as a person's does, and nothing that goes wrong in it passes for right."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.people.docs.shell import CommandFailedError, Shell
from tests.support.sample import SampleService


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with Shell(tmp_path / "here", tmp_path / "home", {"PATH": "/usr/local/bin:/usr/bin:/bin"}) as begun:
        yield begun


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


def test_what_should_go_on_and_ends_is_a_failure(shell: Shell) -> None:
    with pytest.raises(CommandFailedError, match=r"did not become ready: no\n"):
        shell.start("echo no", lambda: False)
    shell.start("sh -c 'echo begun > begun; read -r _ < /dev/null; exit 3'", (shell.folder / "begun").is_file)
    shell.run("sleep 0.2")
    with pytest.raises(CommandFailedError, match="had ended by itself"):
        shell.end_lasting()
