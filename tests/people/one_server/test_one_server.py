"""What `one-server/` has, with the real programs: TLS, whose quota counts, MCP, restarts, units of systemd."""

import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from indexer.sinks.embedded.sink import EmbeddedSink
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from shop_directory.settings.commands import ExitCode
from tests.people.docs.pages import BY_PATH
from tests.people.one_server.proxies import FOLDER, LOOPBACK, NAME, Proxy, ask_plain
from tests.support.catalogues import build_into, shop, write_catalogue
from tests.support.service_process import Service, serving
from tests.support.transports import MODES

_FIND: Final = '{"query": "lamp"}'
_READS: Final = 20
# Python runs it at the start of each process. The module is imported when the index is opened.
_SLOW_OPENING: Final = """
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "service.search.typeahead.compiled":
            time.sleep(2)

sys.meta_path.insert(0, Slow())
"""
PAGE: Final = BY_PATH["docs/one-server.md"]
_PATHS: Final = ("DATA_DIR", "STATE_DIR", "TOKEN_FILE", "REPORTS_FILE")
_UNITS: Final = tuple(sorted(path.name for path in FOLDER.glob("shop-directory*")))
# In tenths, as systemd-analyze takes it: "OK", the second best of its five words, is up to 4.9.
_MOST_EXPOSED: Final = 25


def stated() -> dict[str, str]:
    """The settings of the file, without their prefix."""
    lines = (FOLDER / "settings").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {name.removeprefix("SHOP_DIRECTORY_"): value for name, _, value in pairs}


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    with socket.create_server((LOOPBACK, 0), backlog=2_048) as held:
        yield held


