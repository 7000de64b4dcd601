"""A copy of the project in which an addition is planted, and whose own tests judge it; the tree is never touched.

It is a copy of the files, not of what is imported: what fails there would fail for a contributor with the same change.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.golden.golden import RENEW
from tests.people.docs.world import copy_tracked, install

_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+?::\w+)", re.MULTILINE)
# What pytest says when tests ran: all passed, or some failed. Anything else is no judgement.
_RAN: Final = {0, 1}
_NOT_INHERITED: Final = {RENEW, "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
_BOUND_S: Final = 120


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of all tracked files, with the programs of the tests."""

    root: Path

    def write(self, path: str, text: str) -> None:
        """Add a file."""
        assert not (self.root / path).exists(), f"{path} is there already"
        (self.root / path).write_text(text, encoding="utf-8")

    def put_behind(self, path: str, known: str, added: str) -> None:
        """Put a text behind another one, which must stand in the file exactly once."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert text.count(known) == 1, f"{path} has {known!r} {text.count(known)} times: plant it elsewhere"
        file.write_text(text.replace(known, known + added), encoding="utf-8")

    def failing(self, tests: Iterable[str]) -> set[str]:
        """Which of these tests fail in the copy, for any of their parameters."""
        options = ("-p", "no:cacheprovider", "--quiet", "--tb=no", "-rfE")
        done = self._run(["python", "-m", "pytest", *options, *dict.fromkeys(tests)])
        assert done.returncode in _RAN, done.stdout + done.stderr
        return set(_FAILED.findall(done.stdout))

    def make(self, command: str) -> set[str]:
        """Run a command of the page in the copy; returns the tests that it reports as failing."""
        return set(_FAILED.findall(self._run(["/bin/sh", "-c", command]).stdout))

    def printed(self, module: str, *words: str) -> str:
        """What a module of the copy prints; it must end well."""
        done = self._run(["python", "-m", module, *words])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        programs = f"{self.root / '.venv' / 'bin'}:{Path(sys.executable).parent}"
        given = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        given |= {"PATH": f"{programs}:{given.get('PATH', '/usr/bin:/bin')}"}
        # Bytecode is taken for a source's own by its second and its size, and a planted digit changes neither.
        given["PYTHONDONTWRITEBYTECODE"] = "1"
        return subprocess.run(
            words, cwd=self.root, env=given, capture_output=True, text=True, timeout=_BOUND_S, check=False
        )


def copy_of_the_project(root: Path) -> Copy:
    """A copy in a folder that is not there yet."""
    copy_tracked(root)
    install(root)
    return Copy(root)
