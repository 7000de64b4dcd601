"""The calls of everything but the tools that become examples: /suggest, /mcp, the probes and the operators' pages."""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

from service.errors import MAX_BODY_BYTES
from tests.people.docs_in_service.asking import Asking
from tests.people.docs_in_service.states import States
from tests.people.docs_in_service.tool_calls import NO_SHOP

_MODERN: Final = {"mcp-protocol-version": "2026-07-28", "mcp-method": "shops/merge"}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "example", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_OPEN_METRICS: Final = "application/openmetrics-text"
# A few of many, that say the same at any time.
_METRICS: Final = ("shopdir_engine_up", "shopdir_documents", "shopdir_generation_readable", "shopdir_recheck_queue_up")
_RESOURCES: Final = ("shopdir_resource_accounts_known", "shopdir_resource_used", "shopdir_resource_limit")


def other_calls(at: States) -> Iterator[Asking]:
    """All of them."""
    yield from _suggest(at)
    yield from _mcp(at)
    yield from _probes(at)
    for operation, path, metrics in (
        ("ops_state", "/api/ops/state", ()),
        ("metrics_resources", "/metrics/resources", _RESOURCES),
        ("metrics", "/metrics", _METRICS),
    ):
        yield from _operators(at, operation, path, metrics)


def _suggest(at: States) -> Iterator[Asking]:
    def asked(name: str, summary: str, base: str = at.whole, times: int = 1, **query: Any) -> Asking:  # noqa: ANN401 - any value
        path = f"/suggest?{urlencode(query)}"
        return Asking("suggest", name, summary, base, "GET", path, shown=query, times=times)

    yield asked("example_1", "With a typing error", q="lumn", limit=3)
    yield asked("example_2", "What sells in Germany", q="light", limit=3, country="DE")
    yield asked("invalid_input", "A number out of its range", q="lumn", limit=0)
    yield asked("unknown_parameter", "A parameter that there is not", q="lumn", contry="DE")
    yield Asking("suggest", "method_not_allowed", "Asked with POST", at.whole, "POST", "/suggest?q=lumn", b"{}")
    for name, summary, base, times in (
        ("quota_exceeded", "The second call, where the quota is one", at.used_up, 2),
        ("internal_error", "A fault of the service", at.broken, 1),
        ("backend_unavailable", "The search engine is away", at.away, 1),
        ("not_ready", "No index is published", at.empty, 1),
        ("overloaded", "Another request has the last place", at.full, 1),
    ):
        yield Asking("suggest", name, summary, base, "GET", "/suggest?q=lumn", times=times)


def _called(tool: str, **arguments: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def _mcp(at: States) -> Iterator[Asking]:
    good = _called("get_shipping_policy", shop_domain="kiefernhaus.internal", country="AT")
    raw = json.dumps(good).encode()

    def said(name: str, summary: str, message: Any, base: str = at.whole, **headers: str) -> Asking:  # noqa: ANN401 - any JSON value
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return Asking("mcp", name, summary, base, "POST", "/mcp", json.dumps(message).encode(), named, message)

    def sent(name: str, summary: str, base: str = at.whole, body: bytes = raw, **headers: str) -> Asking:
        return Asking("mcp", name, summary, base, "POST", "/mcp", body, headers)

    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    yield said("example_1", "A call of a tool", good)
    yield said("example_2", "A call that the tool refuses", _called("get_shop", shop_domain=NO_SHOP))
    yield said("batch", "More than one message", [ping])
    yield sent("not_json", "Not JSON", body=b"{")
    yield said("token_required", "A tool that needs a token", _called("get_trust", shop_domain="rimona.internal"))
    yield sent("origin", "From a page of another origin", origin="https://elsewhere.example")
    unknown = {"jsonrpc": "2.0", "id": 1, "method": "shops/merge", "params": {"_meta": _META}}
    yield Asking(
        "mcp",
        "no_method",
        "A method that there is not",
        at.whole,
        "POST",
        "/mcp",
        json.dumps(unknown).encode(),
        _MODERN,
    )
    yield sent("accept", "What the caller does not accept", accept="text/html")
    yield sent("too_large", "A message of more than 64 KiB", body=b" " * (MAX_BODY_BYTES + 1))
    yield sent("host", "To a host that it does not go by", host="elsewhere.example")
    again = json.dumps(ping).encode()
    summary = "The second message, where the quota is one"
    yield Asking("mcp", "quota_exceeded", summary, at.used_up, "POST", "/mcp", again, times=2)
    yield sent("overloaded", "Another request has the last place", at.full)
    yield Asking("mcp", "method_not_allowed", "Asked with GET", at.whole, "GET", "/mcp")
    yield sent("internal_error", "A fault of the service", at.broken, again)
    fault = "A fault before the message was read"
    yield Asking("mcp", "internal_error", fault, at.whole, "POST", "/mcp", raw, gate=at.gate)


def _probes(at: States) -> Iterator[Asking]:
    for operation in ("health", "ready", "version"):
        path = f"/{operation}"
        yield Asking(operation, "example_1", "As it should be", at.whole, "GET", path)
        yield Asking(operation, "method_not_allowed", "Asked with POST", at.whole, "POST", path, b"{}")
    yield Asking("ready", "not_ready", "The search engine is away", at.away, "GET", "/ready")
    yield Asking("ready", "internal_error", "A fault of the service", at.broken, "GET", "/ready")
    yield Asking("version", "version_unknown", "A build that does not know itself", at.away, "GET", "/version")


def _operators(at: States, operation: str, path: str, metrics: tuple[str, ...]) -> Iterator[Asking]:
    if metrics:
        part = f"{len(metrics)} of its metrics"
        yield Asking(operation, "example_1", part, at.whole, "GET", path, headers={"accept": "*/*"}, only=metrics)
        named = {"accept": _OPEN_METRICS}
        yield Asking(operation, "example_1", part, at.whole, "GET", path, headers=named, only=metrics)
    else:
        yield Asking(operation, "example_1", "On the sample catalogue", at.whole, "GET", path)
    yield Asking(operation, "ops_key_required", "Without the operations key", at.restricted, "GET", path)
    foreign = {"host": "shops.example"}
    summary = "By a name of another machine, where no key is configured"
    yield Asking(operation, "misdirected_request", summary, at.whole, "GET", path, headers=foreign)
    yield Asking(operation, "method_not_allowed", "Asked with POST", at.whole, "POST", path, b"{}")
    summary = "The second call, where the quota is one"
    yield Asking(operation, "quota_exceeded", summary, at.used_up, "GET", path, times=2)
    yield Asking(operation, "internal_error", "A fault of the service", at.broken, "GET", path)
    if operation == "metrics_resources":
        yield Asking(operation, "backend_unavailable", "The search engine is away", at.away, "GET", path)