@pytest.fixture(scope="module")
def service(listener: socket.socket, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    catalogue = folder / "catalogue"
    write_catalogue(catalogue / "shops.ndjson", [shop("Lamp House"), shop("Lampenhaus")])
    build_into(EmbeddedSink(folder / "index"), catalogue)
    settings = {name: value for name, value in stated().items() if name not in _PATHS}
    quotas = f'{{"reads": {_READS}, "suggest": 1200, "reports": 0}}'
    own = {"DATA_DIR": str(folder / "index"), "QUOTA_ANONYMOUS": quotas}
    with serving(folder, settings | own, listener=listener) as started:
        yield started


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(
    request: pytest.FixtureRequest,
    service: Service,
    server_programs: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    kind = request.param
    with Proxy(kind, server_programs[kind], tmp_path_factory.mktemp(kind), service.port) as started:
        yield started


def test_answers_come_over_tls_and_plain_http_leads_there(proxy: Proxy) -> None:
    answer = proxy.ask("GET", "/ready")
    assert (answer.status, answer.headers["strict-transport-security"]) == (200, "max-age=31536000")
    moved = ask_plain(proxy.http, "/ready?q=1")
    assert moved.status in {301, 308}
    assert re.fullmatch(rf"https://{NAME}(:{proxy.https})?/ready\?q=1", moved.headers["location"])


@pytest.mark.rule("Q3")
def test_the_quota_is_that_of_the_address_that_the_proxy_saw_whatever_the_caller_says_of_it(proxy: Proxy) -> None:
    first, second = ("127.0.0.8", "127.0.0.9") if proxy.process.title == "nginx" else ("127.0.0.18", "127.0.0.19")
    used = [proxy.ask("POST", "/tool/find_shop", _FIND, caller=first).status for _ in range(_READS)]
    assert used == [200] * _READS
    for forged in ({}, {"X-Forwarded-For": "203.0.113.9"}, {"X-Forwarded-For": second}, {"Forwarded": f"for={second}"}):
        assert proxy.ask("POST", "/tool/find_shop", _FIND, forged, caller=first).status == 429
    assert proxy.ask("POST", "/tool/find_shop", _FIND, caller=second).status == 200


@pytest.mark.parametrize("path", ["/metrics", "/metrics/resources", "/api/ops/state"])
@pytest.mark.parametrize("host", [NAME, "localhost", LOOPBACK])
def test_nobody_beyond_the_server_reads_what_is_for_operators(proxy: Proxy, path: str, host: str) -> None:
    answer = proxy.ask("GET", path, headers={"host": host})
    assert (answer.status == 421) or (not answer.body and proxy.process.title == "caddy" and host != NAME)


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_mcp_client_lists_and_calls_tools_through_it(proxy: Proxy, mode: str) -> None:
    async def address(request: httpx2.Request) -> None:
        request.headers["host"] = NAME
        request.extensions["sni_hostname"] = NAME

    url = f"https://{LOOPBACK}:{proxy.https}/mcp"
    trusting = ssl.create_default_context(cafile=proxy.authority)
    caller = httpx2.AsyncHTTPTransport(verify=trusting, local_address=f"127.0.1.{len(mode + proxy.process.title)}")
    async with (
        httpx2.AsyncClient(transport=caller, timeout=30.0, event_hooks={"request": [address]}) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        tools = (await client.list_tools()).tools
        found = await client.call_tool("find_shop", {"query": "lamp"})
    assert [tool.name for tool in tools] == [tool.name for tool in REGISTRY]
    assert found.structured_content is not None
    assert found.structured_content["total_count"] == 2


def test_a_restart_refuses_nobody_and_cuts_no_answer(proxy: Proxy, service: Service) -> None:
    """Callers ask all the time, each of an address with a quota of its own; systemd holds the listener."""
    ended = threading.Event()
    statuses: list[int] = []

    def ask(number: int) -> None:
        turn = 0
        while not ended.is_set():
            turn += 1
            caller = f"127.{number + 1}.{turn // 200}.{turn % 200 + 1}"
            statuses.append(proxy.ask("POST", "/tool/find_shop", _FIND, caller=caller).status)

    def answered(more: int) -> None:
        wanted, until = len(statuses) + more, time.monotonic() + 20
        while len(statuses) < wanted and time.monotonic() < until:
            time.sleep(0.02)
        assert len(statuses) >= wanted

    with ThreadPoolExecutor(4) as callers:
        asking = [callers.submit(ask, number) for number in range(4)]
        try:
            answered(10)
            for _ in range(2):
                service.signal(signal.SIGTERM)
                assert service.ended() == 0
                service.start()
                answered(10)
        finally:
            ended.set()
        for one in asking:
            one.result()
    assert set(statuses) == {200}


@pytest.mark.redis
@pytest.mark.parametrize("workers", [1, 2])
def test_whoever_connects_during_a_start_waits_for_the_index_and_not_for_503(
    service: Service, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Opening it takes longer than a call waits for it."""
    (tmp_path / "sitecustomize.py").write_text(_SLOW_OPENING, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    stores = {"LIMITER": "redis", "REPORTS": "redis", "REDIS_URL": redis_url}
    settings = stores | {"DATA_DIR": str(service.log.parent / "index"), "WORKERS": str(workers)}
    with socket.create_server((LOOPBACK, 0)) as held:
        started = Service(tmp_path / "service", settings, listener=held)
        try:
            started.launch()
            with closing(HTTPConnection(LOOPBACK, started.port, timeout=60)) as connection:
                connection.request("GET", "/ready")
                assert connection.getresponse().status == 200
        finally:
            started.stop()


def test_the_units_are_valid_and_have_few_rights(server_programs: Mapping[str, str], tmp_path: Path) -> None:
    program = Path(server_programs["systemd-analyze"])
    for name in _UNITS:
        unit = (FOLDER / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(unit.replace("/opt/shop-directory/bin/shop-directory", "/bin/true"), "utf-8")
    units = [str(tmp_path / name) for name in _UNITS]
    assert _printed(program, "verify", "--man=no", *units) == (0, "")
    for unit in units:
        if unit.endswith(".service"):
            code, printed = _printed(program, "security", "--offline=true", f"--threshold={_MOST_EXPOSED}", unit)
            assert code == 0, printed


def _printed(program: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, f"{done.stdout}{done.stderr}"


def test_the_page_names_files_units_and_places_that_are_there() -> None:
    text = "".join(block.text for block in PAGE.blocks)
    named = set(re.findall(r"one-server/[\w.*-]+", text))
    assert {name for name in named if not list(FOLDER.parent.glob(name))} == set()
    assert {name for name in _UNITS if name not in text} == set()
    assert all(stated()[name] in text for name in ("TOKEN_FILE", "REPORTS_FILE"))
    folder, _, state = stated()["STATE_DIR"].rpartition("/")
    assert f"tar -C {folder} " in text
    assert text.count(f" {state}\n") == 1


def test_the_commands_of_the_page_are_run_with_the_settings_and_build_and_issue_a_token(tmp_path: Path) -> None:
    """As they stand on the page, but for the change of the user, and for the places of a server."""
    (block,) = [block.text for block in PAGE.blocks if block.text.startswith("as()")]
    settings = (FOLDER / "settings").read_text(encoding="utf-8").replace("/var/lib/", f"{tmp_path}/")
    for folder in ("shop-directory", "shop-indexer"):
        (tmp_path / folder).mkdir()
    (tmp_path / "settings").write_text(settings, encoding="utf-8")
    write_catalogue(tmp_path / "shops" / "shops.ndjson", [shop("Lamp House")])
    there = {
        "/etc/shop-directory/settings": str(tmp_path / "settings"),
        "/opt/shop-directory/bin": str(Path(sys.executable).parent),
        "/srv/shops": str(tmp_path / "shops"),
    }
    for place, other in there.items():
        assert place in block
        block = block.replace(place, other)
    commands = f'set -e\nsudo() {{ shift 2; "$@"; }}\n{block}'
    done = subprocess.run(["sh", "-c", commands], cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "shop-directory" / "tokens.sqlite").is_file()
    assert re.search(r"^sd_\w{40,}$", done.stdout, re.MULTILINE)
    assert (tmp_path / "shop-indexer" / "state").stat().st_mode & 0o077 == 0


def test_a_failed_build_is_tried_again_or_reported() -> None:
    unit = (FOLDER / "shop-directory-build.service").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
    assert stated["OnFailure"] == "shop-directory-failed@%n.service"
    assert (FOLDER / "shop-directory-failed@.service").is_file()
    for_people = (ExitCode.BAD_INPUT, ExitCode.USAGE, ExitCode.REFUSED)
    assert stated["RestartPreventExitStatus"].split() == [str(int(code)) for code in for_people]


def test_only_root_can_read_the_copies_that_the_page_makes(tmp_path: Path) -> None:
    (block,) = [block.text for block in PAGE.blocks if ".backup " in block.text]
    (tmp_path / "lib" / "shop-indexer" / "state").mkdir(parents=True)
    (tmp_path / "backups").mkdir()
    stubs = 'sqlite3() { touch "${2#.backup }"; }\nsystemctl() { :; }\numask 022\n'
    subprocess.run(["sh", "-ec", stubs + block.replace("/var/", f"{tmp_path}/")], timeout=30, check=True)
    (folder,) = (tmp_path / "backups").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["reports.sqlite", "state.tar.gz", "tokens.sqlite"]
    assert folder.stat().st_mode & 0o077 == 0


def test_a_unit_waits_for_the_end_of_the_drain_and_the_port_is_the_one_that_the_proxies_ask() -> None:
    units = {name: (FOLDER / name).read_text(encoding="utf-8") for name in _UNITS}
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", units["shop-directory.service"], re.MULTILINE)
    assert int(stop) > Settings().drain_seconds + 10
    (listens,) = re.findall(r"^ListenStream=(\S+)$", units["shop-directory.socket"], re.MULTILINE)
    assert all(listens in (FOLDER / name).read_text(encoding="utf-8") for name in ("nginx.conf", "Caddyfile"))
