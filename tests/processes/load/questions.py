"""What load asks: the requests of every transport, as bytes, and the world that they are about."""

import json
from collections.abc import Mapping
from typing import Any

from tests.processes.load.plan import NUMBER, Question
from tests.support.wire import ABOUT, Era


def http(method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None) -> str:
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: 127.0.0.1",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    if body is not None:
        lines += ["content-type: application/json", f"content-length: {len(body.encode())}"]
    return "\r\n".join([*lines, "", body or ""])


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"x-api-token": token}


def suggestion(query: str, *, weight: int = 1, name: str | None = None) -> Question:
    return Question(name or f"suggest {query}", http("GET", f"/suggest?{query}"), weight=weight)


def tool(tool: str, arguments: Mapping[str, Any], token: str | None = None, *, weight: int = 1) -> Question:
    body = json.dumps(arguments)
    numbered = NUMBER in body
    name = f"{tool} {body}"
    return Question(name, http("POST", f"/tool/{tool}", body, _headers(token)), numbered=numbered, weight=weight)


def mcp(era: Era, tool: str, arguments: Mapping[str, Any], token: str | None = None, *, weight: int = 1) -> Question:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": str(era), **_headers(token)}
    if era is Era.STATELESS:
        params["_meta"] = ABOUT
        headers |= {"mcp-method": "tools/call", "mcp-name": tool}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    name = f"mcp {era} {tool} {json.dumps(arguments)}"
    return Question(name, http("POST", "/mcp", body, headers), mcp=True, numbered=NUMBER in body, weight=weight)


def reads(token: str, *, weight: int = 1) -> tuple[Question, ...]:
    """Every read tool once, over the catalogues of tests.processes.endurance.worlds."""
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("find_shop", {"query": "lamp", "limit": 20}),
        ("find_shop", {"query": "lamp s7"}),
        ("list_categories", {}),
        ("get_shop", {"shop_domain": "s7"}),
        ("list_coupons", {"shop_domain": "lamp-s3.internal"}),
        ("get_shipping_policy", {"shop_domain": "s5", "country": "DE"}),
        ("get_trust", {"shop_domain": "s6"}),
        ("resolve_checkout_url", {"offer_id": "s9-o1", "affiliate": True}),
        ("monetize_offer", {"offer_id": "s8-o0"}),
        ("resolve_conflict", {"from_shop_id": "s0"}),
    )
    return tuple(tool(name, arguments, token, weight=weight) for name, arguments in asked)


def report_code(token: str) -> Question:
    return tool("report_code", {"shop_domain": "s3", "code": f"LOAD-{NUMBER}", "reason": "invalid"}, token)


def usual(token: str) -> tuple[Question, ...]:
    """A mix as callers make it: two thirds typing, the rest tools, a few over MCP."""
    return (
        *(suggestion(f"q={typed}", weight=16) for typed in ("l", "lam", "lamp", "amber", "amber%20la", "lmap")),
        *(suggestion(f"q=lamp&limit={limit}", weight=8) for limit in (1, 20)),
        *reads(token, weight=4),
        tool("find_shop", {"query": "amber", "limit": 50}, token, weight=8),
        mcp(Era.STATELESS, "find_shop", {"query": "lam", "limit": 20}, token, weight=3),
        mcp(Era.HANDSHAKE, "get_shop", {"shop_domain": "s4"}, token, weight=3),
    )
