"""The composition root over stdio, which imports nothing of HTTP: a client waits for this process to start."""

import asyncio
from typing import Final

from service.calls.live_data import OPENING_S
from service.identity import SERVICE, VERSION
from service.mcp_server.server import build_server
from service.mcp_server.stdio import call_over_stdio, serve_stdio, wait_for_index
from service.parts import Parts, running
from service.runtime.tracing import open_traces
from service.settings.service import Settings

# How long after its deadline the answer to a request may be written, in seconds.
_LATE_S: Final = 5.0


async def run_stdio(settings: Settings) -> None:
    """Serve MCP on stdin and stdout until stdin ends and its requests are answered."""
    parts = Parts(settings)
    token = settings.api_token.get_secret_value().strip() if settings.api_token else None
    traces = open_traces(SERVICE, VERSION, sent=settings.traces == "otlp")
    try:
        server = build_server(
            parts.dispatcher,
            parts.responder,
            VERSION,
            call_over_stdio(token or None),
            traces=traces,
            public_url=settings.public_url,
            usable_tools_only=settings.mcp_anonymous_tools == "usable",
        )
        async with running(parts.live.log_missing_index()), running(parts.open_index()) as opening:
            server.middleware.insert(0, wait_for_index(opening))
            await serve_stdio(server, OPENING_S + settings.request_timeout + _LATE_S)
    finally:
        await parts.close()
        if traces is not None:
            await asyncio.to_thread(traces.close)
