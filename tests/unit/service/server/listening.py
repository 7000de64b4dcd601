"""The server of `serve`, in a thread."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from starlette.types import ASGIApp

from service.server.http_server import ServerConfig
from service.server.run import _Server


@contextmanager
def listening(app: ASGIApp) -> Iterator[_Server]:
    """Serve an application on a free port until the block ends."""
    server = _Server(ServerConfig(app, "127.0.0.1", 0), hints=False, as_json=True)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(server.run)
        try:
            while not server.started:
                assert not ended.done()
                time.sleep(0.01)
            yield server
        finally:
            server.should_exit = True
            ended.result(30)
