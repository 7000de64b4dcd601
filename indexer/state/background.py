"""Looks at a state in a thread of its own, as of one point in time, while its owner goes on changing it."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from indexer.state.state import State


class BackgroundLook:
    """A question about a state that takes long to answer: a minute for a million shops."""

    def __init__(self, path: Path, look: Callable[[State], bool]) -> None:
        """Start the thread.

        Args:
            path: of a sealed state.
            look: answers the question on a connection of its own, within a transaction that only reads.
        """
        self._state = State.open(path)
        self._look = look
        self._answered = Event()
        self._answer: bool | None = None
        self._thread = Thread(target=self._run, name="state", daemon=True)
        self._thread.start()

    def answered(self, seconds: float) -> bool:
        """Whether the thread has ended, after waiting for so many seconds at most."""
        return self._answered.wait(seconds)

    @property
    def answer(self) -> bool | None:
        """The answer; None before there is one, and where the database failed or the look was ended."""
        return self._answer

    def close(self) -> None:
        """End the look, whether or not it is answered."""
        while not self._answered.wait(0.01):
            self._state.connection.interrupt()
        self._thread.join()
        self._state.close()

    def _run(self) -> None:
        db = self._state.connection
        try:
            # Whoever owns the state looks again where this fails, and reports what is wrong.
            with suppress(sqlite3.Error):
                db.execute("BEGIN")
                self._answer = self._look(self._state)
                db.execute("COMMIT")
        finally:
            self._answered.set()
