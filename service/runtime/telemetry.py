"""One log line and one count at the end of each call.

Lines hold no query, shop, token or address (E5, V2). There can be thousands a second, so they are buffered and written
together, when a hundred wait or 20 ms after the first. A kill loses no more than these.
"""

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import orjson

from shop_directory.runtime.metrics import Metrics
from shop_directory.runtime.request_context import LEFT, RequestContext

OK: Final = "ok"
EVENT: Final = "call"
# The outcome of a refusal by a transport's library, which has none of our codes.
REFUSED: Final = "refused"
NO_ROUTE: Final = "none"
# The fields of the line.
CALL_FIELDS: Final = (
    "request_id", "channel", "route", "outcome", "status", "ms", "engine_ms", "engine_calls", "generation",
)  # fmt: skip

# Machines request these every few seconds: their lines would be most of the log.
_PROBES: Final = frozenset({"health", "ready", "version", "metrics", "metrics_resources"})
_FIRST_REFUSAL: Final = 400
_FIRST_FAILURE: Final = 500
_MICROSECONDS: Final = 1_000_000
# Long enough to collect many lines under load, too short to be noticed by a reader.
_DELAY_SECONDS: Final = 0.02
# Few enough that writing them does not delay an answer noticeably.
_MAX_BUFFERED: Final = 100
_UNWRITTEN: Final = logging.makeLogRecord({"msg": "call lines could not be written"})
_LOG: Final = logging.getLogger(__name__)


class JsonStream(logging.StreamHandler[TextIO]):
    """A handler that writes lines of JSON; those of calls directly, as a record costs several times as much."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        # A deque, as other threads flush it before they write their own lines.
        self._buffer: deque[bytes] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._second: tuple[int, str] = (-1, "")

    def call_lines(self, level: int, name: str, lines: Iterable[dict[str, Any]]) -> None:
        """Buffer call lines; they are written before anything that is logged later."""
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

    def _write_buffer(self) -> None:
        self.acquire()
        try:
            lines: list[bytes] = []
            while self._buffer:
                lines.append(self._buffer.popleft())
            if lines:
                self.stream.write(b"\n".join([*lines, b""]).decode())
            self.stream.flush()
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


def log_call(metrics: Metrics, request: RequestContext, *, channel: str, route: str, status: int | None = None) -> None:
    """Count a call and write its line; sets the `outcome` of its context, and runs its `on_end` callbacks.

    `route` is the label if the call does not name a tool. There is no status without an answer and over stdio.
    """
    route = request.tool or route
    outcome = request.outcome = _outcome(request, status)
    request.status = status
    seconds = time.monotonic() - request.began
    metrics.answered(route, outcome, seconds)
    for callback in request.on_end:
        callback()
    level = logging.DEBUG if route in _PROBES and outcome == OK else logging.INFO
    if not _LOG.isEnabledFor(level):
        return
    _write(level, [_line(request, channel, route, seconds)])


def log_calls(metrics: Metrics, calls: Sequence[RequestContext], *, channel: str, route: str) -> None:
    """Count calls of one route that were answered together, `ok` unless they have an outcome, and write their lines."""
    now = time.monotonic()
    seconds_by_outcome: defaultdict[str, list[float]] = defaultdict(list)
    lines: list[dict[str, Any]] = []
    for call in calls:
        seconds = now - call.began
        seconds_by_outcome[call.outcome or OK].append(seconds)
        lines.append(_line(call, channel, route, seconds))
    for outcome, durations in seconds_by_outcome.items():
        metrics.answered(route, outcome, *durations)
    if _LOG.isEnabledFor(logging.INFO):
        _write(logging.INFO, lines)


def _line(call: RequestContext, channel: str, route: str, seconds: float) -> dict[str, Any]:
    line: dict[str, Any] = {
        "event": EVENT,
        "request_id": call.request_id,
        "channel": channel,
        "route": route,
        "outcome": call.outcome or OK,
    }
    if call.status is not None:
        line["status"] = call.status
    line["ms"] = round(seconds * 1000, 3)
    line["engine_ms"] = round(call.engine_seconds * 1000, 3) if call.engine_calls else 0.0
    line["engine_calls"] = call.engine_calls
    if call.generation is not None:
        line["generation"] = call.generation
    return line


def _write(level: int, lines: list[dict[str, Any]]) -> None:
    handlers = logging.root.handlers
    if len(handlers) == 1 and isinstance(handler := handlers[0], JsonStream):
        handler.call_lines(level, _LOG.name, lines)
        return
    for line in lines:
        event = line.pop("event")
        _LOG.log(level, event, extra=line)


def _outcome(request: RequestContext, status: int | None) -> str:
    if request.disconnected:
        return LEFT
    if request.outcome is not None:
        return request.outcome
    if status is None or status >= _FIRST_FAILURE:
        return "internal_error"
    return OK if status < _FIRST_REFUSAL else REFUSED
