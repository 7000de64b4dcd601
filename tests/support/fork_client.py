"""Asks a fork server (`tests.support.forked`) for a program, and waits for its end.

As a script it is started by an interpreter of its own, so it imports little: the socket of the server and the arguments
of `shop-directory` are its arguments, and it ends as the program does.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NUMBER_BYTES = 32


def asked(path: str, request: Mapping[str, Any], descriptors: Sequence[int]) -> socket.socket:
    """Send the server a request, with the descriptors of the standard streams and those that are passed on.

    The pid comes first, and if the program is attended its exit code.
    """
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.connect(path)
    socket.send_fds(channel, [json.dumps(request).encode()], descriptors)
    return channel


def main() -> None:
    """Run `shop-directory` with the arguments after the first, and pass signals on to it."""
    path, *arguments = sys.argv[1:]
    request = {
        "argv": ["shop_directory", *arguments],
        "env": dict(os.environ),
        "cwd": str(Path.cwd()),
        "passed": [],
        "group": os.getpgrp(),
        "session": False,
        "attended": True,
    }
    with asked(path, request, [0, 1, 2]) as channel:
        pid = int(channel.recv(NUMBER_BYTES))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: os.kill(pid, number))
        # The program alone holds its streams now: who reads them sees its end.
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        code = int(channel.recv(NUMBER_BYTES))
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
