"""Spreads the connections of one listener over the workers that accept from it.

Whichever worker wakes first would accept a connection, so a few workers would have most of them, for as long as a proxy
keeps its connections open. Here a worker with more open connections than the mean of all workers pauses, so that others
accept. Some worker is never above the mean, so no connection waits longer than a pause.

A listener for each worker (SO_REUSEPORT) would lose what waits at the listener of a worker that ends, spread 64
connections over 16 workers with three times the mean on one of them, and not exist where systemd passes a listener on.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from mmap import mmap
from socket import socket
from typing import Final

# A worker that has not run its event loop for so long is not waited for. uvicorn's server calls `on_tick` each 0.1 s.
_AWAKE_SECONDS: Final = 1.0
# How long the workers that start with the service wait for each other.
_START_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.002
# While the process may open no more files.
_FAILED_SECONDS: Final = 1.0
# Other events of the loop come between these.
_ACCEPTED_IN_TICK: Final = 16
_LOG: Final = logging.getLogger(__name__)


class WorkerTable:
    """What workers tell each other and the supervisor, in memory that all of them share.

    For each worker: the number of its open connections, when its event loop last ran, and until when others wait for it
    although it does not run yet. Numbers are doubles, which a processor writes as a whole; times are monotonic.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        numbers = memoryview(mmap(-1, 3 * 8 * workers)).cast("d")
        self._connections, self._ran_at, self._awaited_until = (
            numbers[column * workers : (column + 1) * workers] for column in range(3)
        )

    def ran_at(self, worker: int) -> float:
        """When the worker's event loop last ran; 0 before it serves, and from when it ends."""
        return self._ran_at[worker]

    def await_start(self, worker: int) -> None:
        """Let the other workers leave a share of the connections to one that starts with them."""
        self._awaited_until[worker] = time.monotonic() + _START_SECONDS

    def tick(self, worker: int) -> None:
        """Note that the worker's event loop runs."""
        self._ran_at[worker] = time.monotonic()

    def end(self, worker: int) -> None:
        """Note that the worker ends or has ended: it has no connections, and nobody waits for it."""
        self._connections[worker] = self._ran_at[worker] = self._awaited_until[worker] = 0.0

    def count(self, worker: int, connections: int) -> None:
        """Note the number of the worker's open connections."""
        self._connections[worker] = connections

    def may_accept(self, worker: int) -> bool:
        """Whether the worker has no more connections than the mean of all workers that run."""
        now = time.monotonic()
        others, total = 0, 0.0
        for other, (connections, ran_at, awaited_until) in enumerate(
            zip(self._connections, self._ran_at, self._awaited_until, strict=True)
        ):
            if other != worker and (now - ran_at < _AWAKE_SECONDS or now < awaited_until):
                others += 1
                total += connections
        return self._connections[worker] * others <= total


class Acceptor:
    """Accepts a worker's share of the connections of a listener."""

    def __init__(
        self, listener: socket, table: WorkerTable, worker: int, serve: Callable[[socket], Awaitable[None]]
    ) -> None:
        """Accept nothing yet; `serve` is called for each connection, and ends when its protocol has it."""
        self._listener = listener
        self._table = table
        self._worker = worker
        self._serve = serve
        self._open = 0
        self._starting: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._resuming: asyncio.TimerHandle | None = None
        listener.setblocking(False)

    def start(self) -> None:
        """Accept until `stop`."""
        self._resuming = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def count(self, connections: int) -> None:
        """Note how many connections the protocols have."""
        self._open = connections
        self._table.count(self._worker, connections + len(self._starting))

    def stop(self) -> list[socket]:
        """Accept no more; returns the connections that waited."""
        if self._resuming is not None:
            self._resuming.cancel()
        self._loop.remove_reader(self._listener.fileno())
        return accept_waiting(self._listener.fileno())

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_IN_TICK):
            if not self._table.may_accept(self._worker):
                self._pause(_PAUSE_SECONDS)
                return
            try:
                connected, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                _LOG.exception("connections can't be accepted")
                self._pause(_FAILED_SECONDS)
                return
            starting = self._loop.create_task(self._start(connected))
            self._starting.add(starting)
            starting.add_done_callback(self._started)
            self.count(self._open)

    async def _start(self, connected: socket) -> None:
        try:
            await self._serve(connected)
        except OSError:
            # The client has left.
            connected.close()

    def _started(self, starting: asyncio.Task[None]) -> None:
        self._starting.discard(starting)
        self.count(self._open)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener.fileno())
        self._resuming = self._loop.call_later(seconds, self.start)


def accept_waiting(listener: int) -> list[socket]:
    """The connections that wait at a listener, given by its descriptor."""
    waiting = []
    with socket(fileno=os.dup(listener)) as accepting, suppress(BlockingIOError):
        accepting.setblocking(False)
        while True:
            waiting.append(accepting.accept()[0])
    return waiting
