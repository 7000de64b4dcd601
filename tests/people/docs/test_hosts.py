"""The snippets for MCP hosts on README.md and docs/clients.md connect, list the tools and call them, with a token.

And what happens without one starts no search for an OAuth server: there is nothing that would lead to one.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from service.tools.registry import REGISTRY
from tests.people.docs.hosts import Server, servers
from tests.people.docs.world import HERE
from tests.support.sample import SampleService
from tests.support.served import ask, get

TRUST: Final = {"shop_domain": "abc-handel24.internal"}
FOLDER: Final = "/path/to/shop-directory"
COUNT: Final = len(servers("none"))


@asynccontextmanager
async def connected(server: Server, sample: SampleService, folder: Path, statuses: list[int]) -> AsyncIterator[Client]:
    """A client that is set up as the snippet says; `statuses` gets those of all answers over HTTP."""
    if server.command:
        for name, target in ((".venv/bin", Path(sys.executable).parent), ("var", sample.index.parent)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(target)
        here = {name: value.replace(FOLDER, str(folder)) for name, value in server.variables.items()}
        program, *arguments = server.command
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        started = StdioServerParameters(
            command=program.replace(FOLDER, str(folder)), args=arguments, env=here, cwd=elsewhere
        )
        async with Client(stdio_client(started)) as client:
            yield client
    else:

        async def note(response: httpx2.Response) -> None:
            statuses.append(response.status_code)

        url = server.url.replace(HERE, urlsplit(sample.base).netloc)
        async with (
            httpx2.AsyncClient(headers=dict(server.headers), timeout=30.0, event_hooks={"response": [note]}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            yield client


def test_the_snippets_are_for_seven_hosts_and_more_than_one_way() -> None:
    found = servers("none")
    assert COUNT == 9
    assert sum(bool(server.command) for server in found) == 1
    assert {server.url for server in found if server.url} == {f"http://{HERE}/mcp"}


@pytest.mark.rule("I3", "I4", "I80")
@pytest.mark.parametrize("number", range(COUNT), ids=[server.title for server in servers("none")])
async def test_a_host_that_is_set_up_so_lists_and_calls_with_its_token(
    sample: SampleService, tmp_path: Path, number: int
) -> None:
    server = servers(sample.token)[number]
    statuses: list[int] = []
    async with connected(server, sample, tmp_path, statuses) as client:
        listed = await client.list_tools()
        found = await client.call_tool("find_shop", {"query": "lumen"})
        trusted = await client.call_tool("get_trust", TRUST)
    assert [tool.name for tool in listed.tools] == [tool.name for tool in REGISTRY]
    assert _domains(found.structured_content) == ["lumen-larch.internal"]
    assert trusted.structured_content is not None
    assert (trusted.is_error, trusted.structured_content["status"]) == (False, "signals_collected")
    assert set(statuses) <= {200, 202}


@pytest.mark.rule("E2.credentials", "I67", "I80")
async def test_without_a_token_a_host_is_led_to_no_oauth_server(sample: SampleService) -> None:
    async with Client(f"{sample.base}/mcp") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in REGISTRY]
        with pytest.raises(MCPError, match="x-api-token"):
            await client.call_tool("get_trust", TRUST)
        found = await client.call_tool("find_shop", {"query": "lumen"})
    assert _domains(found.structured_content) == ["lumen-larch.internal"]
    for where in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
        looked = get(sample.base, f"/.well-known/{where}")
        assert (looked.status, looked.json["code"]) == (404, "not_found")
    assert ask(sample.base, "POST", "/register", b"{}").status == 404


def _domains(answer: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    return [shop["domain"] for shop in answer["results"]]
