"""Servers on loopback ports, in threads of their own, for what is not the service."""

import asyncio
import http.client
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler


class Forwarding(BaseHTTPRequestHandler):
    """Passes each request of JSON on to the server at a host and port, and its answer back."""

    node: str
    protocol_version = "HTTP/1.1"
    timeout = 30
    # Head and body of an answer are one packet, which waits for no other.
    wbufsize = -1
    disable_nagle_algorithm = True

    def through(self, body: bytes) -> None:
        """Answer a request; tests spoil some here."""
        self.reply(*self.forwarded(body))

    def forwarded(self, body: bytes) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection(self.node, timeout=30)) as connection:
            connection.request(self.command, self.path, body, {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _read(self) -> None:
        self.through(self.rfile.read(int(self.headers.get("content-length", 0))))

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _read  # noqa: N815 - names that the base class looks for


@contextmanager
def listening(
    handler: type[StreamRequestHandler],
    server: type[ThreadingHTTPServer] = ThreadingHTTPServer,
    **attributes: object,
) -> Iterator[int]:
    """Serve on a free loopback port without a log; yields the port. The attributes are those of each handler."""
    silent = type(handler.__name__, (handler,), {"log_message": lambda *_: None, **attributes})
    with server(("127.0.0.1", 0), silent) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield running.server_port
        finally:
            running.shutdown()
            thread.join()


@contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own, for servers of asyncio whose callers are in other threads."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
