"""The service's log: one structured line an event, as JSON, or readable on a terminal.

What a line may hold is decided here and not by who writes it: our own modules' words, the fields of a call, and of
everything else only where it happened and what kind of fault it was. Clients of engines log whole requests, and the
words of an exception often quote what was sent; neither is written unless the operator asks for it (E5).
"""

import logging
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Literal, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor

from service.observability.json_lines import JsonStream
from service.runtime.call_log import CALL_FIELDS
from service.runtime.request_context import current
from service.settings.service import Settings

LogFormat = Literal["auto", "json", "console"]

# Loggers whose words hold nothing of a request's: our own, and the server's life.
_TRUSTED: Final = ("service", "indexer", "index_mappings", "shop_directory", "uvicorn")
_MOST_FRAMES: Final = 40
_MOST_CAUSES: Final = 8


def configure_logging(
    level: str, log_format: LogFormat = "auto", *, exception_text: bool = False, stream: TextIO | None = None
) -> None:
    """Send the whole process's log to a stream, instead of wherever it went.

    Args:
        level: from which on our own lines are written; those of libraries are from warnings on.
        log_format: `auto` is `console` on a terminal and `json` elsewhere.
        exception_text: whether the words of libraries and of exceptions are repeated.
        stream: standard error unless given.
    """
    stream = sys.stderr if stream is None else stream
    readable = log_format == "console" or (log_format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream) if readable else JsonStream(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_facts(exception_text=exception_text), processors=_written(readable=readable)
        )
    )
    root = logging.getLogger()
    for former in tuple(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in _TRUSTED:
        logging.getLogger(name).setLevel(level.upper())
    logging.captureWarnings(capture=True)


def log_by(settings: Settings) -> None:
    """Send this process's log to standard error, as the settings say."""
    configure_logging(settings.log_level, settings.log_format, exception_text=settings.log_exception_text)


def _facts(*, exception_text: bool) -> list[Processor]:
    """What a line says, in order."""

    def words(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
        record: logging.LogRecord = line["_record"]
        if not exception_text and record.name.partition(".")[0] not in _TRUSTED:
            line["event"] = "a library's line; its words are not repeated"
            line["where"] = f"{record.module}:{record.lineno}"
        return line

    def exception(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
        found = line.pop("exc_info", None)
        line.pop("stack_info", None)
        if isinstance(found, tuple) and found[1] is not None:
            line["exception"] = list(_told(found[1], with_text=exception_text))
        return line

    return [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.add_log_level,
        _logger_name,
        structlog.stdlib.ExtraAdder(allow=CALL_FIELDS),
        _request_id,
        words,
        exception,
    ]


def _written(*, readable: bool) -> list[Processor]:
    """How it is written: as one line of JSON, or for reading."""
    tidy: Processor = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if readable:
        return [tidy, _as_text, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    return [tidy, structlog.processors.JSONRenderer(serializer=_json)]


def _logger_name(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
    line["logger"] = line["_record"].name
    return line


def _request_id(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
    if "request_id" not in line and (request := current()) is not None:
        line["request_id"] = request.request_id
    return line


def _told(error: BaseException, *, with_text: bool) -> Iterable[dict[str, Any]]:
    """An exception and those that it came from: kind and frames, the innermost last."""
    seen: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if seen is None:
            return
        kind = f"{type(seen).__module__}.{type(seen).__qualname__}"
        yield {"type": kind, **({"text": str(seen)} if with_text else {}), "frames": _frames(seen.__traceback__)}
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _frames(traceback: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{traceback.tb_frame.f_globals.get('__name__', '?')}:{traceback.tb_lineno} {code.co_qualname}")
        traceback = traceback.tb_next
    return frames[-_MOST_FRAMES:]


def _as_text(_: Any, __: str, line: EventDict) -> EventDict:  # noqa: ANN401 - as structlog says
    if told := line.pop("exception", None):
        causes = [
            "\n".join([found["type"] + (f": {found['text']}" if "text" in found else ""), *found["frames"]])
            for found in told
        ]
        line["exception"] = "\nfrom ".join(causes)
    return line


def _json(line: EventDict, **_: Any) -> str:  # noqa: ANN401 - what the renderer hands on besides
    return orjson.dumps(line, default=str).decode()
