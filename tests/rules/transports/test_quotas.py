"""Tokens and quotas for callers: five tools need a token, each counted answer shows its quota (I80, Q1 to Q4)."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from mcp.shared.exceptions import MCPError

from service.app import create_app
from service.auth.secrets import new_token_text
from service.limits.policy import NamedNetwork, QuotaClass
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from tests.rules.operations.test_metrics import samples_of
from tests.support.callers import Issued, issue, revoke
from tests.support.catalogues import coupon, shop
from tests.support.served import Reply, ask, get, post, served
from tests.support.transports import MODES, stdio_transport
from tests.support.wire import Era, call, problem, request
from tests.support.worlds import MORE, embedded_world, limited

LIST: Final = "/tool/list_categories"
REPORT: Final = {"shop_domain": "shop_books", "code": "SPRING10", "reason": "invalid"}


@pytest.mark.rule("Q2", "I78")
def test_every_counted_answer_has_the_quota_and_the_remaining_units(tmp_path: Path) -> None:
    token = issue(tmp_path / "tokens.sqlite").text
    with limited(tmp_path, quota_anonymous=QuotaClass(reads=100, suggest=100, reports=0)) as base:
        for taken, reply in enumerate(_reads(base), start=1):
            _assert_quota(reply, "reads", 100, 60, 100 - taken)
        tag = get(base, "/suggest?q=").headers["etag"]
        suggested = [
            get(base, "/suggest?q=a"),
            get(base, "/suggest?limit=0"),
            get(base, "/suggest?q=", if_none_match=tag),
        ]
        assert [reply.status for reply in suggested] == [200, 400, 304]
        for remaining, reply in zip((98, 97, 96), suggested, strict=True):
            _assert_quota(reply, "suggest", 100, 60, remaining)
        _assert_quota(post(base, LIST, {}, x_api_token=token), "reads", 5, 60, 4)
        _assert_quota(get(base, "/suggest?q=", x_api_token=token), "suggest", 6, 60, 5)
        _assert_quota(post(base, "/tool/report_code", REPORT, x_api_token=token), "reports", 2, 3600, 1)
        for uncounted in (get(base, "/health"), get(base, "/ready"), get(base, "/nothing"), get(base, LIST)):
            assert "ratelimit" not in uncounted.headers


@pytest.mark.rule("Q2", "E1.retry_after", "E1", "R5.credentials")
def test_one_call_too_many_says_how_long_to_wait(tmp_path: Path) -> None:
    with limited(tmp_path) as base:
        for path in ("/suggest?q=", LIST):
            replies = [get(base, path) if "?" in path else post(base, path, {}) for _ in range(4)]
            assert [reply.status for reply in replies] == [200, 200, 429, 429]
            for refused in replies[2:]:
                wait = refused.headers["retry-after"]
                assert 1 <= int(wait) <= 60
                assert refused.summary == (429, "application/problem+json", _exceeded(wait))
                _assert_quota(refused, "suggest" if "?" in path else "reads", 2, 60, 0)
                assert (refused.headers["cache-control"], "x-generation" in refused.headers) == ("no-store", False)


@pytest.mark.rule("R5.credentials", "R5", "E1")
def test_a_refusal_comes_between_401_and_the_look_at_the_body(tmp_path: Path) -> None:
    with limited(tmp_path) as base:
        assert [post(base, LIST, {}).status for _ in range(3)] == [200, 200, 429]
        order = [
            ("POST", "/tool/nothing", "text/plain", b"x", 404),
            ("GET", "/tool/find_shop", "text/plain", b"x", 405),
            ("POST", "/tool/get_trust", "text/plain", b"x", 401),
            ("POST", "/tool/find_shop", "text/plain", b"x", 429),
            ("POST", "/tool/find_shop", "application/json", b"x" * 70_000, 429),
            ("POST", "/tool/find_shop", "application/json", b"x", 429),
            ("POST", "/tool/get_shop", "application/json", b'{"shop_domain":"unknown.example"}', 429),
        ]
        for method, path, content_type, body, status in order:
            assert (path, ask(base, method, path, body, {"content-type": content_type}).status) == (path, status)


@pytest.mark.rule("Q2", "R5.credentials", "Q1")
def test_refused_tokens_use_up_the_quota_of_their_address_and_stay_401(tmp_path: Path) -> None:
    with limited(tmp_path) as base:
        asked = {"shop_domain": "shop_books"}
        assert [post(base, "/tool/get_trust", asked, x_api_token="x").status for _ in range(4)] == [401] * 4
        assert post(base, LIST, {}).status == 429
        assert post(base, LIST, {}, x_api_token=new_token_text()).status == 429
        token = issue(tmp_path / "tokens.sqlite").text
        assert post(base, "/tool/get_trust", asked, x_api_token=token).status == 200
        assert get(base, "/suggest?q=").status == 200


@pytest.mark.rule("I78", "Q2")
def test_a_token_has_a_larger_quota_of_its_own_by_its_class(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.sqlite"
    one, other, partner = issue(tokens), issue(tokens), issue(tokens, quota_class="partner")
    classes = {"default": MORE, "partner": QuotaClass(reads=7, suggest=1, reports=1)}
    with limited(tmp_path, quota_classes=classes) as base:
        assert [post(base, LIST, {}, x_api_token=one.text).status for _ in range(6)] == [200] * 5 + [429]
        _assert_quota(post(base, LIST, {}, x_api_token=other.text), "reads", 5, 60, 4)
        _assert_quota(post(base, LIST, {}, x_api_token=partner.text), "reads", 7, 60, 6)
        reports = [post(base, "/tool/report_code", REPORT, x_api_token=other.text) for _ in range(3)]
        assert [reply.status for reply in reports] == [200, 200, 429]
        assert 1 <= int(reports[-1].headers["retry-after"]) <= 3600
        _assert_quota(post(base, LIST, {}), "reads", 2, 60, 1)


@pytest.mark.rule("E2.credentials", "E2.wait", "Q2", "R5.credentials")
@pytest.mark.parametrize("era", Era)
def test_over_mcp_other_methods_count_as_reads_and_are_refused_as_429(tmp_path: Path, era: Era) -> None:
    with limited(tmp_path) as base:
        assert [request(base, era, "tools/list").status for _ in range(2)] == [200, 200]
        refused = request(base, era, "tools/list")
        assert ask(base, "POST", "/mcp", b"{", {"content-type": "text/plain"}).status == 400
        assert call(base, era, "get_trust", b"{}").status == 401
        assert post(base, LIST, {}).status == 429
    exceeded = _exceeded(refused.headers["retry-after"])
    error = {"code": -32001, "message": exceeded["detail"], "data": exceeded}
    assert refused.summary == (429, "application/json", {"jsonrpc": "2.0", "id": 7, "error": error})
    _assert_quota(refused, "reads", 2, 60, 0)


def _reads(base: str) -> list[Reply]:
    replies = [
        post(base, LIST, {}),
        post(base, "/tool/get_shop", {"shop_domain": "unknown.example"}),
        ask(base, "POST", LIST, b"", {"content-type": "text/plain"}),
        *(call(base, era, "list_categories", b"{}") for era in Era),
        *(request(base, era, "tools/list") for era in Era),
    ]
    assert [reply.status for reply in replies] == [200, 404, 415, 200, 200, 200, 200]
    return replies


def _assert_quota(reply: Reply, bucket: str, limit: int, window: int, remaining: int) -> None:
    assert reply.headers["ratelimit-policy"] == f'"{bucket}";q={limit};w={window}'
    header = re.fullmatch(r'"(\w+)";r=(\d+);t=(\d+)', reply.headers["ratelimit"])
    assert header is not None
    assert (header[1], int(header[2])) == (bucket, remaining)
    assert 1 <= int(header[3]) <= window


def _exceeded(seconds: str) -> dict[str, Any]:
    return problem(429, "quota_exceeded", f"This caller's quota is used up. Try again in {seconds} seconds.")


@pytest.mark.rule("F13", "Q3")
def test_callers_of_a_named_network_are_counted_together_and_shown_by_its_name(tmp_path: Path) -> None:
    given = {
        "trusted_proxies": ("127.0.0.1",),
        "quota_classes": {"default": MORE, "shared": QuotaClass(reads=4, suggest=3, reports=0)},
        "quota_networks": {"hosted": NamedNetwork(("192.0.2.0/24", "2001:db8::/32"), "shared")},
    }
    addresses = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.2"]
    with limited(tmp_path, **given) as base:
        reads = [post(base, LIST, {}, x_forwarded_for=address) for address in addresses]
        suggested = [get(base, "/suggest?q=", x_forwarded_for=address) for address in addresses]
        over_mcp = call(base, Era.STATELESS, "list_categories", b"{}", x_forwarded_for="192.0.2.9")
        other = post(base, LIST, {}, x_forwarded_for="192.0.3.1")
        samples = samples_of(get(base, "/metrics"))
    for taken, reply in enumerate(reads, start=1):
        _assert_quota(reply, "reads", 4, 60, 4 - taken)
    assert [reply.status for reply in suggested] == [200, 200, 200, 429]
    assert (over_mcp.json["result"]["isError"], other.status) == (True, 200)
    shown = {labels: value for (name, labels), value in samples.items() if name.startswith("shopdir_network_")}
    assert shown == {
        (("bucket", bucket), ("decision", decision), ("network", "hosted")): count
        for bucket, decision, count in [
            ("reads", "allowed", 4.0),
            ("reads", "refused", 1.0),
            ("suggest", "allowed", 3.0),
            ("suggest", "refused", 1.0),
        ]
    }


@pytest.mark.rule("Q3")
def test_without_a_configured_proxy_no_caller_chooses_an_address(tmp_path: Path) -> None:
    with limited(tmp_path) as base:
        answers = [post(base, LIST, {}, x_forwarded_for=f"192.0.2.{n}", forwarded=f"for=192.0.2.{n}") for n in range(3)]
    assert [reply.status for reply in answers] == [200, 200, 429]


@pytest.mark.rule("A5", "Q3", "I41")
@pytest.mark.parametrize(
    ("trusted", "country", "withheld"),
    [(("127.0.0.1",), "DE", 1), (("127.0.0.1",), "FR", 0), (("127.0.0.1",), "", 0), (("192.0.2.1",), "DE", 0)],
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
@pytest.mark.rule("Q2")
def test_two_services_on_one_redis_count_together(tmp_path: Path, redis_url: str, redis_prefix: str) -> None:
    shared = {"limiter": "redis", "redis_url": redis_url, "redis_prefix": redis_prefix}
    with limited(tmp_path / "one", **shared) as one, limited(tmp_path / "two", **shared) as two:
        assert [post(base, LIST, {}).status for base in (one, two, one, two)] == [200, 200, 429, 429]


NEED_A_TOKEN: Final = ("get_trust", "report_code", "report_issue", "monetize_offer", "resolve_conflict")
CHALLENGE: Final = 'ApiKey realm="shop-directory", header="x-api-token"'
HOW: Final = "Send it in the header x-api-token (over stdio: in the variable SHOP_DIRECTORY_API_TOKEN)."
REQUIRED: Final = problem(401, "token_required", f"This tool needs an API token, which the operator issues. {HOW}")
INVALID: Final = problem(401, "token_invalid", f"This token is unknown, revoked or expired. {HOW}")
TRUST: Final = {"shop_domain": "shop_books"}


@dataclass(frozen=True, slots=True)
class Guarded:
    """A service without an index, where its tokens are, and a token's text for each way of not counting."""

    base: str
    tokens: Path
    texts: dict[str, str | None]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    tokens = folder / "tokens.sqlite"
    revoked = issue(tokens)
    revoke(tokens, revoked)
    texts = {
        "none": None,
        "malformed": "letmein",
        "unknown": new_token_text(),
        "expired": issue(tokens, expires_at=int(time.time()) - 1).text,
        "revoked": revoked.text,
    }
    # A tool that ran would say that there is no index.
    with served(create_app(Settings(token_file=tokens, data_dir=folder / "no-index"))) as base:
        yield Guarded(base, tokens, texts)


