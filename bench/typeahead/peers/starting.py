"""Starts the server of a peer as a process on loopback."""

import http.client
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.support.real.process import ServerProcess, free_ports

# A million shops are read into memory by some.
_START_BOUND_S: Final = 600.0


@contextmanager
def running(title: str, command: Sequence[str], port: int, log: Path) -> Iterator[ServerProcess]:
    """A server that answers `/suggest`, and that has ended when the context ends.

    Raises:
        ProcessError: it died, or did not answer in time.
    """
    process = ServerProcess(f"{title} at port {port}", command, log)
    process.launch()
    try:
        process.wait_for(lambda: _answers(port), "answering", _START_BOUND_S)
        yield process
    finally:
        process.stop()


@contextmanager
def python_transport(module: str, folder: Path, log: Path) -> Iterator[tuple[int, ServerProcess]]:
    """Run a module that calls `transport.main` on the folder of its index; yields port and process."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", module, str(folder.resolve()), str(port)]
    with running(module, command, port, log) as process:
        yield port, process


def uvicorn_version() -> str:
    """For `version` of a system."""
    return f"uvicorn {version('uvicorn')}"


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/suggest?q=a&limit=8")
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return answer.status == http.HTTPStatus.OK
    finally:
        connection.close()
