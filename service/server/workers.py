"""Serves in several processes, the workers, which this process starts, replaces when they end or hang, and stops.

The supervisor imports all that a worker needs and opens nothing but the listener; then it forks. So a worker starts in
a fraction of a second, and code is in memory once. Its start may take any time.
"""

import ctypes
import gc
import logging
import multiprocessing
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from socket import SOL_SOCKET, socket
from typing import Any, Final

import mcp.server.streamable_http_manager  # noqa: F401 - a worker would import these three
import uvicorn
import uvloop  # noqa: F401

import service.mcp_server.endpoint
import service.mcp_server.server  # noqa: F401
from service.parts import Parts
from service.server.process import WorkerServer, bound_reads, server_config
from service.server.sharing import WorkerTable
from service.settings.service import Settings
from shop_directory.typeahead.compiled import is_compiled, load_kernel

_STARTUP_FAILURE: Final = 3
_POLL_SECONDS: Final = 0.1
# A worker that serves is replaced when its event loop has not run for so long.
_HANGING_SECONDS: Final = 10.0
# More than this between two looks is time in which the supervisor, and perhaps the whole machine, stood still.
_LONGEST_LOOK_SECONDS: Final = 0.5
# Between two starts of a worker that ends before it serves.
_RETRY_SECONDS: Final = 1.0
# How long workers still accept waiting connections, after nobody can connect any more.
_LAST_SECONDS: Final = 0.4
# Linux's option for the packets of a socket that a program admits, which `socket` does not define.
_SO_ATTACH_FILTER: Final = 26
_ADMIT_NOTHING: Final = struct.pack("HBBI", 0x06, 0, 0, 0)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LOG: Final = logging.getLogger(__name__)


def serve_with_workers(
    settings: Settings, inherited: socket | None, announce: Callable[[Any], None], *, once_ready: bool
) -> None:
    """Serve in `settings.workers` processes until a signal; exits with 3 if they can't start.

    The listener is announced as soon as it listens or, `once_ready`, by the first worker, which may start a thread.
    """
    config = uvicorn.Config("", settings.host, settings.port, log_config=None)
    listener = inherited or config.bind_socket()
    bound_reads(listener)
    # Before the first worker runs, so that early clients wait for it instead of being refused.
    listener.listen(config.backlog)
    if not once_ready:
        announce(listener)
    supervisor = _Supervisor(settings, listener, is_own=inherited is None)
    supervisor.run(announce if once_ready else None)
    if supervisor.failed:
        sys.exit(_STARTUP_FAILURE)


@dataclass(slots=True)
class _Worker:
    """A running worker, and the supervisor's observations of it."""

    process: ForkProcess
    started_at: float
    ran_at: float = 0.0
    silent_seconds: float = 0.0

    @property
    def serves(self) -> bool:
        return self.ran_at > 0.0


