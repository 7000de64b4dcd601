"""JSON-RPC errors in our words, whatever the SDK says."""

import json
from typing import Any, Final

import pytest

from service.mcp_server.messages import TEXTS, own_answer

pytestmark = pytest.mark.rule("E1.transport", "E5")


DATA: Final = {"supported": ["2026-07-28"], "requested": "x"}


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ({"code": -32602, "message": "1 validation error for X", "data": "input_value=hunter2"}, {"code": -32602}),
        ({"code": -32022, "message": "library text", "data": DATA}, {"code": -32022, "data": DATA}),
        ({"code": 0, "message": "secret"}, {"code": -32603}),
    ],
    ids=["its words", "data that the protocol prescribes", "an unknown code"],
)
def test_of_an_error_of_the_sdk_only_what_the_protocol_prescribes_remains(
    sent: dict[str, object], answered: dict[str, Any]
) -> None:
    for message_id in (1, "x", None):
        body = json.dumps({"jsonrpc": "2.0", "id": message_id, "error": sent}).encode()
        error = {**answered, "message": TEXTS[answered["code"]]}
        assert json.loads(own_answer(body)) == {"jsonrpc": "2.0", "id": message_id, "error": error}


@pytest.mark.parametrize(
    "body", [b"", b"Invalid Host header", b"[]", b"{}", b'{"error":{}}', b'{"error":"x"}', b"\xff"]
)
def test_an_answer_that_is_no_json_rpc_becomes_one(body: bytes) -> None:
    answer = json.loads(own_answer(body))
    assert answer == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": TEXTS[-32600]}}
