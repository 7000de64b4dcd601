"""The end of a call, reported in the same way for each transport: one line in the log, and one count.

Neither holds a query, a token or an address (E5, V2).
"""

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from service.runtime.metrics import Metrics
from service.runtime.request_context import LEFT, RequestContext

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
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)  # not frozen, which is slower to make: each suggest request makes one
class CompletedCall:
    """A completed call, as it is logged.

    Attributes:
        request_id: the request's id.
        began: monotonic seconds.
        status: the HTTP status; None without an answer, and over stdio.
        outcome: `ok`, or the code of the problem that was the answer.
        generation: the generation of the answer's data; None where it used none.
        engine_calls: requests to the search engine.
        engine_seconds: time spent waiting for them.
    """

    request_id: str
    began: float
    status: int | None
    outcome: str = OK
    generation: str | None = None
    engine_calls: int = 0
    engine_seconds: float = 0.0

    @classmethod
    def of(cls, request: RequestContext, status: int | None) -> "CompletedCall":
        """The completed call of a request; without an outcome it is `ok`."""
        return cls(
            request.request_id,
            request.began,
            status,
            request.outcome or OK,
            request.generation,
            request.engine_calls,
            request.engine_seconds,
        )


def log_call(metrics: Metrics, request: RequestContext, *, channel: str, route: str, status: int | None = None) -> None:
    """Count a call and write its line.

    Args:
        metrics: count the call.
        request: the call's context; its `outcome` is set, and its `on_end` callbacks run.
        channel: the transport.
        route: the label of the route, if the call is of no tool.
        status: the HTTP status; None without an answer, and over stdio.
    """
    route = request.tool or route
    outcome = request.outcome = _outcome(request, status)
    seconds = time.monotonic() - request.began
    metrics.answered(route, outcome, seconds)
    for callback in request.on_end:
        callback()
    level = logging.DEBUG if route in _PROBES and outcome == OK else logging.INFO
    if not _LOG.isEnabledFor(level):
        return
    _write(level, [_line(CompletedCall.of(request, status), channel, route, seconds)])


def log_calls(metrics: Metrics, calls: Sequence[CompletedCall], *, channel: str, route: str) -> None:
    """Count calls of one route that were answered together, and write their lines.

    Args:
        metrics: count the calls.
        calls: the calls in the order of their answers.
        channel: the transport.
        route: the label of the route.
    """
    now = time.monotonic()
    seconds_by_outcome: defaultdict[str, list[float]] = defaultdict(list)
    lines: list[dict[str, Any]] = []
    for call in calls:
        seconds = now - call.began
        seconds_by_outcome[call.outcome].append(seconds)
        lines.append(_line(call, channel, route, seconds))
    for outcome, durations in seconds_by_outcome.items():
        metrics.answered(route, outcome, *durations)
    if _LOG.isEnabledFor(logging.INFO):
        _write(logging.INFO, lines)


def _line(call: CompletedCall, channel: str, route: str, seconds: float) -> dict[str, Any]:
    line: dict[str, Any] = {
        "event": EVENT,
        "request_id": call.request_id,
        "channel": channel,
        "route": route,
        "outcome": call.outcome,
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
    write = getattr(handlers[0], "call_lines", None) if len(handlers) == 1 else None
    if write is not None:
        # Our handler writes such lines directly: a record of the logging module costs several times as much.
        write(level, _LOG.name, lines)
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
