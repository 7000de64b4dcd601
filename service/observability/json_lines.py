"""The log handler for JSON, with a fast path for call lines, of which there can be thousands a second.

Call lines are buffered and written together, when a hundred wait or 20 ms after the first. A kill loses no more than
these.
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
# Long enough to collect many lines under load, too short to be noticed by a reader.
_DELAY_SECONDS: Final = 0.02
# Few enough that writing them does not delay an answer noticeably.
_MAX_BUFFERED: Final = 100
_UNWRITTEN: Final = logging.makeLogRecord({"msg": "call lines could not be written"})


class JsonStream(logging.StreamHandler[TextIO]):
    """A handler that writes lines of JSON."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        # A deque, as other threads flush it before they write lines of their own.
        self._buffer: deque[bytes] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._second: tuple[int, str] = (-1, "")

    def call_lines(self, level: int, name: str, lines: Iterable[dict[str, Any]]) -> None:
        """Buffer call lines; they are written before anything that is logged later.

        A line is its fields, the event first; this method adds to them.
        """
        now, level_name = self._now(), logging.getLevelName(level).lower()
        for line in lines:
            line["timestamp"] = now
            line["level"] = level_name
            line["logger"] = name
            self._buffer.append(orjson.dumps(line))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # Without an event loop nothing would flush the buffer later.
            self.flush()
            return
        if len(self._buffer) >= _MAX_BUFFERED:
            self._write_buffer()
            super().flush()
            return
        # An overdue timer belongs to an event loop that has ended.
        if self._timer is None or self._timer.when() + _DELAY_SECONDS < loop.time():
            self._timer = loop.call_later(_DELAY_SECONDS, self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Write any other line, after those in the buffer."""
        self._write_buffer()
        super().emit(record)

    def flush(self) -> None:
        """Write the buffer."""
        self._timer = None
        self._write_buffer()
        super().flush()

    def _write_buffer(self) -> None:
        if not self._buffer:
            return
        self.acquire()
        try:
            lines: list[bytes] = []
            while self._buffer:
                lines.append(self._buffer.popleft())
            self.stream.write(b"\n".join([*lines, b""]).decode())
        except Exception:  # noqa: BLE001 - as in any handler: a log that can't be written must not end calls
            self.handleError(_UNWRITTEN)
        finally:
            self.release()

    def _now(self) -> str:
        now = time.time_ns() // 1000
        second, micros = divmod(now, _MICROSECONDS)
        if second != self._second[0]:
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        return f"{self._second[1]}.{micros:06d}Z"
