"""Runs the tests in two stages: on all cores what measures neither time nor load, then the rest alone.

`python -m tests.stages ARGS` passes its arguments to pytest in both stages. The second stage prints its closing line
last, whatever the first one did.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

# What these assert depends on how busy the machine is, or makes it busy, or restarts whole clusters.
_ALONE: Final = tuple(
    Path(__file__).parent / name
    for name in (
        "processes/cluster/test_builds_survive_kills.py",
        "processes/cluster/test_reads_survive_kills.py",
        "processes/endurance/test_swaps_under_load.py",
        "processes/faults/test_fault_matrix.py",
        "processes/load",
        "rules/indistinguishable/test_timing.py",
        "rules/limits/test_fallback.py",
        "rules/limits/test_redis.py",
    )
)
_STAGES: Final = ("parallel", "serial")
_OK: Final = 0
_NO_TESTS: Final = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --stage."""
    parser.getgroup("stages").addoption(
        "--stage",
        choices=_STAGES,
        help="run only the tests that can share the machine with others (parallel), or only the others (serial)",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no test of the parallel stage for the serial one, which takes ten seconds."""
    if config.getoption("--stage") != "serial":
        return None
    serial = any(path.is_relative_to(collection_path) or collection_path.is_relative_to(path) for path in _ALONE)
    return None if serial else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of the other stage to it, which may be named in the command."""
    stage = config.getoption("--stage")
    if stage is None:
        return
    others = [item for item in items if _is_alone(item.path) is (stage == "parallel")]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if _is_alone(item.path) is not (stage == "parallel")]


def main(arguments: Sequence[str]) -> int:
    """Run both stages, the second one also after a failure of the first.

    Args:
        arguments: pytest's, for both stages.

    Returns:
        pytest's exit code of the first stage that failed, else 0; 5 only where neither stage had a test.
    """
    # Two workers fill two cores: a third one starts another OpenSearch node, saves no time, and lets leases run out.
    workers = str(max(2, os.cpu_count() or 2))
    codes = [
        subprocess.run([sys.executable, "-m", "pytest", *stage, *arguments], check=False).returncode
        for stage in (("--stage", "parallel", "-n", workers, "--dist", "loadfile"), ("--stage", "serial"))
    ]
    failed = [code for code in codes if code not in {_OK, _NO_TESTS}]
    if failed:
        return failed[0]
    return _OK if _OK in codes else _NO_TESTS


def _is_alone(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _ALONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
