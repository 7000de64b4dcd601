"""The end of a call, told the same way for every door: one line in the log, and one count.

What was asked, by whom and from where is in neither: no query text, no token, no address (E5, V2).
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from service.runtime.metrics import Metrics
from service.runtime.request_context import LEFT, RequestContext

OK: Final = "ok"
EVENT: Final = "call"
# An answer of a transport's own, which has no code of ours.
REFUSED: Final = "refused"
NO_ROUTE: Final = "none"
# What the line holds beside the request's id, in the log's words.
CALL_FIELDS: Final = (
    "request_id", "channel", "route", "outcome", "status", "ms", "engine_ms", "engine_calls", "generation",
)  # fmt: skip

# Asked every few seconds by machines: their lines would be most of the log.
_PROBES: Final = frozenset({"health", "ready", "version", "metrics", "metrics_resources"})
_FIRST_REFUSAL: Final = 400
_FIRST_FAILURE: Final = 500
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)  # not frozen: a key press makes one
class EndedCall:
    """What is told of a call that has ended.

    Attributes:
        request_id: its id.
        began: seconds of the monotonic clock.
        status: of HTTP; None without an answer, and over stdio.
        outcome: `ok`, or the code of the problem that was the answer.
        generation: that the answer comes from; None where it comes from none.
        engine_calls: requests to the search engine.
        engine_seconds: spent waiting for them.
    """

    request_id: str
    began: float
    status: int | None
    outcome: str = OK
    generation: str | None = None
    engine_calls: int = 0
    engine_seconds: float = 0.0


def call_ended(
    metrics: Metrics, request: RequestContext, *, channel: str, route: str, status: int | None = None
) -> None:
    """Count a call and write its line.

    Args:
        metrics: count it.
        request: what is known of it; its `outcome` is completed.
        channel: the door.
        route: as `Metrics.answered` names it.
        status: of HTTP, where it was answered over HTTP; None without an answer, and over stdio.
    """
    route = request.tool or route
    outcome = request.outcome = _outcome(request, status)
    seconds = time.monotonic() - request.began
    metrics.answered(route, outcome, seconds)
    for done in request.ended:
        done()
    level = logging.DEBUG if route in _PROBES and outcome == OK else logging.INFO
    if not _LOG.isEnabledFor(level):
        return
    ended = EndedCall(
        request.request_id,
        request.began,
        status,
        outcome,
        request.generation,
        request.engine_calls,
        request.engine_seconds,
    )
    _write(level, [_line(ended, channel, route, seconds)])


def calls_ended(metrics: Metrics, calls: Sequence[EndedCall], *, channel: str, route: str) -> None:
    """The same for calls that were answered over HTTP together, of one route.

    Args:
        metrics: count them.
        calls: in the order in which they were answered, just now.
        channel: the door.
        route: as `Metrics.answered` names it.
    """
    now = time.monotonic()
    taken: dict[str, list[float]] = {}
    lines: list[dict[str, Any]] = []
    for call in calls:
        seconds = now - call.began
        outcome = call.outcome
        if outcome in taken:
            taken[outcome].append(seconds)
        else:
            taken[outcome] = [seconds]
        lines.append(_line(call, channel, route, seconds))
    for outcome, seconds_of in taken.items():
        metrics.answered(route, outcome, *seconds_of)
    if _LOG.isEnabledFor(logging.INFO):
        _write(logging.INFO, lines)


def _line(call: EndedCall, channel: str, route: str, seconds: float) -> dict[str, Any]:
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
        # The log's own stream takes such lines as they are: a record of the logging module costs several times as much.
        write(level, _LOG.name, lines)
        return
    for line in lines:
        event = line.pop("event")
        _LOG.log(level, event, extra=line)


def _outcome(request: RequestContext, status: int | None) -> str:
    if request.gone:
        return LEFT
    if request.outcome is not None:
        return request.outcome
    if status is None or status >= _FIRST_FAILURE:
        return "internal_error"
    return OK if status < _FIRST_REFUSAL else REFUSED
