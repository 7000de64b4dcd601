"""Runs the tests in two stages at the same time, a serial one and, at a low priority, a parallel one.

The serial stage has the tests whose results depend on how busy the machine is. The parallel one uses what they leave of
the processors. `python -m tests.stages ARGS` passes its arguments to pytest in both stages. The report of the parallel
stage follows that of the serial one, so its closing line is the last one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

import pytest

_TESTS: Final = Path(__file__).parent
# What these assert depends on how busy the machine is, or makes it busy, or restarts whole clusters. The serial stage.
_ALONE: Final = (
    "processes/cluster/test_builds_survive_kills.py",
    "processes/cluster/test_reads_survive_kills.py",
    "processes/endurance/test_swaps_under_load.py",
    "processes/faults/test_fault_matrix.py",
    "processes/load",
    "rules/indistinguishable/test_timing.py",
    "rules/limits/test_fallback.py",
    "rules/limits/test_redis.py",
)
_STAGES: Final = ("parallel", "serial")
# The other stage's processes get the time that the serial one leaves, and at least a tenth of a core.
_LOW_PRIORITY: Final = ("nice", "-n", "10")
_OK: Final = 0
_NO_TESTS: Final = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --stage."""
    parser.getgroup("stages").addoption(
        "--stage",
        choices=_STAGES,
        help="run only the tests that can share the machine with others (parallel), or only the others (serial)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of the other stage to it."""
    stage = config.getoption("--stage")
    if stage is None:
        return
    others = [item for item in items if _is_alone(item.path) is (stage == "parallel")]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if _is_alone(item.path) is not (stage == "parallel")]


def main(arguments: Sequence[str]) -> int:
    """Run both stages.

    Args:
        arguments: pytest's, for both stages.

    Returns:
        pytest's exit code of the first stage that failed, else 0; 5 only where neither stage had a test.
    """
    # Two workers fill two cores: a third one starts another OpenSearch node, saves no time, and lets leases run out.
    workers = str(max(2, os.cpu_count() or 2))
    parallel = _pytest("--stage", "parallel", "-n", workers, "--dist", "loadfile", *arguments)
    with TemporaryFile() as report, _started((*_LOW_PRIORITY, *parallel), report) as background:
        sys.stdout.write("Most tests run in the background; their report follows that of the others.\n")
        sys.stdout.flush()
        serial = subprocess.run(_pytest("--stage", "serial", *arguments), check=False).returncode
        codes = [serial, background.wait()]
        report.seek(0)
        shutil.copyfileobj(report, sys.stdout.buffer)
        sys.stdout.flush()
    failed = [code for code in codes if code not in {_OK, _NO_TESTS}]
    if failed:
        return failed[0]
    return _OK if _OK in codes else _NO_TESTS


def _pytest(*arguments: str) -> tuple[str, ...]:
    return sys.executable, "-m", "pytest", *arguments


@contextmanager
def _started(command: Sequence[str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the context."""
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _is_alone(path: Path) -> bool:
    return any(path.is_relative_to(_TESTS / folder) for folder in _ALONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
