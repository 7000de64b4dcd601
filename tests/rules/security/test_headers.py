"""The headers of every answer for browsers, made by endpoints, middleware or the HTTP server alone."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import pytest

from service.app import create_app
from service.settings.service import Settings
from shop_directory.settings.reading import SettingsError
from tests.support.served import Reply, ask, get, served
from tests.support.wire import exchange, problem
from tests.support.worlds import reference_world

POLICY: Final = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "strict-transport-security": None,
    "x-frame-options": None,
    "server": None,
    "access-control-allow-origin": None,
    "access-control-allow-credentials": None,
    "access-control-allow-private-network": None,
}
# What differs for /suggest, which pages of any origin may load.
SUGGEST: Final = {"cross-origin-resource-policy": "cross-origin", "access-control-allow-origin": "*"}
FRIEND: Final = "https://shop-finder.example"
ANSWERS: Final = (
    ("GET", "/health"),
    ("HEAD", "/health"),
    ("GET", "/ready"),
    ("GET", "/version"),
    ("GET", "/openapi.json"),
    ("GET", "/nothing"),
    ("POST", "/tool/find_shop"),
    ("PUT", "/tool/find_shop"),
    ("GET", "/tool/find_shop"),
    ("POST", "/tool/get_trust"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("OPTIONS", "/mcp"),
    ("GET", "/api/ops/state"),
    ("GET", "/metrics"),
    ("GET", "/metrics/resources"),
)
NOT_HTTP: Final = (
    b"GET /health HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a.example\r\nhost: b.example\r\n\r\n",
    b"GET /health HTTP/1.0\r\nhost: a.example\r\nhost: a.example\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a b\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a.example/path\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: user@a.example\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a.example:8080x\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a.example, b.example\r\nhost:\r\n\r\n",
    b"GET http://a.example/health HTTP/1.1\r\n\r\n",
    b"NONSENSE /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /suggest?q=\xc3\xa9 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"\x00\x01\r\n\r\n",
    b"GET /health HTTP/3.7\r\nhost: a\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT elsewhere.example:443 HTTP/1.1\r\nhost: a\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a\r\nx: a\x00b\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a\r\nx: a\r\n folded\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a\r\nx : a\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n",
    b"GET /health HTTP/1.1\nhost: a\nx: a\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200 + b"\r\n\r\n",
    # A head that never ends: as much is read as shows that it is too long.
    b"GET /health HTTP/1.1\r\nx: " + b"x" * 65_600,
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _serving(tmp_path_factory.mktemp("plain"), Settings(cors_origins=(FRIEND,))) as url:
        yield url


@pytest.fixture(scope="module")
def behind_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _serving(tmp_path_factory.mktemp("tls"), Settings(hsts_seconds=31_536_000)) as url:
        yield url


@pytest.mark.rule("C3", "C1.http", "E5.request_id")
@pytest.mark.parametrize(
    ("method", "path", "own"),
    [
        *((method, path, {}) for method, path in ANSWERS),
        ("GET", "/suggest?q=a", SUGGEST | {"cache-control": "public, max-age=3"}),
        ("GET", "/suggest", SUGGEST),
        ("GET", "/suggest?limit=0", SUGGEST),
    ],
)
def test_every_answer_keeps_browsers_from_misusing_it(base: str, method: str, path: str, own: dict[str, str]) -> None:
    first, second = (ask(base, method, path, headers={"x-request-id": "mine"}) for _ in range(2))
    assert _policy(first) == POLICY | own
    assert len({first.headers["x-request-id"], second.headers["x-request-id"], "mine"}) == 3


@pytest.mark.rule("E1", "E5", "E5.request_id")
@pytest.mark.parametrize("sent", NOT_HTTP)
def test_a_request_that_names_no_one_valid_host_is_refused_like_what_is_not_http(base: str, sent: bytes) -> None:
    (reply,) = exchange(base, sent)
    detail = "The request is not valid HTTP, its method is unknown, or its head is too long. "
    detail += "Percent-encode # and what is not ASCII in the address."
    assert reply.summary == (400, "application/problem+json", problem(400, "invalid_input", detail))
    assert (_policy(reply), len(reply.headers["x-request-id"]), reply.headers["connection"]) == (POLICY, 32, "close")


@pytest.mark.rule("I73")
@pytest.mark.parametrize(
    "host",
    [b"a.example", b"a.example:8080", b"127.0.0.1", b"[::1]:8080", b"", b"a_b.example:", b"XN--BCHER-KVA.EXAMPLE"],
)
def test_any_valid_host_is_served(base: str, host: bytes) -> None:
    (reply,) = exchange(base, b"GET /health HTTP/1.1\r\nhost: %s\r\nconnection: close\r\n\r\n" % host)
    assert reply.status == 200


def test_a_service_behind_tls_sends_hsts(behind_tls: str) -> None:
    expected = POLICY | {"strict-transport-security": "max-age=31536000"}
    assert _policy(get(behind_tls, "/health")) == expected
    assert _policy(get(behind_tls, "/nothing")) == expected
    (refused,) = exchange(behind_tls, b"GET /health HTTP/1.1\r\n\r\n")
    assert _policy(refused) == expected


@pytest.mark.rule("C3")
@pytest.mark.parametrize(
    "origin",
    ["null", "*", "https://evil.example", f"{FRIEND}.evil.example", FRIEND.upper(), f"{FRIEND}:443", FRIEND[:-1]],
)
def test_an_unknown_origin_gets_no_cors_header(base: str, origin: str) -> None:
    asking = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "x-api-token",
    }
    for method, path in (("OPTIONS", "/tool/find_shop"), ("OPTIONS", "/mcp"), ("GET", "/health")):
        reply = ask(base, method, path, headers=asking)
        assert [name for name in reply.headers if name.startswith("access-control-")] == []
        assert reply.headers["vary"] == "origin"
        assert (reply.status, reply.json.get("code")) == (
            (200, None) if method == "GET" else (403, "origin_not_allowed")
        )
    suggest = ask(base, "OPTIONS", "/suggest?q=a", headers=asking | {"access-control-request-method": "GET"})
    allowed = [suggest.headers[f"access-control-allow-{name}"] for name in ("origin", "methods")]
    assert (suggest.status, allowed) == (204, ["*", "GET, HEAD"])


@pytest.mark.rule("C3")
def test_credentials_are_allowed_to_no_origin(base: str) -> None:
    asking = {
        "origin": FRIEND,
        "access-control-request-method": "POST",
        "access-control-request-private-network": "true",
    }
    for path in ("/tool/find_shop", "/suggest?q=a", "/mcp", "/health"):
        for method in ("OPTIONS", "GET"):
            headers = ask(base, method, path, headers=asking).headers
            assert headers["access-control-allow-origin"] == ("*" if path.startswith("/suggest") else FRIEND)
            assert set(headers) & {"access-control-allow-credentials", "access-control-allow-private-network"} == set()


@pytest.mark.rule("C3")
@pytest.mark.parametrize("name", ["CORS_ORIGINS", "MCP_ALLOWED_ORIGINS"])
@pytest.mark.parametrize(
    "origin", ["*", "null", "https://a.example/", "a.example", "https://*.a.example", "https://a b"]
)
def test_what_no_browser_sends_as_an_origin_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, origin: str
) -> None:
    monkeypatch.setenv(f"SHOP_DIRECTORY_{name}", f"https://b.example,{origin}")
    with pytest.raises(SettingsError, match=f"SHOP_DIRECTORY_{name} is wrong"):
        Settings.load()


@pytest.mark.rule("C3", "I3")
def test_only_mcp_takes_an_origin_with_any_port() -> None:
    assert Settings.load(mcp_allowed_origins="http://a.example:*").mcp_allowed_origins == ("http://a.example:*",)
    with pytest.raises(SettingsError, match="--cors-origins is wrong"):
        Settings.load(cors_origins="http://a.example:*")


@pytest.mark.rule("I3", "E1.transport")
@pytest.mark.parametrize(
    "origins", [["https://evil.example"], ["http://localhost", "https://evil.example"], [""], ["null"]]
)
def test_mcp_refuses_a_page_of_another_origin_however_it_says_so(base: str, origins: list[str]) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    lines = "".join(f"origin: {origin}\r\n" for origin in origins)
    head = (
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
        f"accept: application/json\r\n{lines}content-length: {len(body)}\r\n\r\n"
    )
    (reply,) = exchange(base, head.encode() + body)
    message = (
        "Pages of this origin may not call the server. The operator allows an origin by "
        "SHOP_DIRECTORY_MCP_ALLOWED_ORIGINS."
    )
    error = {"code": -32600, "message": message}
    assert (reply.status, json.loads(reply.body)) == (403, {"jsonrpc": "2.0", "id": None, "error": error})


@pytest.mark.rule("I3", "E1.transport")
@pytest.mark.parametrize(
    "host",
    [
        "rebound.example",
        "localhost.rebound.example",
        "localhost.",
        "127.0.0.1.rebound.example:8080",
        "127.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "",
    ],
)
def test_mcp_answers_to_no_name_that_it_does_not_go_by(base: str, host: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n"
        f"accept: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    assert [reply.status for reply in exchange(base, head.encode() + body)] == [421]


@pytest.mark.rule("R5", "E1")
@pytest.mark.parametrize("name", [b"x-api-token", b"x-ops-key"])
@pytest.mark.parametrize(
    "line",
    [b"GET /suggest?q=boo", b"POST /tool/find_shop", b"POST /mcp", b"GET /metrics", b"GET /health", b"GET /nowhere"],
)
def test_a_repeated_token_or_key_is_refused_before_anything_else(base: str, line: bytes, name: bytes) -> None:
    # Whatever they say: a proxy may have checked either.
    twice = b"%b: a\r\n%b: a\r\n" % (name, name.upper())
    (reply,) = exchange(base, line + b" HTTP/1.1\r\nhost: localhost\r\n" + twice + b"content-length: 2\r\n\r\n{}")
    detail = "The header x-api-token or x-ops-key is stated twice. Send each of them once."
    assert reply.summary == (400, "application/problem+json", problem(400, "invalid_input", detail))
    assert (_policy(reply), reply.headers["connection"]) == (POLICY, "close")


def test_a_token_and_a_key_may_be_sent_together(base: str) -> None:
    both = b"x-api-token: a\r\nx-ops-key: a\r\nconnection: close\r\n\r\n"
    assert [reply.status for reply in exchange(base, b"GET /health HTTP/1.1\r\nhost: a\r\n" + both)] == [200]


def _serving(folder: Path, settings: Settings) -> AbstractContextManager[str]:
    return served(create_app(settings, search=reference_world(folder)), hsts_seconds=settings.hsts_seconds)


def _policy(reply: Reply) -> dict[str, str | None]:
    return {name: reply.headers.get(name) for name in POLICY}
