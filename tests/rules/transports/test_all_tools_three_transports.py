"""All tools over every transport, and get_shops by each with what it costs (A14)."""

import asyncio
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import httpx2
import orjson
import pytest
from mcp import Client

from service.app import create_app
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from tests.support.callers import issue
from tests.support.catalogues import coupon, shop
from tests.support.generated_calls import GeneratedCalls
from tests.support.sample import SampleService
from tests.support.served import Reply, post, served
from tests.support.transports import STAMP_KEYS, ToolAnswer, mcp_transports, over_mcp, over_rest
from tests.support.wire import Era, call, request
from tests.support.worlds import embedded_world, limited

CALLS: Final = int(os.environ.get("SHOP_DIRECTORY_TRANSPORT_CALLS", "400"))
SEED: Final = int(os.environ.get("SHOP_DIRECTORY_TRANSPORT_SEED", "20261121"))
# A second for ten calls over five transports each, and as much again.
SECONDS: Final = 120 + CALLS // 5
CODES: Final = {
    "ok", "invalid_input", "unknown_category", "page_too_deep", "shop_not_found", "offer_not_found",
    "no_valid_checkout_url",
}  # fmt: skip


@pytest.mark.timeout(SECONDS)
@pytest.mark.rule("I1", "I2", "I3", "I4", "I5", "E2", "C2", "E5.request_id", "I56", "I79.more_reads", "V2")
async def test_whatever_is_asked_every_transport_answers_alike(sample: SampleService) -> None:
    calls = GeneratedCalls(sample.catalogue, SEED).take(CALLS)
    met: Counter[tuple[str, str]] = Counter()
    async with (
        httpx2.AsyncClient(base_url=sample.base, headers={"x-api-token": sample.token}, timeout=30.0) as rest,
        mcp_transports(sample.base, sample.index, sample.token, sample.variables) as transports,
    ):
        for number, (tool, arguments) in enumerate(calls):
            code = await assert_alike(rest, transports, tool, arguments, f"seed {SEED}, call {number}")
            met[tool, code] += 1
    tools = {tool.name for tool in REGISTRY}
    assert len(tools) == 13
    assert {tool for tool, code in met if code == "ok"} == {tool for tool, code in met if code != "ok"} == tools
    assert {code for _, code in met} == CODES
    # For the record of long runs.
    print(f"{CALLS} calls over {1 + len(transports)} transports: {dict(Counter(code for _, code in met.elements()))}")  # noqa: T201


@pytest.mark.rule("A5", "I41", "I20", "I5")
async def test_a_blocked_channel_is_one_of_two_things_that_transports_differ_in(tmp_path: Path) -> None:
    coupons = [
        coupon("EVERYWHERE", "s1"),
        coupon("NOT-BY-REST", "s1", blocked_channels=["rest"]),
        coupon("NOT-BY-MCP", "s1", blocked_channels=["mcp"]),
        coupon("NOT-BY-STDIO", "s1", blocked_channels=["stdio"]),
        coupon("NOWHERE", "s1", blocked_channels=["rest", "mcp", "stdio"]),
    ]
    index = embedded_world(tmp_path, [shop("Lantern Lane", "lantern-lane.internal", id="s1")], coupons=coupons)
    asked = {"shop_domain": "s1"}
    with served(create_app(Settings(data_dir=index, request_timeout=10.0))) as base:
        answers = {"rest": over_rest(base, "list_coupons", asked)}
        async with mcp_transports(base, index) as transports:
            answers |= {name: await over_mcp(client, "list_coupons", asked) for name, client in transports.items()}
    assert {name: _codes(answer) for name, answer in answers.items()} == {
        "rest": {"EVERYWHERE", "NOT-BY-MCP", "NOT-BY-STDIO"},
        "http 2026-07-28": {"EVERYWHERE", "NOT-BY-REST", "NOT-BY-STDIO"},
        "http legacy": {"EVERYWHERE", "NOT-BY-REST", "NOT-BY-STDIO"},
        "stdio 2026-07-28": {"EVERYWHERE", "NOT-BY-REST", "NOT-BY-MCP"},
        "stdio legacy": {"EVERYWHERE", "NOT-BY-REST", "NOT-BY-MCP"},
    }
    for answer in answers.values():
        document = json.loads(answer.text)
        assert (document["total_count"], document["withheld"]) == (
            5,
            {"expired": 0, "verified_rejected": 0, "reserved_test_domain": 0, "policy": 2},
        )