@pytest.mark.rule("I80", "I83", "R5.credentials", "E1.credentials", "E2.credentials", "I1")
@pytest.mark.parametrize("kind", ["none", "malformed", "unknown", "expired", "revoked"])
def test_a_call_without_a_valid_token_is_refused_before_anything_of_it_is_read(guarded: Guarded, kind: str) -> None:
    refusal, text = REQUIRED if kind == "none" else INVALID, guarded.texts[kind]
    headers = {} if text is None else {"x_api_token": text}
    error = {"code": -32001, "message": refusal["detail"], "data": refusal}
    over_mcp = (401, "application/json", {"jsonrpc": "2.0", "id": 7, "error": error})
    for tool in NEED_A_TOKEN:
        replies = [
            post(guarded.base, f"/tool/{tool}", b"{}", **headers),
            post(guarded.base, f"/tool/{tool}", b"\xff" * 70_000, content_type="text/plain", **headers),
            *(call(guarded.base, era, tool, b'{"colour":[]}', **headers) for era in Era),
        ]
        assert [reply.summary for reply in replies[:2]] == [(401, "application/problem+json", refusal)] * 2
        assert [reply.summary for reply in replies[2:]] == [over_mcp] * 2
        assert {reply.headers["www-authenticate"] for reply in replies} == {CHALLENGE}
        assert {reply.headers["cache-control"] for reply in replies} == {"no-store"}


