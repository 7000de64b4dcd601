"""Starts the server of a peer as a process on loopback."""

import http.client
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bench.typeahead.system import RunningServer
from tests.support.real.process import ServerProcess, free_ports

# A million shops are read into memory by some.
_START_BOUND_S: Final = 600.0


@contextmanager
def running(
    title: str, command: Sequence[str], port: int, log: Path, ready: Callable[[int], bool] | None = None
) -> Iterator[ServerProcess]:
    """A server that answers, and that has ended when the context ends.

    `log` is the file of its output. `ready` is asked whether the server at a port answers; by default whether
    `/suggest` does.
    """
    process = ServerProcess(f"{title} at port {port}", command, log)
    process.launch()
    try:
        process.wait_for(lambda: (ready or _answers)(port), "answering", _START_BOUND_S)
        yield process
    finally:
        process.stop()


@contextmanager
def python_transport(module: str, folder: Path, *others: ServerProcess) -> Iterator[RunningServer]:
    """Run a module that calls `transport.main` on the folder of its index, over other processes if there are any."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", module, str(folder.resolve()), str(port)]
    with running(module, command, port, folder / "server.log") as process:
        yield RunningServer(port, (process.pid, *(other.pid for other in others)))


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
