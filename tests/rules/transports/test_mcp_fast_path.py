"""A plain call of a tool, answered without the SDK's session, gets the JSON that the SDK would have answered."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.limits.policy import QuotaClass
from service.tools.registry import REGISTRY
from service.tools.tool import ToolContext
from tests.support.both_ways import MODERN, OLDER, BothWays
from tests.support.callers import issue
from tests.support.echoing import ECHO, VERSIONS, Asked, Echo, EchoRequest, answered, changed, dispatcher, plain

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


@pytest.mark.rule("E5", "E2")
@pytest.mark.parametrize("version", [MODERN, OLDER])
def test_an_unforeseen_fault_outside_the_tool_is_the_protocols_own_error_on_both_paths(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> object:
        raise RuntimeError("node-7.internal")

    over = dispatcher(tmp_path, ECHO)
    monkeypatch.setattr("service.calls.dispatch.to_wire", broken)
    answers, taken = answered(over, plain(version, "echo", {"said": "61"}, id="é"))
    ((short, sdk),) = answers
    assert (short, taken) == (sdk, 1)
    assert short.message["error"]["code"] == -32603


class Waiting:
    """A tool that never answers by itself."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.stopped = 0
        self.tool = replace(ECHO, run=self._wait)

    async def _wait(self, _: EchoRequest, __: ToolContext) -> Echo:
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        raise AssertionError("the deadline should have passed")


@pytest.mark.rule("E3", "E2")
@pytest.mark.parametrize("version", [MODERN, OLDER])
def test_a_call_past_its_deadline_is_the_same_on_both_paths(tmp_path: Path, version: str) -> None:
    waiting = Waiting()
    over = dispatcher(tmp_path, waiting.tool, timeout=0.05)
    ((short, sdk),), taken = answered(over, plain(version, "echo", {"said": "61"}))
    assert (short, taken, waiting.stopped) == (sdk, 1, 2)
    assert b"backend_unavailable" in (short.text or b"")


@pytest.mark.parametrize("version", [MODERN, OLDER])
async def test_a_tool_stops_when_its_caller_leaves(tmp_path: Path, version: str) -> None:
    waiting = Waiting()
    ways = BothWays(dispatcher(tmp_path, waiting.tool))
    call = plain(version, "echo", {"said": "61"})
    request, asking = ways.begin(call.headers, call.body)
    await waiting.begun.wait()
    request.caller_left()
    assert await asking == []
    assert (waiting.stopped, request.outcome, ways.taken) == (1, "left", 1)
