"""OpenSearch away under a serving process: failures are reported quickly as such, and pass by themselves (E3, I7)."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from indexer.sinks.opensearch.sink import OpenSearchSink
from tests.support.catalogues import build_into, shop, write_catalogue
from tests.support.real.opensearch import OpenSearchNode
from tests.support.real.plugin import NodeFactory
from tests.support.real.process import ServerProcess, free_ports

PREFIX: Final = "outage"
READS: Final[tuple[tuple[str, str, dict[str, Any] | None], ...]] = (
    ("GET", "/suggest?q=lum", None),
    ("POST", "/tool/find_shop", {"query": "lumen"}),
    ("POST", "/tool/find_shop", {"query": "", "category": "things"}),
    ("POST", "/tool/list_categories", {}),
    ("POST", "/tool/get_shop", {"shop_domain": "lumen.internal"}),
    ("POST", "/tool/get_shop", {"shop_domain": "unknown.internal"}),
)
STATUSES: Final = [200, 200, 200, 200, 200, 404]
ANSWER_SECONDS: Final = 2.0
BACK_SECONDS: Final = 10.0


@contextmanager
def serving(urls: Sequence[str], log: Path) -> Iterator[httpx2.Client]:
    """The service over an OpenSearch, as a process of its own."""
    (port,) = free_ports(1)
    settings = {
        "SHOP_DIRECTORY_ENGINE": "opensearch",
        "SHOP_DIRECTORY_OPENSEARCH_URLS": ",".join(urls),
        "SHOP_DIRECTORY_INDEX_PREFIX": PREFIX,
    }
    command = ["/usr/bin/env", *(f"{name}={value}" for name, value in settings.items())]
    command += [sys.executable, "-m", "shop_directory", "serve", "--port", str(port)]
    process = ServerProcess("the service", command, log)
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=10.0) as client:
        process.launch()
        try:
            process.wait_for(lambda: answers(client), "answer", 30.0)
            yield client
        finally:
            process.stop()


def answers(client: httpx2.Client) -> bool:
    """Whether the process listens."""
    try:
        return client.get("/health").status_code == 200
    except httpx2.TransportError:
        return False


def ask_all(client: httpx2.Client) -> list[httpx2.Response]:
    """One of each read."""
    return [client.request(method, path, json=body) for method, path, body in READS]


def assert_everything_fails_in_time(client: httpx2.Client) -> None:
    """Every read is the documented failure, and only liveness goes on."""
    for method, path, body in READS:
        started = time.monotonic()
        answer = client.request(method, path, json=body)
        assert time.monotonic() - started < ANSWER_SECONDS, path
        assert (answer.status_code, answer.json()["code"]) == (503, "backend_unavailable"), path
        assert answer.headers["retry-after"].isdecimal()
        assert "x-generation" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"
    ready = client.get("/ready")
    assert (ready.status_code, ready.json()["code"]) == (503, "not_ready")
    assert client.get("/health").json() == {"status": "ok"}


def assert_everything_is_back(client: httpx2.Client, before: list[httpx2.Response]) -> None:
    """Within ten seconds the answers are those of before, byte for byte, and none is an empty success meanwhile."""
    deadline = time.monotonic() + BACK_SECONDS
    found = ask_all(client)
    while any(answer.status_code == 503 for answer in found):
        assert time.monotonic() < deadline
        # A poll of another process: there is nothing to be woken by.
        time.sleep(0.2)
        found = ask_all(client)
    assert [answer.content for answer in found] == [answer.content for answer in before]
    assert client.get("/ready").status_code == 200


@pytest.fixture
def node(opensearch_node: NodeFactory, tmp_path: Path) -> Iterator[OpenSearchNode]:
    """A node with a published catalogue."""
    with opensearch_node() as node:
        sink = OpenSearchSink([node.url], PREFIX)
        shops = [shop("Lumen & Larch", "lumen.internal", popularity=0.9), shop("Lumina", "lumina.internal")]
        build_into(sink, write_catalogue(tmp_path / "shops.ndjson", shops))
        sink.close()
        yield node


@pytest.mark.opensearch
@pytest.mark.slow
@pytest.mark.rule("E3", "E1.retry_after", "C1.stale", "I73")
def test_an_engine_that_is_gone_is_a_failure_and_never_an_empty_list(node: OpenSearchNode, tmp_path: Path) -> None:
    """Takes 18 s: a node starts twice, two processes once, and for two seconds what was confirmed may be answered."""
    others = [f"http://127.0.0.1:{port}" for port in free_ports(2)]  # nodes that stay away
    with (
        serving([node.url], tmp_path / "one.log") as one,
        serving([*others, node.url], tmp_path / "three.log") as three,
    ):
        before = {client: ask_all(client) for client in (one, three)}
        for answers_before in before.values():
            assert [answer.status_code for answer in answers_before] == STATUSES
        node.kill()
        time.sleep(ANSWER_SECONDS)  # what was confirmed before may be answered from for two seconds
        for client, answers_before in before.items():
            assert_everything_fails_in_time(client)
            tag = answers_before[0].headers["etag"]
            assert client.get("/suggest?q=lum", headers={"if-none-match": tag}).status_code == 503
        node.restart()
        node.wait_until_green()
        for client, answers_before in before.items():
            assert_everything_is_back(client, answers_before)


@pytest.mark.opensearch
@pytest.mark.slow
@pytest.mark.rule("E3")
def test_an_engine_that_hangs_is_a_failure_in_time(node: OpenSearchNode, tmp_path: Path) -> None:
    """Takes 16 s: a node and a process start, and reads that get no answer wait until they are given up."""
    with serving([node.url], tmp_path / "service.log") as client:
        before = ask_all(client)
        node.pause()
        try:
            time.sleep(ANSWER_SECONDS)
            assert_everything_fails_in_time(client)
        finally:
            node.resume()
        assert_everything_is_back(client, before)
