"""Bytes to the service as they are, and whatever comes back, within a bound of time."""

import select
import socket
import time
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from tests.support.served import Reply

BOUND_S: Final = 10.0

_READ_BYTES: Final = 65_536


def connect(base: str) -> socket.socket:
    """A connection to the service."""
    address = urlsplit(base)
    return socket.create_connection((str(address.hostname), address.port or 0), timeout=BOUND_S)


def exchange(base: str, *pieces: bytes, pause: float = 0.0, finish: bool = False) -> list[Reply]:
    """Send pieces, one after the other, and read until the service hangs up; returns the answers in their order.

    What is left is not sent once the service has answered. `pause` is seconds between two pieces; `finish` closes the
    sending side after the last one.
    """
    deadline = time.monotonic() + BOUND_S
    received = bytearray()
    with connect(base) as connection:
        _send(connection, pieces, pause)
        try:
            if finish:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(_READ_BYTES):
                received += part
                assert time.monotonic() < deadline, "the service goes on and on"
        except TimeoutError as stuck:
            raise AssertionError(f"the service did not hang up; it sent {bytes(received[:200])!r}") from stuck
        except ConnectionError:
            # It hung up on what had not been read yet; the answer came before that.
            pass
    return replies(bytes(received))


def replies(received: bytes) -> list[Reply]:
    """Take answers apart that follow one another; each states the length of its body."""
    found = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        length = int(headers.get("content-length", 0))
        found.append(Reply(int(status.split(" ")[1]), headers, rest[:length]))
        received = rest[length:]
    return found


def _send(connection: socket.socket, pieces: Iterable[bytes], pause: float) -> None:
    for piece in pieces:
        answered, _, _ = select.select([connection], [], [], pause)
        if answered:
            return
        try:
            connection.sendall(piece)
        except ConnectionError:
            return
