"""Queries a snapshot of a state in a thread, while the state is changed."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final

from indexer.state.state import State

# Of each call of the query's check: what it reads must not take a core, or the engine, from changes and requests.
_PAUSE_S: Final = 0.03


class _ClosedError(Exception):
    """The query is no longer wanted."""


class BackgroundQuery:
    """A query of a state that takes long: ten seconds for a million shops.

    Attributes:
        answer: the result; None while the query runs, and after it failed or was interrupted.
    """

    def __init__(self, path: Path, query: Callable[[State, Callable[[], None]], bool]) -> None:
        """Start the thread.

        Args:
            path: of a sealed state.
            query: runs on a connection of its own, in a read-only transaction. Its second argument is to be called
                between two steps of anything that is not SQL: it pauses briefly, and raises after `close`.
        """
        self._state = State.open(path)
        self._query = query
        self._answered, self._closed = Event(), Event()
        self.answer: bool | None = None
        self._thread = Thread(target=self._run, name="state", daemon=True)
        self._thread.start()

    def answered(self, seconds: float) -> bool:
        """Whether the thread has ended; waits at most this many seconds."""
        return self._answered.wait(seconds)

    def close(self) -> None:
        """Interrupt the query if it still runs, and close the state."""
        self._closed.set()
        while not self._answered.wait(0.01):
            self._state.connection.interrupt()
        self._thread.join()
        self._state.close()

    def _check(self) -> None:
        if self._closed.wait(_PAUSE_S):
            raise _ClosedError

    def _run(self) -> None:
        db = self._state.connection
        try:
            # The caller repeats a failed query on its own connection, and reports the error.
            with suppress(sqlite3.Error, _ClosedError):
                db.execute("BEGIN")
                self.answer = self._query(self._state, self._check)
                db.execute("COMMIT")
        finally:
            self._answered.set()
