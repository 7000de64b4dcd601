"""Five tools need a token: when one counts, and that a call without it ends before the tool (I80, R5, Q1)."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from mcp.shared.exceptions import MCPError

from service.app import create_app
from service.auth.secrets import new_token_text
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from tests.support.callers import Issued, Untouchable, issue, revoke
from tests.support.served import Reply, post, served
from tests.support.transports import MODES, stdio_transport
from tests.support.wire import Era, call, problem
from tests.support.worlds import embedded_world

NEED_A_TOKEN: Final = ("get_trust", "report_code", "report_issue", "monetize_offer", "resolve_conflict")
REFUSED: Final = ("none", "malformed", "unknown", "expired", "revoked")
CHALLENGE: Final = 'ApiKey realm="shop-directory", header="x-api-token"'
HOW: Final = "Send it in the header x-api-token (over stdio: in the variable SHOP_DIRECTORY_API_TOKEN)."
REQUIRED: Final = problem(401, "token_required", f"This tool needs an API token, which the operator issues. {HOW}")
INVALID: Final = problem(401, "token_invalid", f"This token is not known, has been revoked or has expired. {HOW}")
TRUST: Final = {"shop_domain": "shop_books"}


@dataclass(frozen=True, slots=True)
class Guarded:
    """A service whose tools and search engine must not be reached, with a token's text for each way of not counting.

    The backend remembers what it was asked, `ran` has the tools whose code ran.
    """

    base: str
    backend: Untouchable
    ran: list[str]
    texts: dict[str, str | None]
    tokens: Path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    tokens = tmp_path_factory.mktemp("guarded") / "tokens.sqlite"
    revoked = issue(tokens)
    revoke(tokens, revoked)
    texts = {
        "none": None,
        "malformed": "letmein",
        "unknown": new_token_text(),
        "expired": issue(tokens, expires_at=int(time.time()) - 1).text,
        "revoked": revoked.text,
    }
    ran: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.parts.REGISTRY", tuple(_remembering(tool, ran) for tool in REGISTRY))
        backend = Untouchable()
        app = create_app(Settings(token_file=tokens), search=backend)
    with served(app) as base:
        backend.asked.clear()  # at the start, whether anything is published
        yield Guarded(base, backend, ran, texts, tokens)


@pytest.mark.rule("I80", "I83", "R5.credentials", "E1.credentials", "I1")
@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("tool", NEED_A_TOKEN)
@pytest.mark.parametrize(
    ("content_type", "body"),
    [("application/json", b"{}"), ("text/plain", b"\xff" * 70_000)],
    ids=["readable", "unreadable"],
)
def test_rest_refuses_before_anything_is_read(
    guarded: Guarded, tool: str, kind: str, content_type: str, body: bytes
) -> None:
    reply = post(guarded.base, f"/tool/{tool}", body, content_type=content_type, **_token(guarded.texts[kind]))
    assert reply.summary == (401, "application/problem+json", REQUIRED if kind == "none" else INVALID)
    assert (reply.headers["www-authenticate"], reply.headers["cache-control"]) == (CHALLENGE, "no-store")
    _assert_untouched(guarded, reply)


@pytest.mark.rule("I80", "I83", "E2.credentials", "E1.credentials", "R5.credentials")
@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("tool", NEED_A_TOKEN)
@pytest.mark.parametrize("era", Era)
def test_mcp_refuses_before_the_tool_with_the_problem_as_data(guarded: Guarded, tool: str, kind: str, era: Era) -> None:
    refusal = REQUIRED if kind == "none" else INVALID
    reply = call(guarded.base, era, tool, b'{"colour":[]}', **_token(guarded.texts[kind]))
    error = {"code": -32001, "message": refusal["detail"], "data": refusal}
    assert reply.summary == (401, "application/json", {"jsonrpc": "2.0", "id": 7, "error": error})
    assert reply.headers["www-authenticate"] == CHALLENGE
    _assert_untouched(guarded, reply)


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
    # There is no index: a tool that ran would say that the backend is unavailable.
    async with stdio_transport(tmp_path / "no-index", mode, variables) as client:
        assert len((await client.list_tools()).tools) == len(REGISTRY)
        for tool in NEED_A_TOKEN:
            with pytest.raises(MCPError) as raised:
                await client.call_tool(tool, {"colour": []})
            error = raised.value.error
            assert (error.code, error.message, error.data) == (-32001, refusal["detail"], refusal)
        open_to_all = await client.call_tool("list_categories", {})
    assert (open_to_all.is_error, open_to_all.content[0].type) == (True, "text")


def _remembering(tool: Any, ran: list[str]) -> Any:  # noqa: ANN401 - a Tool of any request
    async def run(*_: object) -> NoReturn:
        ran.append(tool.name)
        raise AssertionError(tool.name)

    return replace(tool, run=run)


def _token(text: str | None) -> dict[str, str]:
    return {} if text is None else {"x_api_token": text}


def _assert_untouched(guarded: Guarded, reply: Reply) -> None:
    assert (guarded.backend.asked, guarded.ran) == ([], [])
    assert "resource_metadata" not in reply.headers["www-authenticate"]
    assert "x-generation" not in reply.headers


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
