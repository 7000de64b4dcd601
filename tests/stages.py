"""Runs the tests in two stages: on all cores what can share the machine, and one after the other what needs it alone.

`python -m tests.stages STAGE... ARGS` passes ARGS to pytest in each stage. `make test` is the stage `parallel`,
`make test-long` the stage `serial`; with both, a closing line says what came of them together.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

# What these assert depends on how busy the machine is, or they make it busy, or kill and restart servers and clusters.
_ALONE: Final = tuple(
    Path(__file__).parent / name
    for name in (
        "processes",
        "rules/indistinguishable/test_timing.py",
    )
)
_STAGES: Final = ("parallel", "serial")
# Where files are in memory, on a machine that has this much left for them: engines and stores sync what they write.
_MEMORY: Final = Path("/dev") / "shm"
_ROOM: Final = 8 * 1024**3
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
    """Run the stages that the arguments begin with, each also after a failure of the one before.

    Returns pytest's exit code of the first stage that failed, else 0; 5 only where no stage had a test.
    """
    stages = [argument for argument in arguments if argument in _STAGES]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        reports = [Path(folder) / f"{stage}.xml" for stage in stages]
        codes = [
            _run(stage, [f"--junit-xml={report}"] if len(stages) > 1 else [], arguments[len(stages) :])
            for stage, report in zip(stages, reports, strict=True)
        ]
        if len(stages) > 1:
            print(_closing_line(codes, reports, time.monotonic() - began), flush=True)  # noqa: T201 - the answer
    failed = [code for code in codes if code not in {_OK, _NO_TESTS}]
    if failed:
        return failed[0]
    return _OK if _OK in codes else _NO_TESTS


def _run(stage: str, options: Sequence[str], arguments: Sequence[str]) -> int:
    # Two workers fill two cores: a third one starts another OpenSearch node, saves no time, and lets leases run out.
    workers = str(max(2, os.cpu_count() or 2))
    # In the order of the folders: the many short files of the last one leave no worker idle, as a long one would.
    spread = ["-n", workers, "--dist", "loadfile", "--no-loadscope-reorder"] if stage == "parallel" else []
    command = [sys.executable, "-m", "pytest", "--stage", stage, *spread, *options, *arguments]
    # Compiled files are kept, whatever this machine is set to: hundreds of processes import the same packages.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    if stage == "serial" or not _is_roomy():
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


def _is_alone(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _ALONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
