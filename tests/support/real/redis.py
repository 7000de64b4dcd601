"""Starts a real Redis as a process on loopback.

It has the same port and folder for its whole life, and it ends when we do.
"""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.real.process import Server, ServerProcess, ending_with_input, free_ports

START_BOUND_S: Final = 20.0
_ANSWER_BOUND_S: Final = 2.0
_LOOPBACK: Final = "127.0.0.1"


def redis_process(title: str, command: Sequence[str], folder: Path) -> ServerProcess:
    """A process of Redis, not started yet, that ends when its standard input does."""
    return ServerProcess(title, ending_with_input(command), folder / "redis.log")


class RedisServer(Server):
    """One Redis; as a context it is started, answers, and is stopped at the end."""

    def __init__(self, program: str, folder: Path, *, appendonly: bool = False, options: Sequence[str] = ()) -> None:
        """Chooses a port and stores the command; nothing runs yet.

        With `appendonly` its data outlives a restart; else it lives in memory alone. `options` are more of its command
        line, such as `--maxmemory 10mb`, a word each.
        """
        (self.port,) = free_ports(1)
        self.url = f"redis://{_LOOPBACK}:{self.port}/0"
        self.folder = folder
        stated = {
            "--bind": _LOOPBACK,
            "--port": str(self.port),
            "--dir": str(folder),
            "--save": "",
            "--appendonly": "yes" if appendonly else "no",
        }
        words = [word for option in stated.items() for word in option]
        self.process = redis_process(f"Redis at {self.url}", [program, *words, *options], folder)

    def _begin(self) -> None:
        self.process.launch()
        self.process.wait_for(self.answers, "answering", START_BOUND_S)

    def answers(self) -> bool:
        """Returns whether it answers a PING, and not another server at its port."""
        try:
            with (
                socket.create_connection((_LOOPBACK, self.port), timeout=_ANSWER_BOUND_S) as connection,
                connection.makefile("rb") as replies,
            ):
                connection.sendall(b"PING\r\nINFO server\r\nQUIT\r\n")
                return replies.readline() == b"+PONG\r\n" and b"process_id:%d\r\n" % self.process.pid in replies
        except OSError:
            return False
