"""The service's log: one structured line an event, as JSON, or readable on a terminal.

A line has messages of our own modules, the fields of a call, and of anything else only the location and the type of the
exception: clients of engines log whole requests, and exceptions quote them. Their texts are written only if the
operator asks for them (E5).
"""

import logging
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Literal, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor

from service.runtime.telemetry import CALL_FIELDS, JsonStream
from service.settings.service import Settings
from shop_directory.runtime.request_context import current

LogFormat = Literal["auto", "json", "console"]

# Loggers whose messages never quote a request: our own, and the server's start and stop.
_TRUSTED: Final = ("service", "indexer", "index_mappings", "shop_directory", "uvicorn")
_MAX_FRAMES: Final = 40
_MAX_CAUSES: Final = 8


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
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=CALL_FIELDS),
        _request_id,
        library_message,
        exception,
    ]


def _renderers(*, readable: bool) -> list[Processor]:
    remove_meta: Processor = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if readable:
        return [remove_meta, _as_text, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    return [
        remove_meta,
        structlog.processors.JSONRenderer(serializer=lambda line, **_: orjson.dumps(line, default=str).decode()),
    ]


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