class _Supervisor:
    """Starts, replaces and stops workers, which share one listener.

    Workers drain on SIGTERM; SIGINT and a second signal skip the drain time. What waits at the listener when the last
    worker ends would be reset, so nobody can connect any more shortly before they stop accepting; but what waits at a
    listener of systemd waits for the next process.
    """

    def __init__(self, settings: Settings, listener: socket, *, is_own: bool) -> None:
        self._settings = settings
        self._listener = listener
        self._is_own = is_own
        self._table = WorkerTable(settings.workers)
        self._workers: dict[int, _Worker] = {}
        self._signals: list[int] = []
        self.failed = False

    def run(self, announce: Callable[[Any], None] | None) -> None:
        """Serve until a signal, and until all workers have ended; the first worker announces its listener."""
        for handled in _SIGNALS:
            signal.signal(handled, self._note)
        _import_all(self._settings)
        # What exists now stays, and a worker that scans it would copy the memory.
        gc.collect()
        gc.freeze()
        for number in range(self._settings.workers):
            self._table.await_start(number)
        for number in range(self._settings.workers):
            self._start(number, None if number else announce)
        looked_at = time.monotonic()
        while not (self._signals or self.failed):
            time.sleep(_POLL_SECONDS)
            now = time.monotonic()
            self._replace_ended(now)
            self._kill_hanging(min(now - looked_at, _LONGEST_LOOK_SECONDS))
            looked_at = now
        self._stop()

    def _note(self, received: int, _: object) -> None:
        self._signals.append(received)

    def _start(self, number: int, announce: Callable[[Any], None] | None = None) -> None:
        process = multiprocessing.get_context("fork").Process(target=self._work, args=(number, announce))
        # Until the worker handles them itself, signals wait: the supervisor's handlers would swallow them.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        self._workers[number] = _Worker(process, time.monotonic())

    def _work(self, number: int, announce: Callable[[Any], None] | None) -> None:
        """Serve as the worker of this number, in its process."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        try:
            # Clients wait at the listener: that one worker is ready says nothing of another's index.
            config = server_config(self._settings, waits=True)
            WorkerServer(config, announce, self._listener, self._table, number).run()
        except KeyboardInterrupt:
            # Stopped by SIGINT, which is not a failure.
            return
        except Exception:  # noqa: BLE001 - the process ends, and the log has the cause
            _LOG.exception("worker %d could not serve", os.getpid())
            sys.exit(_STARTUP_FAILURE)

    def _replace_ended(self, now: float) -> None:
        for number, worker in self._workers.items():
            code = worker.process.exitcode
            if code is None:
                continue
            self._table.end(number)
            if code == _STARTUP_FAILURE and not any(each.serves for each in self._workers.values()):
                # The others would fail in the same way.
                _LOG.error("worker %d could not start: the service ends", worker.process.pid)
                self.failed = True
                return
            if worker.serves or now - worker.started_at >= _RETRY_SECONDS:
                _LOG.warning("worker %d ended: %s. Another one starts", worker.process.pid, _cause(code))
                worker.process.close()
                self._start(number)

    def _kill_hanging(self, seconds: float) -> None:
        """Kill the workers whose event loop has not run for too long; `seconds` have passed since the last look."""
        for number, worker in self._workers.items():
            ran_at = self._table.ran_at(number)
            if ran_at != worker.ran_at:
                worker.ran_at, worker.silent_seconds = ran_at, 0.0
            elif ran_at:
                worker.silent_seconds += seconds
                if worker.silent_seconds >= _HANGING_SECONDS:
                    _LOG.error("worker %d hangs, for %.0f s now: it is killed", worker.process.pid, _HANGING_SECONDS)
                    worker.process.kill()
                    worker.silent_seconds = float("-inf")

    def _stop(self) -> None:
        """Stop the workers and wait for them; another signal makes them skip the drain time."""
        closing_at = float("inf")
        if self._is_own and self._settings.drain_seconds < _LAST_SECONDS:
            _ignore_new_connections(self._listener)
            time.sleep(_LAST_SECONDS)
        elif self._is_own:
            closing_at = time.monotonic() + self._settings.drain_seconds - _LAST_SECONDS
        self._signal(signal.SIGTERM)
        skipping = signal.SIGINT in self._signals
        self._signals.clear()
        while any(worker.process.is_alive() for worker in self._workers.values()):
            if time.monotonic() >= closing_at:
                closing_at = float("inf")
                _ignore_new_connections(self._listener)
            if skipping or self._signals:
                skipping = False
                self._signals.clear()
                self._signal(signal.SIGINT)
            time.sleep(_POLL_SECONDS)

    def _signal(self, sent: signal.Signals) -> None:
        for worker in self._workers.values():
            if worker.process.is_alive() and worker.process.pid is not None:
                os.kill(worker.process.pid, sent)


def _import_all(settings: Settings) -> None:
    """Import all that a worker needs, and load the kernel's machine code if it is compiled."""
    # Parts open nothing when they are made, but import the modules that the settings name.
    Parts(settings)
    if is_compiled():
        load_kernel()


def _cause(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


def _ignore_new_connections(listener: socket) -> None:
    """Let the system drop what asks for a connection; connections that are made already are accepted as before.

    Callers that ask during this time ask again after a second, and are refused once the listener is closed. Other
    systems than Linux go on connecting.
    """
    if sys.platform == "linux":
        program = ctypes.create_string_buffer(_ADMIT_NOTHING)
        listener.setsockopt(SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))
