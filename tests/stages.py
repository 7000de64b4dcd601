"""Runs the tests in stages: those of five minutes, the rest of those that can share the machine, and those that can't.

`python -m tests.stages STAGE... ARGS` passes ARGS to pytest in each stage:

* `fast`, which is `make test`: every rule but two, the units and golden files, and one real part of each kind.
* `parallel`, which is `make test-all`: all tests but those of `serial`.
* `serial`, which is `make test-long`: one after the other, the tests that kill, load and restart servers.
* `rest` and `alone`, of which with `fast` no test runs twice: those of both that can share the machine, two at a time,
  and those that can't.
* `containers`, which is `make test-containers` where an engine can be started; else it says why not. The stage after it
  runs at the same time, as this one waits for servers most of the time, in separate namespaces.

With several stages, a closing line gives the result of all of them.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

_TESTS: Final = Path(__file__).parent
# What these assert depends on how busy the machine is, or they make it busy.
_ALONE: Final = tuple(_TESTS / name for name in ("processes/load", "rules/indistinguishable/test_timing.py"))
# These files there wait, and assert nothing about how long something takes.
_SHARING: Final = tuple(_TESTS / "processes" / "load" / name for name in ("test_ending.py", "test_workers.py"))
_SERIAL: Final = (_TESTS / "processes", *_ALONE)
_FAST: Final = tuple(_TESTS / name for name in ("golden", "rules", "unit"))
# Judges from outside, which take long; what is generated is asked in other tests as well.
_NOT_FAST: Final = (_TESTS / "rules" / "judges",)
# The files of other folders that have tests marked as fast: they prove a rule alone, or use the only PostgreSQL.
_ALSO_FAST: Final = tuple(
    _TESTS / name
    for name in (
        "engines/integration/test_generation_roles.py",
        "engines/integration/test_opensearch_publishing.py",
        "engines/integration/test_sql_source.py",
        "people/check/test_right_servers.py",
        "people/web/test_server_views.py",
    )
)
# The share of the rounds of generated tests.
_FAST_ROUNDS: Final = "0.25"
_STAGES: Final = ("fast", "rest", "alone", "parallel", "serial")
# One test after the other.
_ONE_BY_ONE: Final = ("alone", "serial")
# These tests have a program that gives them an engine.
_CONTAINERS: Final = "containers"
_LEFT_OUT: Final = (
    "make test ran the fast tests. Left out: the other tests of engines and people, judges and slow tests (make "
    "test-all); kills, load and clusters (make test-long)."
)
# Where files are in memory, on a machine that has this much left for them: engines and stores sync what they write.
_MEMORY: Final = Path("/dev") / "shm"
_ROOM: Final = 8 * 1024**3
_OK: Final = 0
_NO_TESTS: Final = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --stage."""
    parser.getgroup("stages").addoption("--stage", choices=_STAGES, help="run only the tests of one stage")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no test of another stage, which takes ten seconds."""
    stage = config.getoption("--stage")
    if stage == "rest" and collection_path.name.startswith("test_") and is_fast(collection_path, ()):
        # Its tests are all of the fast stage.
        return None if "mark.slow" in collection_path.read_text(encoding="utf-8") else True
    folders = {"fast": (*_FAST, *_ALSO_FAST), "serial": _SERIAL, "alone": _ALONE}.get(stage)
    if folders is None:
        return None
    read = any(path.is_relative_to(collection_path) or collection_path.is_relative_to(path) for path in folders)
    return None if read else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of other stages to them."""
    stage = config.getoption("--stage")
    if stage is not None:
        others = [item for item in items if stage not in _stages_of(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if stage in _stages_of(item)]


def _stages_of(item: pytest.Item) -> tuple[str, ...]:
    if _is_in(item.path, _SERIAL):
        return ("serial", "alone" if _is_in(item.path, _ALONE) and not _is_in(item.path, _SHARING) else "rest")
    marks = {mark.name for mark in item.iter_markers()}
    return ("parallel", "fast" if is_fast(item.path, marks) else "rest")


def is_fast(path: Path, marks: Collection[str]) -> bool:
    """Whether a test is in the fast stage, by its file and the names of its marks."""
    if path in _ALSO_FAST:
        return "fast" in marks
    return _is_in(path, _FAST) and not _is_in(path, (*_SERIAL, *_NOT_FAST)) and "slow" not in marks


def _is_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def main(arguments: Sequence[str]) -> int:
    """Run the stages that the arguments begin with, each also after a failure of the one before.

    Returns pytest's exit code of the first stage that failed, else 0; 5 only where no stage had a test.
    """
    stages = [argument for argument in arguments if argument in {*_STAGES, _CONTAINERS}]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        reports = [Path(folder) / f"{stage}.xml" for stage in stages]
        with ThreadPoolExecutor() as executor:
            running: list[Future[int]] = []
            for stage, report in zip(stages, reports, strict=True):
                options = [f"--junit-xml={report}"] if len(stages) > 1 else []
                running.append(executor.submit(_run, stage, options, arguments[len(stages) :]))
                if stage != _CONTAINERS:
                    wait(running)
            codes = [stage.result() for stage in running]
        if len(stages) > 1:
            print(_closing_line(codes, reports, time.monotonic() - began), flush=True)  # noqa: T201 - the answer
    if stages == ["fast"]:
        print(_LEFT_OUT, flush=True)  # noqa: T201 - the answer
    failed = [code for code in codes if code not in {_OK, _NO_TESTS}]
    if failed:
        return failed[0]
    return _OK if _OK in codes else _NO_TESTS


def _run(stage: str, options: Sequence[str], arguments: Sequence[str]) -> int:
    if stage == _CONTAINERS:
        command = [sys.executable, "-m", "tests.containers", "--where-possible", *options, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, end="", flush=True)  # noqa: T201 - not between the lines of another stage
        return done.returncode
    # Two workers fill two cores: a third one starts another OpenSearch node, saves no time, and lets leases run out.
    workers = str(max(2, os.cpu_count() or 2))
    # In the order of the folders: the many short files of the last one leave no worker idle, as a long one would.
    spread = ["-n", workers, "--dist", "loadfile", "--no-loadscope-reorder"] if stage not in _ONE_BY_ONE else []
    command = [sys.executable, "-m", "pytest", "--stage", stage, *spread, *options, *arguments]
    # Compiled files are kept, whatever this machine is set to: hundreds of processes import the same packages.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    if stage == "fast":
        environment.setdefault("TEST_ROUNDS", _FAST_ROUNDS)
    if stage in _ONE_BY_ONE or not _is_roomy():
        return subprocess.run(command, env=environment, check=False).returncode
    with tempfile.TemporaryDirectory(dir=_MEMORY, ignore_cleanup_errors=True) as folder:
        # Servers that do not run as root have folders of their own in it.
        Path(folder).chmod(0o711)
        return subprocess.run(command, env={**environment, "TMPDIR": folder}, check=False).returncode


def _is_roomy() -> bool:
    """Whether tests may write into memory, and start programs there."""
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize >= _ROOM and not found.f_flag & os.ST_NOEXEC and os.access(_MEMORY, os.W_OK)


def _closing_line(codes: Sequence[int], reports: Sequence[Path], seconds: float) -> str:
    """What came of all stages, as pytest puts it; a stage that failed without a failed test counts as one."""
    passed = failed = 0
    for code, report in zip(codes, reports, strict=True):
        counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        if report.exists():
            (suite,) = ET.parse(report).getroot()  # noqa: S314 - pytest wrote it
            counts = {name: int(suite.attrib[name]) for name in counts}
        wrong = counts["failures"] + counts["errors"]
        passed += counts["tests"] - wrong - counts["skipped"]
        failed += max(wrong, code not in {_OK, _NO_TESTS})
    return f"{passed} passed, {failed} failed in {seconds:.2f}s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
