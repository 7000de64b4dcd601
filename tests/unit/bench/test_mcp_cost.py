"""What a tool call costs: how figures are compared, and that failures are never measured."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from bench.mcp_cost import Connection


@contextmanager
def _answering(*parts: bytes) -> Iterator[int]:
    """A server that sends some bytes, part by part, to every client; its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for part in parts:
                    connection.recv(1)
                    connection.sendall(part)

        thread = threading.Thread(target=answer)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def _asked(*parts: bytes) -> bytes:
    with _answering(*parts) as port:
        connection = Connection(port)
        try:
            return connection.ask(b"x" * len(parts))
        finally:
            connection.close()


def test_an_answer_is_waited_for_to_its_end() -> None:
    assert _asked(b"HTTP/1.1 200 OK\r\ncontent-le", b"ngth: 6\r\nx: y\r\n\r\n{12", b"34}") == b"{1234}"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{"isError":true}',
    ],
)
def test_a_failure_is_never_measured(answer: bytes) -> None:
    with pytest.raises(RuntimeError, match="answered"):
        _asked(answer)
