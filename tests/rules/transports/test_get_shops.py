"""get_shops by every transport: what it answers, what it costs, and what the headers say of that (A14)."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from service.limits.policy import QuotaClass
from tests.support.callers import issue
from tests.support.limited import limited
from tests.support.rpc import Era, call, request
from tests.support.served import Reply, post

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


@pytest.mark.rule("A14", "Q2")
@pytest.mark.parametrize(("references", "cost"), [(1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (100, 10)])
def test_a_call_costs_a_read_for_each_ten_references_begun(tmp_path: Path, references: int, cost: int) -> None:
    with limited(tmp_path, quota_anonymous=TEN) as base:
        reply = post(base, GET_SHOPS, _asked(references))
        assert (reply.status, reply.json["found"], len(reply.json["results"])) == (200, 1, references)
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
