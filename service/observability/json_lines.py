"""The log's stream when it is JSON: lines of calls, of which there are thousands a second, take the short way to it.

They are written together, a hundred at a time or a fiftieth of a second after the first of them: what a kill may take
is no more than that.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import orjson

_MICROSECONDS: Final = 1_000_000
# Long enough for some hundreds of lines under load, and nobody who reads along notices.
_WAIT_SECONDS: Final = 0.02
# Of so many lines at once nobody notices that they are written.
_MOST_WAITING: Final = 100
_UNWRITTEN: Final = logging.makeLogRecord({"msg": "lines of calls could not be written"})


class JsonStream(logging.StreamHandler[TextIO]):
    """A stream of lines of JSON."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        # Other threads write what waits before lines of their own: nothing is lost between two of them.
        self._waiting: deque[bytes] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._second: tuple[int, str] = (-1, "")

    def call_lines(self, level: int, name: str, lines: Iterable[dict[str, Any]]) -> None:
        """Write the lines of calls, as a formatter would: soon, and before anything that is logged later.

        Args:
            level: of the logging module.
            name: the logger's.
            lines: what they tell, the event first; they become this stream's.
        """
        now, word = self._now(), logging.getLevelName(level).lower()
        for line in lines:
            line["timestamp"] = now
            line["level"] = word
            line["logger"] = name
            self._waiting.append(orjson.dumps(line))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # Nothing comes round here.
            self.flush()
            return
        if len(self._waiting) >= _MOST_WAITING:
            self._write_waiting()
            super().flush()
            return
        # One that is overdue belongs to a loop that has ended.
        if self._timer is None or self._timer.when() + _WAIT_SECONDS < loop.time():
            self._timer = loop.call_later(_WAIT_SECONDS, self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Write any other line, behind those that wait."""
        self._write_waiting()
        super().emit(record)

    def flush(self) -> None:
        """Write what waits."""
        self._timer = None
        self._write_waiting()
        super().flush()

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        self.acquire()
        try:
            lines: list[bytes] = []
            while self._waiting:
                lines.append(self._waiting.popleft())
            self.stream.write(b"\n".join([*lines, b""]).decode())
        except Exception:  # noqa: BLE001 - as for any handler: who can't be told of calls must not end them
            self.handleError(_UNWRITTEN)
        finally:
            self.release()

    def _now(self) -> str:
        now = time.time_ns() // 1000
        second, micros = divmod(now, _MICROSECONDS)
        if second != self._second[0]:
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        return f"{self._second[1]}.{micros:06d}Z"
