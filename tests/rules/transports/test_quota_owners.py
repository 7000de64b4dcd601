"""Whose quota a call counts in, behind proxies and on a shared limiter, and what its loss leaves (Q3, Q4)."""

from pathlib import Path
from typing import Final

import pytest

from service.app import create_app
from service.settings.service import Settings
from tests.support.callers import issue
from tests.support.catalogues import coupon, shop
from tests.support.limited import limited
from tests.support.real.redis import RedisServer
from tests.support.rpc import Era, call
from tests.support.served import get, post, served
from tests.support.worlds import embedded_world

LIST: Final = "/tool/list_categories"
REPORT: Final = {"shop_domain": "shop_books", "code": "SPRING10", "reason": "invalid"}


@pytest.mark.rule("Q2", "Q3")
def test_behind_a_configured_proxy_an_ipv6_64_is_one_caller_and_an_ipv4_address_another(tmp_path: Path) -> None:
    with limited(tmp_path, trusted_proxies=("127.0.0.1",)) as base:
        addresses = [
            ("2001:db8:0:1::1", 200),
            ("2001:db8:0:1:ffff::2", 200),
            ("2001:db8:0:1::3", 429),
            ("2001:db8:0:2::1", 200),
            ("192.0.2.1", 200),
            ("::ffff:192.0.2.1", 200),
            ("192.0.2.1", 429),
            ("192.0.2.2", 200),
            ("198.51.100.7, 192.0.2.1", 429),
        ]
        for address, status in addresses:
            assert (address, post(base, LIST, {}, x_forwarded_for=address).status) == (address, status)


@pytest.mark.rule("Q3")
def test_without_a_configured_proxy_no_caller_chooses_an_address(tmp_path: Path) -> None:
    with limited(tmp_path) as base:
        answers = [post(base, LIST, {}, x_forwarded_for=f"192.0.2.{n}", forwarded=f"for=192.0.2.{n}") for n in range(3)]
    assert [reply.status for reply in answers] == [200, 200, 429]


@pytest.mark.rule("A5", "Q3", "I41")
@pytest.mark.parametrize(
    ("trusted", "country", "withheld"),
    [
        (("127.0.0.1",), "DE", 1),
        (("127.0.0.1",), "de", 1),
        (("127.0.0.1",), "FR", 0),
        (("127.0.0.1",), "UK", 0),
        (("127.0.0.1",), "", 0),
        (("192.0.2.1",), "DE", 0),
        ((), "DE", 0),
    ],
)
def test_a_blocked_country_blocks_only_when_the_trusted_edge_says_it(
    tmp_path: Path, trusted: tuple[str, ...], country: str, withheld: int
) -> None:
    coupons = [coupon("ALWAYS", "s1"), coupon("NOT-IN-DE", "s1", blocked_countries=["DE"])]
    world = embedded_world(tmp_path, [shop("Lantern Lane", "lantern-lane.internal", id="s1")], coupons=coupons)
    settings = Settings(data_dir=world, trusted_proxies=trusted, country_header="X-Edge-Country", request_timeout=10.0)
    headers = {"x_edge_country": country} if country else {}
    with served(create_app(settings)) as base:
        answers = [post(base, "/tool/list_coupons", {"shop_domain": "s1"}, **headers).json]
        for era in Era:
            reply = call(base, era, "list_coupons", b'{"shop_domain":"s1"}', **headers)
            answers.append(reply.json["result"]["structuredContent"])
    for answer in answers:
        assert (answer["total_count"], answer["withheld"]["policy"], len(answer["results"])) == (
            2,
            withheld,
            2 - withheld,
        )


@pytest.mark.redis
@pytest.mark.rule("Q4", "Q2")
def test_with_redis_away_reads_go_on_and_reports_are_not_acknowledged(redis_program: str, tmp_path: Path) -> None:
    token = issue(tmp_path / "tokens.sqlite").text
    with RedisServer(redis_program, tmp_path) as redis, limited(tmp_path, limiter="redis", redis_url=redis.url) as base:
        assert [post(base, LIST, {}).status for _ in range(3)] == [200, 200, 429]
        assert post(base, "/tool/report_code", REPORT, x_api_token=token).status == 200
        redis.kill()
        # The local limiter starts with whole quotas, and enforces them.
        assert [post(base, LIST, {}).status for _ in range(3)] == [200, 200, 429]
        assert get(base, "/suggest?q=").status == 200
        refused = post(base, "/tool/report_code", REPORT, x_api_token=token)
        assert (refused.status, refused.json["code"]) == (503, "backend_unavailable")
        assert refused.json["detail"] == "Reports can't be taken just now; try again in 1 second."
        assert refused.headers["retry-after"] == "1"
        assert post(base, "/tool/get_trust", {"shop_domain": "s"}, x_api_token=token).status == 200


@pytest.mark.redis
@pytest.mark.rule("Q2")
def test_two_services_on_one_redis_count_together(tmp_path: Path, redis_url: str, redis_prefix: str) -> None:
    shared = {"limiter": "redis", "redis_url": redis_url, "redis_prefix": redis_prefix}
    with limited(tmp_path / "one", **shared) as one, limited(tmp_path / "two", **shared) as two:
        assert [post(base, LIST, {}).status for base in (one, two, one, two)] == [200, 200, 429, 429]