@pytest.mark.rule("A6.ceiling", "I5", "E2")
@pytest.mark.parametrize(("count", "listed_over_mcp"), [(200, True), (201, False)])
async def test_the_other_is_that_mcp_lists_at_most_200_codes_of_all_shops(
    tmp_path: Path, count: int, *, listed_over_mcp: bool
) -> None:
    coupons = [coupon(f"CODE{number}", f"s{number % 2}") for number in range(count)]
    shops = [shop("Lantern Lane", "lantern-lane.internal", id="s0"), shop("Nord", "nord.internal", id="s1")]
    index = embedded_world(tmp_path, shops, coupons=coupons)
    with served(create_app(Settings(data_dir=index, request_timeout=10.0))) as base:
        assert len(_codes(over_rest(base, "list_coupons", {}))) == count
        async with mcp_transports(base, index) as transports:
            of_all = [await over_mcp(client, "list_coupons", {}) for client in transports.values()]
            of_one = [await over_mcp(client, "list_coupons", {"shop_domain": "s1"}) for client in transports.values()]
    assert [len(_codes(answer)) for answer in of_one] == [count // 2] * 4
    if listed_over_mcp:
        assert [len(_codes(answer)) for answer in of_all] == [count] * 4
        return
    problems = [json.loads(answer.text) for answer in of_all]
    assert [(problem["status"], problem["code"]) for problem in problems] == [(400, "too_many_coupons")] * 4
    assert {problem["detail"] for problem in problems} == {
        "There are more usable coupons than this transport can list. Name a shop in shop_domain."
    }


async def assert_alike(
    rest: httpx2.AsyncClient, transports: dict[str, Client], tool: str, arguments: dict[str, Any], at: str
) -> str:
    """Hold each transport's answer against REST's; what it came to."""
    reply = await rest.post(
        f"/tool/{tool}", content=json.dumps(arguments), headers={"content-type": "application/json"}
    )
    document = reply.json()
    failed = reply.status_code != 200
    # The bytes are the canonical ones: nothing is lost in reading them and writing them again.
    assert reply.content == orjson.dumps(document), (at, tool, arguments)
    ids = {reply.headers["x-request-id"]}
    answers = await asyncio.gather(*(over_mcp(client, tool, arguments) for client in transports.values()))
    for name, answer in zip(transports, answers, strict=True):
        assert answer.text == reply.text, (at, name, tool, arguments)
        assert (answer.failed, answer.structured) == (failed, None if failed else document), (at, name, tool, arguments)
        assert answer.stamp == tuple(reply.headers.get(key) for key in STAMP_KEYS), (at, name, tool, arguments)
        ids.add(answer.request_id)
    assert len(ids) == 1 + len(transports)
    if failed:
        assert (document["status"], reply.headers["content-type"]) == (reply.status_code, "application/problem+json")
    return str(document["code"]) if failed else "ok"


def _codes(answer: ToolAnswer) -> set[str]:
    return {found["code"] for found in json.loads(answer.text)["results"]}


GET_SHOPS: Final = "/tool/get_shops"
TEN: Final = QuotaClass(reads=10, suggest=10, reports=0)
# The SDK, and not the fast path, answers a call with a header of the protocol that is unknown here.
NOT_PLAIN: Final = {"mcp_unknown": "1"}


def _asked(count: int) -> dict[str, Any]:
    return {"shop_domains": ["shop_books", *(f"none{number}.example" for number in range(1, count))]}


def _left(reply: Reply) -> int:
    """The units that an answer says are left; the policy is that of the anonymous quota."""
    assert reply.headers["ratelimit-policy"] == '"reads";q=10;w=60'
    header = re.fullmatch(r'"reads";r=(\d+);t=(\d+)', reply.headers["ratelimit"])
    assert header is not None
    assert 1 <= int(header[2]) <= 60
    return int(header[1])


@pytest.mark.rule("A14", "F17", "Q2")
@pytest.mark.parametrize(
    ("tool", "entries", "costs"),
    [
        ("get_shops", "results", {1: 1, 10: 1, 11: 2, 20: 2, 21: 3, 100: 10}),
        ("list_coupons", "shops", {10: 1, 11: 2}),
        ("get_shipping_policy", "shops", {10: 1, 20: 2}),
        ("get_shop_policies", "shops", {10: 1, 20: 2}),
    ],
)
def test_a_call_costs_a_read_for_each_ten_references_begun(
    tmp_path: Path, tool: str, entries: str, costs: dict[int, int]
) -> None:
    for references, cost in costs.items():
        with limited(tmp_path / str(references), quota_anonymous=TEN) as base:
            reply = post(base, f"/tool/{tool}", _asked(references))
            assert (reply.status, reply.json["found"], len(reply.json[entries])) == (200, 1, references)
            assert _left(reply) == 10 - cost


@pytest.mark.rule("A14", "Q2", "R5.credentials", "E1.retry_after")
def test_a_call_that_costs_more_than_is_left_is_refused_and_takes_its_first_read_alone(tmp_path: Path) -> None:
    with limited(tmp_path, quota_anonymous=TEN) as base:
        assert _left(post(base, GET_SHOPS, _asked(55))) == 4
        refused = post(base, GET_SHOPS, _asked(50))
        assert (refused.status, refused.json["code"], _left(refused)) == (429, "quota_exceeded", 3)
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert _left(post(base, GET_SHOPS, _asked(30))) == 0
        assert post(base, GET_SHOPS, _asked(1)).status == 429


@pytest.mark.rule("A14", "Q2", "R5")
def test_invalid_input_costs_one_read_and_is_reported_whatever_is_left(tmp_path: Path) -> None:
    with limited(tmp_path, quota_anonymous=TEN) as base:
        assert _left(post(base, GET_SHOPS, _asked(90))) == 1
        wrong = post(base, GET_SHOPS, {"shop_domains": [*_asked(99)["shop_domains"], " "]})
        error = {"field": "shop_domains.99", "message": "must not be blank"}
        assert (wrong.status, wrong.json["errors"], _left(wrong)) == (400, [error], 0)


@pytest.mark.rule("A14", "Q2", "E2.wait")
@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize("headers", [{}, NOT_PLAIN], ids=["fast path", "sdk"])
def test_over_mcp_the_headers_say_what_is_left_after_the_whole_cost(
    tmp_path: Path, era: Era, headers: dict[str, str]
) -> None:
    with limited(tmp_path, quota_anonymous=TEN) as base:
        many = json.dumps(_asked(55)).encode()
        answered = call(base, era, "get_shops", many, **headers)
        assert (answered.status, answered.json["result"]["structuredContent"]["found"]) == (200, 1)
        assert _left(answered) == 4
        refused = call(base, era, "get_shops", many, **headers)
        problem = json.loads(refused.json["result"]["content"][0]["text"])
        assert (refused.status, refused.json["result"]["isError"], problem["code"]) == (200, True, "quota_exceeded")
        assert _left(refused) == 3
        assert _left(call(base, era, "list_categories", b"{}", **headers)) == 2
        assert _left(request(base, era, "tools/list", b"", **headers)) == 1


@pytest.mark.rule("A14", "Q2", "I78")
def test_the_quota_of_a_token_is_charged_where_there_is_one(tmp_path: Path) -> None:
    token = issue(tmp_path / "tokens.sqlite").text
    with limited(tmp_path, quota_anonymous=TEN) as base:
        assert post(base, GET_SHOPS, _asked(31), x_api_token=token).status == 200
        assert _left(post(base, GET_SHOPS, _asked(1))) == 9
