"""Servers that are no Shop Directory at all, and mean no good: bytes on a socket, as they please."""

import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

Spoken = Callable[[socketserver.StreamRequestHandler], None]

_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED: Final = _OK + b"transfer-encoding: chunked\r\n\r\n"


def endless(handler: socketserver.StreamRequestHandler) -> None:
    """A body without an end."""
    handler.wfile.write(CHUNKED)
    while True:
        handler.wfile.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")


def dripping(handler: socketserver.StreamRequestHandler) -> None:
    """A byte now and then, without an end."""
    handler.wfile.write(_OK + b"content-length: 1000000\r\n\r\n")
    while True:
        handler.wfile.write(b" ")
        time.sleep(0.05)


def silent(handler: socketserver.StreamRequestHandler) -> None:
    """Nothing, without an end."""
    handler.rfile.read()


def garbage(handler: socketserver.StreamRequestHandler) -> None:
    """What is no HTTP."""
    handler.wfile.write(b"\x00\xff\x16\x03\x01 hello\r\n\r\n" * 50)


def heads(handler: socketserver.StreamRequestHandler) -> None:
    """Header after header."""
    handler.wfile.write(_OK)
    while True:
        handler.wfile.write(b"x-more: " + b"y" * 1000 + b"\r\n")


def cut_short(handler: socketserver.StreamRequestHandler) -> None:
    """A body that ends before its length."""
    handler.wfile.write(_OK + b'content-length: 1000\r\n\r\n{"results": [')


def plain(status: bytes, body: bytes, *headers: bytes) -> Spoken:
    """The same whole answer to everything."""

    def speak(handler: socketserver.StreamRequestHandler) -> None:
        length = b"content-length: " + str(len(body)).encode()
        handler.wfile.write(b"\r\n".join((b"HTTP/1.1 " + status, length, *headers, b"connection: close", b"", body)))

    return speak


@contextmanager
def speaking(speak: Spoken) -> Iterator[tuple[str, list[bytes]]]:
    """A server on a loopback port; yields its base URL and the first line of each request that it got."""
    asked: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                asked.append(self.rfile.readline())
                while self.rfile.readline() not in {b"\r\n", b""}:
                    pass
                speak(self)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()
