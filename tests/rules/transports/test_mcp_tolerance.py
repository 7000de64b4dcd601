"""What MCP over HTTP takes from clients that differ: hosts, paths, Accept, byte order marks, null."""

import codecs
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from service.app import create_app
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from service.tools.tool import Tool
from tests.rules.transports.test_mcp_transport import ENCODED, PING
from tests.rules.transports.test_mcp_transport import _asked as asked
from tests.rules.transports.test_mcp_transport import _error as error
from tests.support.sample import SampleService
from tests.support.served import ask, post, served


@pytest.mark.rule("E1.transport")
def test_named_hosts_are_served_besides_those_of_this_machine(tmp_path: Path) -> None:
    settings = Settings(mcp_allowed_hosts=("shops.example",), data_dir=tmp_path, token_file=tmp_path / "tokens")
    with served(create_app(settings)) as base:
        hosts = ["shops.example", "localhost:1", "127.0.0.1", "[::1]:8080", "evil.example"]
        statuses = [post(base, "/mcp", PING, host=host).status for host in hosts]
    assert statuses == [200, 200, 200, 200, 421]


def _headers(**more: str) -> dict[str, str]:
    return {"content-type": "application/json", **more}


@pytest.mark.rule("I3")
def test_a_slash_at_the_end_of_the_path_makes_no_difference(base: str) -> None:
    call = asked("tools/call", name="get_shop", arguments={"shop_domain": "shop_books"})
    for message in (PING, call):
        slashed, plain_path = (post(base, path, message) for path in ("/mcp/", "/mcp"))
        assert slashed.status == 200
        assert slashed.json["result"].get("content") == plain_path.json["result"].get("content")
    assert ask(base, "GET", "/mcp/").status == 405
    assert ask(base, "POST", "/mcp//", b"{}", _headers()).status == 404


@pytest.mark.rule("I3", "I5")
@pytest.mark.parametrize("method", ["initialize", "tools/list", "tools/call", "ping"])
@pytest.mark.parametrize("accept", [None, "text/event-stream", "text/*", "text/event-stream, text/html;q=0.5"])
def test_without_accept_json_is_sent_and_to_those_who_accept_events_alone_one_event(
    base: str, method: str, accept: str | None
) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    params = {"initialize": about, "tools/call": {"name": "get_shop", "arguments": {"shop_domain": "shop_books"}}}
    message = json.dumps(asked(method, **params.get(method, {}))).encode()
    expected = _without_request_id(ask(base, "POST", "/mcp", message, _headers(accept="application/json")).body)
    reply = ask(base, "POST", "/mcp", message, _headers() if accept is None else _headers(accept=accept))
    assert reply.status == 200
    body = reply.body
    if accept is None:
        assert reply.headers["content-type"] == "application/json"
    else:
        assert reply.headers["content-type"] == "text/event-stream"
        assert body.startswith(b"event: message\ndata: {")
        assert body.endswith(b"}\n\n")
        assert body.count(b"\n") == 3
        body = body.removeprefix(b"event: message\ndata: ")
    assert _without_request_id(body) == expected


def _without_request_id(body: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(body)
    message.get("result", {}).pop("_meta", None)
    return message


@pytest.mark.rule("E1.transport", "I3")
def test_refusals_and_notifications_are_no_events(base: str) -> None:
    headers = _headers(accept="text/event-stream")
    refused = ask(base, "POST", "/mcp", b"{", headers)
    assert refused.summary == (400, "application/json", error(-32700, "The message is not valid JSON."))
    notification = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    taken = ask(base, "POST", "/mcp", notification, headers)
    assert (taken.status, taken.body) == (202, b"")


@pytest.mark.rule("E6")
def test_a_byte_order_mark_is_ignored_and_an_encoded_body_refused(base: str) -> None:
    message = json.dumps(PING).encode()
    assert post(base, "/mcp", codecs.BOM_UTF8 + message).status == 200
    found = post(base, "/tool/find_shop", codecs.BOM_UTF8 + b'{"query":"kitchen"}')
    assert found.json == post(base, "/tool/find_shop", {"query": "kitchen"}).json
    assert post(base, "/tool/find_shop", 2 * codecs.BOM_UTF8 + b'{"query":"kitchen"}').status == 400
    for encoding in ("gzip", "br", "identity, gzip", "x"):
        refused = post(base, "/tool/find_shop", gzip.compress(b'{"query":"kitchen"}'), content_encoding=encoding)
        assert (refused.status, refused.json["code"], refused.json["detail"]) == (
            415,
            "unsupported_media_type",
            ENCODED,
        )
    assert post(base, "/tool/find_shop", {"query": "kitchen"}, content_encoding="Identity").status == 200


@pytest.mark.rule("R2.schema", "R3")
@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_null_in_an_optional_field_is_as_if_the_field_were_absent(sample: SampleService, tool: Tool[Any]) -> None:
    arguments = tool.examples[0].arguments
    with_nulls = dict.fromkeys(tool.request.field_names()) | arguments
    token = {"x_api_token": sample.token}
    expected, rest = (post(sample.base, f"/tool/{tool.name}", sent, **token) for sent in (arguments, with_nulls))
    assert (rest.status, rest.body) == (expected.status, expected.body)
    assert rest.status != 400
    call = asked("tools/call", name=tool.name, arguments=with_nulls)
    result = post(sample.base, "/mcp", call, **token).json["result"]
    assert [block["text"] for block in result["content"]] == [expected.body.decode()]
