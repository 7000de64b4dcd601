"""Running a command as a process of its own, and what it took: time, processor time, memory.

The engine's files are mapped into the process's memory, so what it holds itself is told apart from what it maps.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

_SAMPLE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended well.

    Attributes:
        answer: what it printed, read as JSON.
        seconds: by the clock, start of the interpreter included.
        processor: seconds of processor time, its own and the system's for it.
        peak_mib: the most memory that was resident at a time (`ru_maxrss`), in MiB.
        own_mib: the most of it that was the process's own (RssAnon), as sampled.
        mapped_mib: the most of it that were mapped files (RssFile), as sampled.
    """

    answer: Any
    seconds: float
    processor: float
    peak_mib: float
    own_mib: float
    mapped_mib: float


def run(arguments: Sequence[str], settings: Mapping[str, str] | None = None) -> Ended:
    """Run a module of this project.

    Args:
        arguments: what follows `python -m`.
        settings: added to the environment.

    Raises:
        RuntimeError: it failed; what it said on standard error is in the text.
    """
    started = time.perf_counter()
    with TemporaryFile() as said, TemporaryFile() as printed:
        child = subprocess.Popen(  # noqa: S603 - our own modules
            [sys.executable, "-m", *arguments], stdout=printed, stderr=said, env={**os.environ, **(settings or {})}
        )
        own, mapped = _watch(child.pid)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        if child.returncode:
            said.seek(0)
            raise RuntimeError(f"{arguments[0]} failed: {said.read().decode(errors='replace')}")
        printed.seek(0)
        answer = json.loads(printed.read())
    return Ended(answer, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, own, mapped)


def processor_seconds(pid: int) -> float:
    """The processor time of a running process in seconds, user and system, to the nanosecond.

    The clock id of a process is derived from its pid as clock_getcpuclockid(3) does on Linux.
    """
    return time.clock_gettime((~pid << 3) | 2)


def _watch(pid: int) -> tuple[float, float]:
    """Sample until the process has ended; returns the peaks of RssAnon and RssFile in MiB."""
    own = mapped = 0.0
    # It is not waited for here, so that its number stays its own and its use of resources can be asked for.
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
        own = max(own, _mebibytes(status.get("RssAnon", "0 kB")))
        mapped = max(mapped, _mebibytes(status.get("RssFile", "0 kB")))
        time.sleep(_SAMPLE_S)
    return own, mapped


def _mebibytes(stated: str) -> float:
    return int(stated.split(maxsplit=1)[0]) / 1024
