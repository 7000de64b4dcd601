"""The tree of errors, and JSON-RPC errors in our words."""

import json
from typing import Any, Final

import pytest

from service.errors import QuotaExceededError, ServiceError, ShopNotFoundError
from service.mcp_server.messages import TEXTS, own_answer

# The others are made of more than their class.
PLAIN = [error for error in ServiceError.__subclasses__() if error not in {QuotaExceededError, ShopNotFoundError}]


@pytest.mark.rule("E1", "E1.retry_after", "V2")
@pytest.mark.parametrize("error", PLAIN, ids=lambda error: error.code)
def test_every_error_has_the_same_members(error: type[ServiceError]) -> None:
    assert error().problem() == {
        "type": f"urn:shop-directory:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.default_detail,
        "code": error.code,
    }
    assert error.default_detail.endswith(".")
    assert (error.retry_after is not None) == (error.status == 503)


DATA: Final = {"supported": ["2026-07-28"], "requested": "x"}


@pytest.mark.rule("E1.transport", "E5")
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


@pytest.mark.rule("E1.transport", "E5")
@pytest.mark.parametrize(
    "body", [b"", b"Invalid Host header", b"[]", b"{}", b'{"error":{}}', b'{"error":"x"}', b"\xff"]
)
def test_an_answer_that_is_no_json_rpc_becomes_one(body: bytes) -> None:
    answer = json.loads(own_answer(body))
    assert answer == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": TEXTS[-32600]}}
