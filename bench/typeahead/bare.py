"""A bare server for scale: an ASGI application under uvicorn that sends one prepared body to every request.

It looks nothing up. Answers that are sent from below ASGI can be faster. The body has the mean size of our own answers
in the same run, which an environment variable states.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from bench.typeahead.contestant import Built, Contestant, Role, Served
from tests.support.real.process import ServerProcess, free_ports

SIZE_VARIABLE: Final = "BENCH_BODY_BYTES"
_START_BOUND_S: Final = 30.0
_USUAL_BYTES: Final = 1_024
_FRAME: Final = b'{"shops":[],"filler":"%s"}'
_BODY: Final = _FRAME % (b"x" * max(0, int(os.environ.get(SIZE_VARIABLE, _USUAL_BYTES)) - len(_FRAME) + 2))
_HEADERS: Final = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer every request alike."""
    del receive
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _BODY})


class BareAsgi(Contestant):
    """The bare application under uvicorn."""

    name = "bare"
    role = Role.BARE
    about = "An ASGI application that looks at nothing and sends a body of the mean size of ours; uvicorn, uvloop."

    def __init__(self, body_bytes: int = _USUAL_BYTES) -> None:
        """Nothing runs yet.

        Args:
            body_bytes: the size of its answer.
        """
        self._body_bytes = body_bytes

    def missing(self) -> str | None:
        """Never."""
        return None

    def version(self) -> str:
        """Of the server."""
        return f"uvicorn {version('uvicorn')}, uvloop {version('uvloop')}, httptools {version('httptools')}"

    def build(self, corpus: Path, folder: Path) -> Built:
        """Build nothing."""
        del corpus, folder
        return Built(0.0, 0.0)

    @contextmanager
    def serving(self, folder: Path) -> Iterator[Served]:
        """The application in a process of its own."""
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "uvicorn", "bench.typeahead.bare:app", "--port", str(port)]
        command += ["--app-dir", str(Path(__file__).parents[2]), "--no-access-log", "--loop", "uvloop"]
        command = ["env", f"{SIZE_VARIABLE}={self._body_bytes}", *command, "--http", "httptools"]
        process = ServerProcess("the bare answer", command, folder / "bare.log")
        process.log.unlink(missing_ok=True)
        process.launch()
        try:
            process.wait_for(lambda: b"running on" in process.log.read_bytes(), "listening", _START_BOUND_S)
            yield Served(port, (process.pid,))
        finally:
            process.stop()
