"""MCP over stdio by hand: lines in and lines out of a process, so that malformed messages can be sent too."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from tests.support.real.sources import REPOSITORY

_END_BOUND_S: Final = 20.0
INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


class StdioLines:
    """The service as a process; `log` is filled when it has ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Talk to a process that runs."""
        self._process = process
        self.log = ""

    def ask(self, *lines: bytes) -> bytes:
        """Send lines, if there are any, and read the next one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"".join(line + b"\n" for line in lines))
        self._process.stdin.flush()
        return self._process.stdout.readline()


@contextmanager
def stdio_lines(variables: Mapping[str, str], *module: str) -> Iterator[StdioLines]:
    """Start a module with its arguments, by default the service, with more variables in its environment.

    At the end its input is closed, and it must end well without another line.
    """
    command = [sys.executable, "-m", *(module or ("service", "mcp"))]
    environment = {**os.environ, **variables, "PYTHONPATH": str(REPOSITORY)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        lines = StdioLines(process)
        yield lines
        rest, log = process.communicate(timeout=_END_BOUND_S)
    lines.log = log.decode()
    assert (rest, process.returncode) == (b"", 0), lines.log
