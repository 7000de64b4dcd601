"""/mcp/oauth: the endpoint of /mcp for hosts that sign in by OAuth, with a real authorization server (F14, F15)."""

import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from service.app import create_app
from service.limits.policy import QuotaClass
from service.reports.opening import QueueSettings
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from tests.rules.auth.authorization_server import SUBJECT, AuthorizationServer, signing_key
from tests.rules.operations.test_metrics import samples_of
from tests.support.callers import issue, stored_in
from tests.support.real.process import free_ports
from tests.support.served import Reply, ask, get, post, served, settings_in
from tests.support.transports import MODES
from tests.support.wire import Era, problem, request

OAUTH: Final = "/mcp/oauth"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource/mcp/oauth"
PAGE: Final = "https://host.example"
CALLBACK: Final = "http://127.0.0.1:9/callback"
QUOTAS: Final = {
    "default": QuotaClass(reads=1_000, suggest=1_000, reports=100),
    "partner": QuotaClass(reads=50, suggest=50, reports=3),
}
SOURCE_KEY: Final = "a key that only the operator has"
REPORT: Final = {"shop_domain": "shop_books", "code": "SPRING10", "reason": "invalid"}
NEEDED: Final = (
    "This endpoint needs an access token of the authorization server that the metadata in the header "
    "www-authenticate name, for this resource. Send it as authorization: Bearer."
)


@dataclass(frozen=True, slots=True)
class Service:
    base: str
    issuer: AuthorizationServer
    folder: Path

    def ask(
        self, method: str, params: bytes = b"", *, era: Era = Era.STATELESS, name: str | None = None, **headers: str
    ) -> Reply:
        """A request to /mcp/oauth; `name` is that of the tool that it calls."""
        return request(self.base, era, method, params, name=name, path=OAUTH, **headers)

    def call(
        self, tool: str, arguments: dict[str, Any], token: str | None = None, *, era: Era = Era.STATELESS
    ) -> Reply:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        params = json.dumps({"name": tool, "arguments": arguments}).encode()[1:-1]
        return self.ask("tools/call", params, era=era, name=tool, **headers)

    def reports(self) -> list[Any]:
        return stored_in(QueueSettings("embedded", self.folder / "reports.sqlite"))[0]


