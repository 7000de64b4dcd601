"""The bare ASGI application as a system of the comparison; its body has the mean size of our own responses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from bench.bare import DEFAULT_BYTES, SIZE_VARIABLE
from bench.typeahead.peers.starting import running
from bench.typeahead.system import BuildStats, Role, RunningServer, System
from tests.support.real.process import free_ports


class BareAsgi(System):
    """The bare application under uvicorn."""

    name = "bare"
    role = Role.BARE
    about = "An ASGI application that looks at nothing and sends a body of the mean size of ours; uvicorn, uvloop."

    def __init__(self, body_bytes: int = DEFAULT_BYTES) -> None:
        """Configure the application."""
        self._body_bytes = body_bytes

    def version(self) -> str:
        """The versions of the server and its parts."""
        return f"uvicorn {version('uvicorn')}, uvloop {version('uvloop')}, httptools {version('httptools')}"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Build nothing."""
        del corpus, folder
        return BuildStats(0.0, 0.0)

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """Run the application in its own process."""
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "uvicorn", "bench.bare:app", "--port", str(port)]
        command += ["--app-dir", str(Path(__file__).parents[2]), "--no-access-log", "--loop", "uvloop"]
        command = ["env", f"{SIZE_VARIABLE}={self._body_bytes}", *command, "--http", "httptools"]
        with running("the bare answer", command, port, folder / "bare.log") as process:
            yield RunningServer(port, (process.pid,))
