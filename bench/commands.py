"""Run a command in its own process and measure time, processor time and memory.

An engine maps its files into memory, so anonymous memory and mapped files are reported separately.
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
class CommandResult:
    """The result of a successful command; `answer` is its output, parsed as JSON.

    `seconds` include the start of the interpreter; `processor` is in seconds, user and system. The peaks of memory are
    `ru_maxrss` and, as sampled, RssAnon (`own_mib`) and RssFile (`mapped_mib`).
    """

    answer: Any
    seconds: float
    processor: float
    peak_mib: float
    own_mib: float
    mapped_mib: float


def run(arguments: Sequence[str], settings: Mapping[str, str] | None = None) -> CommandResult:
    """Run a module of this project by what follows `python -m`, with more settings in the environment."""
    started = time.perf_counter()
    with TemporaryFile() as stderr, TemporaryFile() as stdout:
        child = subprocess.Popen(  # noqa: S603 - our own modules
            [sys.executable, "-m", *arguments], stdout=stdout, stderr=stderr, env={**os.environ, **(settings or {})}
        )
        own, mapped = _watch(child.pid)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        if child.returncode:
            stderr.seek(0)
            raise RuntimeError(f"{arguments[0]} failed: {stderr.read().decode(errors='replace')}")
        stdout.seek(0)
        answer = json.loads(stdout.read())
    return CommandResult(answer, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, own, mapped)


def printed(command: Sequence[str]) -> str:
    """What a command prints, such as its version."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - our own


def processor_seconds(pid: int) -> float:
    """The processor time of a running process in seconds, user and system, to the nanosecond.

    The clock id of a process is derived from its pid as clock_getcpuclockid(3) does on Linux.
    """
    return time.clock_gettime((~pid << 3) | 2)


def _watch(pid: int) -> tuple[float, float]:
    """Sample until the process has ended; returns the peaks of RssAnon and RssFile in MiB."""
    own = mapped = 0.0
    # WNOWAIT leaves the process a zombie, so that wait4 can still return its resource usage.
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        now_own, now_mapped = memory_mib(pid)
        own, mapped = max(own, now_own), max(mapped, now_mapped)
        time.sleep(_SAMPLE_S)
    return own, mapped


def memory_mib(pid: int) -> tuple[float, float]:
    """The anonymous memory of a process, and its mapped files, in MiB; zeros for one that has ended."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
    own, mapped = (int(status.get(name, "0 kB").split(maxsplit=1)[0]) / 1024 for name in ("RssAnon", "RssFile"))
    return own, mapped
