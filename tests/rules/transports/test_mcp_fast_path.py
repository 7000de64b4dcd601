"""Only a plain call of a tool takes the fast path, and it gets the JSON that the SDK would have answered."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.limits.policy import QuotaClass
from service.mcp_server.endpoint import accepts, is_valid
from service.tools.registry import REGISTRY
from service.tools.tool import ToolContext
from tests.support.both_ways import (
    ABOUT,
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
from tests.support.callers import issue

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
    @settings(max_examples=12, deadline=None)
    def holds(asked: list[Asked]) -> None:
        answers, taken = answered(over, *asked)
        assert [short for short, _ in answers] == [sdk for _, sdk in answers]
        assert {short.status for short, _ in answers} == {200}
        assert taken == len(asked)

    holds()


@pytest.mark.rule("I3", "I5", "E1", "E2", "R5")
def test_every_tool_answers_on_the_fast_path_as_by_the_sdk(tmp_path: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("find_shop", {"query": "küche 厨房", "limit": 3}),
        ("find_shop", {"query": "qqxx \U0001f6d2 harbour"}),
        ("find_shop", {"query": "", "category": "no such"}),
        ("get_shop", {"shop_domain": "shop_books"}),
        ("get_shop", {"shop_domain": "xn--bcher-kva.example"}),
        ("get_shop", {"shop_domain": "shop_hidden"}),
        ("get_shop", {}),
        ("get_shop", {"shop_domain": 5, "colour": "red"}),
        ("list_categories", {}),
        ("list_coupons", {"shop_domain": "shop_books"}),
        ("get_shipping_policy", {"shop_domain": "shop_books", "country": "DE"}),
        ("get_trust", {"shop_domain": "shop_kitchen"}),
        ("resolve_checkout_url", {"offer_id": "no_such"}),
    ]
    token = (b"x-api-token", issue(tmp_path / "tokens").text.encode())
    asked = [changed(plain(version, tool, arguments), token) for version in VERSIONS for tool, arguments in calls]
    answers, taken = answered(dispatcher(tmp_path, *REGISTRY), *asked)
    assert [short for short, _ in answers] == [sdk for _, sdk in answers]
    assert taken == len(asked)
    assert {short.message["result"]["isError"] for short, _ in answers} == {True, False}


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
