"""Queries a snapshot of a state in a thread, while the state is changed."""

import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread, get_native_id
from typing import Final

from indexer.state.state import State

_NICENESS: Final = 19


class BackgroundQuery:
    """A query of a state that takes long: ten seconds for a million shops. Its thread has the lowest priority.

    Attributes:
        answer: the result; None while the query runs, and after it failed or was interrupted.
    """

    def __init__(self, path: Path, query: Callable[[State], bool]) -> None:
        """Start the thread.

        Args:
            path: of a sealed state.
            query: runs on a connection of its own, in a read-only transaction.
        """
        self._state = State.open(path)
        self._query = query
        self._answered = Event()
        self.answer: bool | None = None
        self._thread = Thread(target=self._run, name="state", daemon=True)
        self._thread.start()

    def answered(self, seconds: float) -> bool:
        """Whether the thread has ended; waits at most this many seconds."""
        return self._answered.wait(seconds)

    def close(self) -> None:
        """Interrupt the query if it still runs, and close the state."""
        while not self._answered.wait(0.01):
            self._state.connection.interrupt()
        self._thread.join()
        self._state.close()

    def _run(self) -> None:
        db = self._state.connection
        if sys.platform == "linux":  # where a thread has a priority of its own
            os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)
        try:
            # The caller repeats a failed query on its own connection, and reports the error.
            with suppress(sqlite3.Error):
                db.execute("BEGIN")
                self.answer = self._query(self._state)
                db.execute("COMMIT")
        finally:
            self._answered.set()
