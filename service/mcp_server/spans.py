"""The span of a message: named by its method and tool, where there are such; joined to the trace that it carries."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from service.runtime.request_context import RequestContext
from service.runtime.tracing import CallTracer, of_headers

CALL: Final = "tools/call"
COMPLETE: Final = "completion/complete"

# No caller invents the names of spans.
_METHODS: Final = frozenset(
    {
        "initialize",
        "notifications/initialized",
        "ping",
        "server/discover",
        CALL,
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        COMPLETE,
    }
)


def begin_span(
    traces: CallTracer,
    request: RequestContext,
    method: str,
    tool: str | None,
    *,
    meta: object,
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    """Begin the span of a message.

    Args:
        traces: where it came in.
        request: that it is.
        method: of JSON-RPC.
        tool: the name of the tool that it calls, if there is such a tool.
        meta: the `_meta` of its params; a trace that it carries comes before one of the headers.
        headers: of HTTP.
    """
    method = method if method in _METHODS else "other"
    attributes = {"mcp.method.name": method} | ({} if tool is None else {"gen_ai.tool.name": tool})

    def carried() -> dict[str, Any]:
        return of_headers(headers) | (dict(meta) if isinstance(meta, Mapping) else {})

    traces.begin(request, method if tool is None else f"{method} {tool}", carried, attributes)
