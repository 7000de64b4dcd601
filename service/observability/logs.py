"""The service's log: one structured line an event, as JSON, or readable on a terminal.

This module decides what a line may contain, whatever is logged: messages of our own modules, the fields of a call, and
of anything else only the location and the type of the exception. Client libraries of engines log whole requests, and
exception messages often quote what was sent; neither is written unless the operator asks for it (E5).

Call lines, of which there can be thousands a second, have a fast path: they are buffered and written together, when a
hundred wait or 20 ms after the first. A kill loses no more than these.
"""

import asyncio
import logging
import sys
import time
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Literal, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor

from service.runtime.request_context import current
from service.runtime.telemetry import CALL_FIELDS, CallLineHandler
from service.settings.service import Settings

LogFormat = Literal["auto", "json", "console"]

# Loggers whose messages never quote a request: our own, and the server's start and stop.
_TRUSTED: Final = ("service", "indexer", "index_mappings", "shop_directory", "uvicorn")
_MAX_FRAMES: Final = 40
_MAX_CAUSES: Final = 8
_MICROSECONDS: Final = 1_000_000
# Long enough to collect many lines under load, too short to be noticed by a reader.
_DELAY_SECONDS: Final = 0.02
# Few enough that writing them does not delay an answer noticeably.
_MAX_BUFFERED: Final = 100
_UNWRITTEN: Final = logging.makeLogRecord({"msg": "call lines could not be written"})


def configure_logging(
    level: str, log_format: LogFormat = "auto", *, exception_text: bool = False, stream: TextIO | None = None
) -> None:
    """Send the log of the whole process to one stream, by default standard error; other handlers are removed.

    `level` is the lowest of our own lines; lines of libraries are written from warnings on. The format `auto` is
    `console` on a terminal and `json` elsewhere. `exception_text` says whether messages of libraries and of exceptions
    are written.
    """
    stream = sys.stderr if stream is None else stream
    readable = log_format == "console" or (log_format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream) if readable else JsonStream(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_field_processors(exception_text=exception_text), processors=_renderers(readable=readable)
        )
    )
    root = logging.getLogger()
    for handler_before in tuple(root.handlers):
        root.removeHandler(handler_before)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in _TRUSTED:
        logging.getLogger(name).setLevel(level.upper())
    logging.captureWarnings(capture=True)


def configure_logging_from(settings: Settings) -> None:
    """Send the log of this process to standard error, as the settings say."""
    configure_logging(settings.log_level, settings.log_format, exception_text=settings.log_exception_text)


def _field_processors(*, exception_text: bool) -> list[Processor]:
    """The processors that set the fields of a line, in the order of the fields."""

    def library_message(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
        record: logging.LogRecord = line["_record"]
        if not exception_text and record.name.partition(".")[0] not in _TRUSTED:
            line["event"] = "a library's message; its text is not logged"
            line["where"] = f"{record.module}:{record.lineno}"
        return line

    def exception(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
        exc_info = line.pop("exc_info", None)
        line.pop("stack_info", None)
        if isinstance(exc_info, tuple) and exc_info[1] is not None:
            line["exception"] = list(_exception_chain(exc_info[1], with_text=exception_text))
        return line

    return [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.add_log_level,
        _logger_name,
        structlog.stdlib.ExtraAdder(allow=CALL_FIELDS),
        _request_id,
        library_message,
        exception,
    ]


def _renderers(*, readable: bool) -> list[Processor]:
    """The processors that render a line: as JSON, or readable."""
    remove_meta: Processor = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if readable:
        return [remove_meta, _as_text, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    return [remove_meta, structlog.processors.JSONRenderer(serializer=_json)]


def _logger_name(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
    line["logger"] = line["_record"].name
    return line


def _request_id(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
    if "request_id" not in line and (request := current()) is not None:
        line["request_id"] = request.request_id
    return line


def _exception_chain(error: BaseException, *, with_text: bool) -> Iterable[dict[str, Any]]:
    """An exception and its causes: type and frames of each, the innermost frame last."""
    current_error: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if current_error is None:
            return
        kind = f"{type(current_error).__module__}.{type(current_error).__qualname__}"
        text = {"text": str(current_error)} if with_text else {}
        yield {"type": kind, **text, "frames": _frames(current_error.__traceback__)}
        suppressed = current_error.__suppress_context__
        current_error = current_error.__cause__ or (None if suppressed else current_error.__context__)


def _frames(traceback: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{traceback.tb_frame.f_globals.get('__name__', '?')}:{traceback.tb_lineno} {code.co_qualname}")
        traceback = traceback.tb_next
    return frames[-_MAX_FRAMES:]


def _as_text(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
    if chain := line.pop("exception", None):
        causes = [
            "\n".join([error["type"] + (f": {error['text']}" if "text" in error else ""), *error["frames"]])
            for error in chain
        ]
        line["exception"] = "\nfrom ".join(causes)
    return line


def _json(line: EventDict, **_: Any) -> str:  # noqa: ANN401 - options that the renderer passes
    return orjson.dumps(line, default=str).decode()


class JsonStream(CallLineHandler):
    """A handler that writes lines of JSON."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        # A deque, as other threads flush it before they write lines of their own.
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
