"""Runs the server, in one process or several, and prints its address."""

import json
import os
import time
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from socket import socket
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from service.settings.service import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

# The first descriptor that systemd passes on (sd_listen_fds).
_FIRST_PASSED: Final = 3
# The folder of the metrics that workers share; the metrics library reads the variable when it is imported.
_METRICS_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
# numpy's library of linear algebra, which nothing here uses, would start a thread for each processor.
_NO_THREADS: Final = {"OPENBLAS_NUM_THREADS": "1"}
# How often a person's service is asked whether it is ready, and how long for an answer.
_READY_SECONDS: Final = 0.5
_READY_TIMEOUT_SECONDS: Final = 5.0
_SERVES: Final = "Shop Directory serves at"
_HINTS: Final = """
Things to try:
  {url}/ in a browser: type lumn, or look at {url}/docs
  curl '{url}/suggest?q=lumn'
  curl {url}/tool/list_categories -H 'content-type: application/json' -d '{{}}'
  an MCP client at {url}/mcp
"""


def inherited_listener() -> socket | None:
    """The listener that systemd passes to this process by a socket unit of one TCP address; None without one."""
    return socket(fileno=_FIRST_PASSED) if os.environ.get("LISTEN_PID") == str(os.getpid()) else None


def serve_until_signal(settings: Settings, inherited: socket | None, *, hints: bool, as_json: bool) -> None:
    """Serve in this process, or in several; exits with 3 when those can't start.

    The modules that serve are imported here, since libraries read environment variables when they are imported.
    """
    os.environ.update(_NO_THREADS)
    announce: Callable[[Any], None] = partial(_announce, as_json=as_json)
    if hints and not as_json:
        announce = _announce_when_ready
    if settings.workers > 1:
        with TemporaryDirectory(prefix="shop-directory-metrics-") as folder:
            os.environ[_METRICS_FOLDER] = folder
            from service.server.workers import serve_with_workers

            serve_with_workers(settings, inherited, announce, once_ready=announce is _announce_when_ready)
        return
    from service.server.process import Server, server_config

    server = Server(server_config(settings, waits=inherited is not None), announce)
    server.run(None if inherited is None else [inherited])


def _url(listener: Any) -> str:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _announce(listener: Any, *, as_json: bool) -> None:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    print(json.dumps({"url": _url(listener)}) if as_json else f"{_SERVES} {_url(listener)}", flush=True)


def _announce_when_ready(listener: Any) -> None:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    """Print the URL, for people, when the service is ready, and until then what is missing."""
    host, port = listener.getsockname()[:2]
    Thread(target=_print_when_ready, args=(host, port, _url(listener)), daemon=True).start()


def _print_when_ready(host: str, port: int, url: str) -> None:
    former = None
    while (reason := _unready(host, port)) is not None:
        if reason != former:
            print(f"Listening at {url}, not ready yet: {reason}", flush=True)
        former = reason
        time.sleep(_READY_SECONDS)
    print(f"{_SERVES} {url}", _HINTS.format(url=url), sep="\n", flush=True)


def _unready(host: str, port: int) -> str | None:
    """Why the service is not ready, in the words of /ready; None if it is."""
    connection = HTTPConnection(host, port, timeout=_READY_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/ready")
        answer = connection.getresponse()
        return None if answer.status == HTTPStatus.OK else str(json.load(answer)["detail"])
    except (OSError, HTTPException, ValueError, KeyError):
        return "it is starting."
    finally:
        connection.close()
