"""A server that stops answers what has connected to it."""

import socket
import time
from typing import TYPE_CHECKING, Final

import pytest
from starlette.types import Receive, Scope, Send

from tests.support.wire import replies
from tests.unit.service.server.listening import listening

if TYPE_CHECKING:
    from service.server.run import _Server

_GET: Final = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


class Stopping:
    """An application that, in its first request, lets others connect and stops the server, all in one tick.

    Attributes:
        callers: the connections that the server has not accepted when it stops.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.server: _Server | None = None
        self.callers: list[socket.socket] = []

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        assert self.server is not None
        if not self.callers:
            address = self.server.servers[0].sockets[0].getsockname()
            self.callers = [socket.create_connection(address, timeout=5) for _ in range(self._count)]
            for caller in self.callers[1:]:
                caller.sendall(_GET)
            self.server.should_exit = True
            # The timer by which the server looks for this is due before the loop polls the listener again.
            time.sleep(0.3)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


@pytest.mark.rule("O1")
def test_connections_that_wait_to_be_accepted_are_answered_before_the_server_ends() -> None:
    app = Stopping(3)
    with listening(app) as server:
        app.server = server
        with socket.create_connection(server.servers[0].sockets[0].getsockname(), timeout=5) as first:
            first.sendall(_GET)
            assert first.recv(65_536).startswith(b"HTTP/1.1 200 ")
        late, *others = app.callers
        assert [_statuses(caller) for caller in others] == [[200]] * 2
        # The listener is closed by now.
        late.sendall(_GET)
        assert _statuses(late) == [200]


def _statuses(caller: socket.socket) -> list[int]:
    """The statuses of all answers until the server closes the connection."""
    with caller:
        return [reply.status for reply in replies(b"".join(iter(lambda: caller.recv(65_536), b"")))]
