"""The end of a call, told the same way for every door: one line in the log, and one count.

What was asked, by whom and from where is in neither: no query text, no token, no address (E5, V2).
"""

import logging
import time
from typing import Any, Final

from service.measures import Measures
from service.under_way import LEFT, UnderWay

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


def call_ended(measures: Measures, request: UnderWay, *, channel: str, route: str, status: int | None = None) -> None:
    """Count a call and write its line.

    Args:
        measures: count it.
        request: what is known of it; its `outcome` is completed.
        channel: the door.
        route: as `Measures.answered` names it.
        status: of HTTP, where it was answered over HTTP; None without an answer, and over stdio.
    """
    route = request.tool or route
    outcome = request.outcome = _outcome(request, status)
    seconds = time.monotonic() - request.began
    measures.answered(route, outcome, seconds)
    for done in request.ended:
        done()
    level = logging.DEBUG if route in _PROBES and outcome == OK else logging.INFO
    if not _LOG.isEnabledFor(level):
        return
    line: dict[str, Any] = {"request_id": request.request_id, "channel": channel, "route": route, "outcome": outcome}
    if status is not None:
        line["status"] = status
    line["ms"] = round(seconds * 1000, 3)
    line["engine_ms"] = round(request.engine_seconds * 1000, 3) if request.engine_calls else 0.0
    line["engine_calls"] = request.engine_calls
    if request.generation is not None:
        line["generation"] = request.generation
    handlers = logging.root.handlers
    write = getattr(handlers[0], "call_line", None) if len(handlers) == 1 else None
    if write is not None:
        # The log's own stream takes such lines as they are: a record of the logging module costs several times as much.
        write(level, _LOG.name, EVENT, line)
    else:
        _LOG.log(level, EVENT, extra=line)


def _outcome(request: UnderWay, status: int | None) -> str:
    if request.gone:
        return LEFT
    if request.outcome is not None:
        return request.outcome
    if status is None or status >= _FIRST_FAILURE:
        return "internal_error"
    return OK if status < _FIRST_REFUSAL else REFUSED
