"""The span of a message: named by its method and its tool, in the trace that the message carries."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from service.runtime.request_context import RequestContext
from service.runtime.tracing import CallTracer, header_texts

TOOLS_CALL: Final = "tools/call"
COMPLETION_COMPLETE: Final = "completion/complete"

# Unknown methods share one name, so that callers cannot create span names.
_METHODS: Final = frozenset(
    {
        "initialize",
        "notifications/initialized",
        "ping",
        "server/discover",
        TOOLS_CALL,
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        COMPLETION_COMPLETE,
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
    """Begin the span of a message; the trace of its `_meta` takes precedence over one in the headers."""
    method = method if method in _METHODS else "other"
    attributes = {"mcp.method.name": method} | ({} if tool is None else {"gen_ai.tool.name": tool})

    def carried() -> dict[str, Any]:
        return header_texts(headers) | (dict(meta) if isinstance(meta, Mapping) else {})

    traces.begin(request, method if tool is None else f"{method} {tool}", carried, attributes)