@pytest.fixture(scope="module")
def service(index_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("oauth")
    (port,) = free_ports(1)
    base = f"http://127.0.0.1:{port}"
    issuer = AuthorizationServer(folder, f"{base}{OAUTH}")
    with issuer, served(create_app(_settings(index_directory, folder, base, issuer)), port=port):
        yield Service(base, issuer, folder)


def _settings(index: Path, folder: Path, base: str, issuer: AuthorizationServer) -> Settings:
    return settings_in(
        folder,
        data_dir=index,
        public_url=base,
        oauth_issuer=issuer.url,
        oauth_jwks_uri=issuer.keys_url,
        oauth_source_key=SOURCE_KEY,
        oauth_scope_classes={"shops:partner": "partner"},
        quota_classes=QUOTAS,
        cors_origins=(PAGE,),
        mcp_allowed_origins=(PAGE,),
    )


@dataclass
class Browser(TokenStorage):
    """Somebody who signs in: keeps what the client stores, and follows the authorization server's redirects."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    returned: dict[str, str] = field(default_factory=dict)

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def visit(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            for _ in range(10):
                reply = await http.get(url)
                assert reply.is_redirect, reply.text
                url = urljoin(url, reply.headers["location"])
                if url.startswith(CALLBACK):
                    break
        self.returned = dict(parse_qsl(urlsplit(url).query))
        assert "code" in self.returned, url

    async def result(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.returned["code"], state=self.returned["state"], iss=self.returned.get("iss")
        )


@asynccontextmanager
async def signed_in(base: str, mode: str, browser: Browser) -> AsyncIterator[Client]:
    metadata = OAuthClientMetadata(client_name="test", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
    url = f"{base}{OAUTH}"
    provider = OAuthClientProvider(url, metadata, browser, browser.visit, browser.result)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=30.0) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.rule("F14")
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_discovers_the_issuer_signs_in_and_calls(service: Service, mode: str) -> None:
    browser = Browser()
    async with signed_in(service.base, mode, browser) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        trust = await client.call_tool("get_trust", {"shop_domain": "shop_books"})
        listed = await client.call_tool("list_categories", {})
    assert tools == [tool.name for tool in REGISTRY]
    assert (trust.is_error, listed.is_error) == (False, False)
    assert browser.tokens is not None
    assert (browser.tokens.scope or "").split() == ["shops:partner"]


@pytest.mark.rule("F14", "E2")
@pytest.mark.parametrize("era", Era)
def test_every_answer_is_that_of_mcp_with_an_api_token(service: Service, era: Era) -> None:
    api_token, token = issue(service.folder / "tokens.sqlite").text, service.issuer.token(sub="reader")
    asked: list[tuple[str, bytes, str | None]] = [
        ("tools/list", b"", None),
        ("resources/list", b"", None),
        *(
            ("tools/call", json.dumps({"name": tool, "arguments": arguments}).encode()[1:-1], tool)
            for tool, arguments in [
                ("find_shop", {"query": "books"}),
                ("get_shop", {"shop_domain": "shop_review"}),
                ("get_trust", {"shop_domain": "shop_books"}),
                ("resolve_conflict", {"from_shop_id": "shop_books"}),
                ("list_coupons", {"shop_domain": 5}),
                ("nothing", {}),
            ]
        ),
    ]
    for method, params, name in asked:
        own = request(service.base, era, method, params, name=name, path=OAUTH, authorization=f"Bearer {token}")
        other = request(service.base, era, method, params, name=name, x_api_token=api_token)
        assert (own.status, _without_id(own)) == (other.status, _without_id(other))


def _without_id(reply: Reply) -> str:
    return reply.body.decode().replace(reply.headers["x-request-id"], "")


@pytest.mark.rule("F14")
@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize("method", ["initialize", "server/discover", "tools/list", "tools/call"])
def test_without_a_valid_token_every_message_is_refused_and_told_where_to_get_one(
    service: Service, era: Era, method: str
) -> None:
    wrong: dict[str | None, str] = {
        None: "token_required",
        "Basic eDp5": "token_required",
        "Bearer": "token_required",
        "Bearer x": "token_invalid",
        f"Bearer {service.issuer.token(exp=5)}": "token_invalid",
        f"Bearer {service.issuer.token(aud=f'{service.base}/mcp')}": "token_invalid",
        f"Bearer {issue(service.folder / 'tokens.sqlite').text}": "token_invalid",
    }
    params = b'"name":"list_categories","arguments":{}' if method == "tools/call" else b""
    for value, code in wrong.items():
        headers = {} if value is None else {"authorization": value}
        name = "list_categories" if params else None
        reply = service.ask(method, params, era=era, name=name, **headers)
        error = {"code": -32001, "message": NEEDED, "data": problem(401, code, NEEDED)}
        assert reply.summary == (401, "application/json", {"jsonrpc": "2.0", "id": 7, "error": error})
        cause = 'error="invalid_token", ' if code == "token_invalid" else ""
        metadata = f'resource_metadata="{service.base}{WELL_KNOWN}"'
        assert reply.headers["www-authenticate"] == f"Bearer {cause}{metadata}"


@pytest.mark.rule("F14")
def test_the_metadata_names_the_resource_and_its_issuer(service: Service) -> None:
    document = {
        "resource": f"{service.base}{OAUTH}",
        "authorization_servers": [service.issuer.url],
        "bearer_methods_supported": ["header"],
        "resource_name": "Shop Directory",
        "scopes_supported": ["shops:partner"],
    }
    assert get(service.base, WELL_KNOWN).summary == (200, "application/json", document)


@pytest.mark.rule("F14", "C3")
def test_a_page_of_an_allowed_origin_may_send_a_token_and_read_where_to_get_one(service: Service) -> None:
    asked = {"origin": PAGE, "access-control-request-method": "POST"}
    preflight = ask(service.base, "OPTIONS", OAUTH, headers=asked)
    refused = service.ask("tools/list", origin=PAGE)
    assert (preflight.status, refused.status) == (204, 401)
    assert "authorization" in preflight.headers["access-control-allow-headers"].split(", ")
    assert "www-authenticate" in refused.headers["access-control-expose-headers"].split(", ")


@pytest.mark.rule("F15", "E1.credentials")
def test_a_refusal_of_mcp_names_the_other_path_and_one_over_rest_does_not(service: Service) -> None:
    refused = request(service.base, Era.STATELESS, "tools/call", b'"name":"get_trust"', name="get_trust")
    rest = post(service.base, "/tool/get_trust", {})
    mention = f" A host that signs in by OAuth connects to {service.base}{OAUTH} instead."
    assert refused.json["error"]["data"] == {**rest.json, "detail": rest.json["detail"] + mention}
    assert refused.headers["www-authenticate"] == rest.headers["www-authenticate"]
    assert "OAuth" not in rest.body.decode()


@pytest.mark.rule("F14")
def test_without_an_issuer_nothing_is_there(base: str) -> None:
    replies = [request(base, Era.STATELESS, "tools/list", path=OAUTH), get(base, WELL_KNOWN)]
    assert [(reply.status, reply.json["code"]) for reply in replies] == [(404, "not_found")] * 2


@pytest.mark.rule("F14", "E1.transport")
@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"host": "evil.example"}, b"{}", 421),
        ({"origin": "https://evil.example"}, b"{}", 403),
        ({"content_type": "text/plain"}, b"{}", 400),
        ({"accept": "text/html"}, b"{}", 406),
        ({}, b" " * 65_537, 413),
        ({}, b"{", 400),
    ],
)
def test_the_transport_refuses_as_mcp_does_before_the_token(
    service: Service, headers: dict[str, str], body: bytes, status: int
) -> None:
    replies = [post(service.base, path, body, **headers) for path in (OAUTH, "/mcp")]
    assert [reply.status for reply in replies] == [status] * 2
    assert replies[0].body == replies[1].body


@pytest.mark.rule("F15", "Q5")
def test_quotas_and_reports_count_by_subject_and_scope(service: Service) -> None:
    tokens = [
        service.issuer.token(sub=name, scope="shops:partner", jti=str(n)) for name in ("ada", "bob") for n in (1, 2)
    ]
    replies = [service.call("report_code", REPORT, token) for token in tokens]
    assert [reply.headers["ratelimit"].split(";")[1] for reply in replies] == ["r=2", "r=1", "r=2", "r=1"]
    sources = {report.source for report in service.reports()}
    assert len(sources) == len(service.reports()) == 2
    assert {(source[:6], len(source)) for source in sources} == {("oauth-", 38)}
    reads = [service.call("list_categories", {}, token) for token in tokens]
    assert [reply.headers["ratelimit"].split(";")[1] for reply in reads] == ["r=49", "r=48", "r=49", "r=48"]


@pytest.mark.rule("F15", "E5")
def test_no_log_line_no_metric_and_no_report_holds_a_token_or_a_subject(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    token, forged = service.issuer.token(), signing_key("foreign").sign(service.issuer.claims())
    with caplog.at_level(logging.DEBUG):
        assert service.call("report_code", REPORT | {"code": "OTHER"}, token).status == 200
        assert service.call("find_shop", {"query": ""}, forged).status == 401
    metrics = get(service.base, "/metrics")
    shown = caplog.text + repr([vars(record) for record in caplog.records]) + metrics.body.decode()
    shown += repr(service.reports())
    assert [secret for secret in (SUBJECT, token, forged, token.split(".")[1], SOURCE_KEY) if secret in shown] == []
    requests = {labels for name, labels in samples_of(metrics) if name == "shopdir_request_duration_seconds_count"}
    assert (("outcome", "token_invalid"), ("route", "find_shop")) in requests


@pytest.mark.rule("F14", "E2.wait")
def test_while_the_keys_are_not_known_it_is_503_and_not_401(index_directory: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    base = f"http://127.0.0.1:{port}"
    issuer = AuthorizationServer(tmp_path, f"{base}{OAUTH}")
    with served(create_app(_settings(index_directory, tmp_path, base, issuer)), port=port):
        service = Service(base, issuer, tmp_path)
        listed = service.ask("tools/list", authorization=f"Bearer {issuer.token()}")
        called = service.call("list_categories", {}, issuer.token()).json["result"]
        anonymous = service.call("list_categories", {})
    # The keys are fetched once a minute.
    away = problem(503, "backend_unavailable", "The token could not be checked just now; try again in 60 seconds.")
    assert (listed.status, listed.headers["retry-after"], listed.json["error"]["data"]) == (503, "60", away)
    assert (called["isError"], json.loads(called["content"][0]["text"])) == (True, away)
    assert anonymous.status == 401
