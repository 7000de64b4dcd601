"""Only a call that is plain in every header and field takes the fast path; the SDK judges every other message."""

from pathlib import Path
from typing import Final

import pytest

from service.mcp_server.endpoint import accepts, is_valid
from tests.support.both_ways import ABOUT, MODERN, OLDER, plain_headers, plain_message, raw
from tests.support.echoing import ECHO, Asked, answered, changed, dispatcher, plain


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