@pytest.mark.rule("I80", "E2.credentials", "Q3", "I4")
@pytest.mark.parametrize("kind", ["none", "unknown", "expired", "revoked"])
@pytest.mark.parametrize("mode", MODES)
async def test_stdio_refuses_by_the_token_of_its_environment(
    guarded: Guarded, tmp_path: Path, mode: str, kind: str
) -> None:
    refusal = REQUIRED if kind == "none" else INVALID
    variables = {
        "SHOP_DIRECTORY_TOKEN_FILE": str(guarded.tokens),
        "SHOP_DIRECTORY_API_TOKEN": guarded.texts[kind] or "",
    }
    async with stdio_transport(tmp_path / "no-index", mode, variables) as client:
        assert len((await client.list_tools()).tools) == len(REGISTRY)
        for tool in NEED_A_TOKEN:
            with pytest.raises(MCPError) as raised:
                await client.call_tool(tool, {"colour": []})
            error = raised.value.error
            assert (error.code, error.message, error.data) == (-32001, refusal["detail"], refusal)
        open_to_all = await client.call_tool("list_categories", {})
    assert (open_to_all.is_error, open_to_all.content[0].type) == (True, "text")


@pytest.mark.rule("Q1", "I80")
def test_a_revoked_token_is_refused_within_two_seconds_and_a_new_one_counts_immediately(tmp_path: Path) -> None:
    settings = Settings(data_dir=embedded_world(tmp_path), token_file=tmp_path / "tokens.sqlite", request_timeout=10.0)
    with served(create_app(settings)) as base:
        first, other = issue(settings.token_file), issue(settings.token_file)
        assert [_trust(base, one).status for one in (first, other)] == [200, 200]
        revoke(settings.token_file, first)
        revoked_at = time.monotonic()
        while _trust(base, first).status == 200:
            assert time.monotonic() - revoked_at < 2.0
            # The bound is on the service's memory: there is nothing to be woken by.
            time.sleep(0.02)
        assert time.monotonic() - revoked_at < 2.0
        assert _trust(base, first).summary == (401, "application/problem+json", INVALID)
        for era in Era:
            assert call(base, era, "get_trust", json.dumps(TRUST).encode(), x_api_token=first.text).status == 401
        assert [_trust(base, one).status for one in (other, issue(settings.token_file))] == [200, 200]


def _trust(base: str, issued: Issued) -> Reply:
    return post(base, "/tool/get_trust", TRUST, x_api_token=issued.text)
