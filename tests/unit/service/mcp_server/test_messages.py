"""JSON-RPC messages: what is taken, and errors in our words whatever the SDK says."""

import json

import pytest

from service.mcp_server.messages import TEXTS, RpcError, check_message, own_answer

pytestmark = pytest.mark.rule("E1.transport", "E5")


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": "a", "method": "ping", "params": None},
        {"jsonrpc": "2.0", "id": 0, "method": "ping", "params": {"_meta": {}}, "more": 1},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ],
)
def test_requests_and_notifications_pass(message: dict[str, object]) -> None:
    raw = json.dumps(message).encode()
    try:
        check_message(raw)
    except RpcError as error:
        pytest.fail(error.message)
    assert json.loads(raw) == message


@pytest.mark.parametrize("id_", [1, "x", None])
def test_only_the_code_and_id_of_an_error_of_the_sdk_remain(id_: int | str | None) -> None:
    error = {"code": -32602, "message": "1 validation error for X", "data": "input_value=hunter2"}
    answer = json.loads(own_answer(json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}).encode()))
    assert answer == {"jsonrpc": "2.0", "id": id_, "error": {"code": -32602, "message": TEXTS[-32602]}}


def test_the_data_that_the_protocol_prescribes_stay() -> None:
    data = {"supported": ["2026-07-28"], "requested": "x"}
    error = {"code": -32022, "message": "library text", "data": data}
    answer = json.loads(own_answer(json.dumps({"id": 1, "error": error}).encode()))
    assert answer["error"] == {"code": -32022, "message": TEXTS[-32022], "data": data}


@pytest.mark.parametrize(
    "body", [b"", b"Invalid Host header", b"[]", b"{}", b'{"error":{}}', b'{"error":"x"}', b"\xff"]
)
def test_an_answer_that_is_no_json_rpc_becomes_one(body: bytes) -> None:
    answer = json.loads(own_answer(body))
    assert answer == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": TEXTS[-32600]}}


def test_an_unknown_code_of_the_sdk_is_an_internal_error() -> None:
    answer = json.loads(own_answer(b'{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"secret"}}'))
    assert answer["error"] == {"code": -32603, "message": TEXTS[-32603]}
