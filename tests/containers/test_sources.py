"""Where tests get Redis and OpenSearch from: containers where their images are, else local servers, and why."""

from collections.abc import Callable, Iterator
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from tests.containers.images import OPENSEARCH, REDIS
from tests.containers.machine import Machine
from tests.support.real.sources import (
    OPENSEARCH_IMAGE,
    REDIS_IMAGE,
    Missing,
    Source,
    find_opensearch,
    find_redis,
    why_no_container,
)

pytestmark = pytest.mark.timeout(600)
# The helper that removes containers of killed runs is not there in any of these tests.
HELPER = "testcontainers/ryuk"


@pytest.fixture
def engine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """The engine, without the images that a registry would have."""
    monkeypatch.setenv("DOCKER_HOST", machine.address)
    for name in ("OPENSEARCH_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    why_no_container.cache_clear()
    yield machine
    why_no_container.cache_clear()


def answers_of_redis(url: str) -> bool:
    address = urlsplit(url)
    with create_connection((address.hostname or "", address.port or 0), timeout=10) as connection:
        connection.sendall(b"PING\r\n")
        return connection.recv(7) == b"+PONG\r\n"


def answers_of_opensearch(url: str) -> bool:
    with urlopen(f"{url}/_cluster/health?wait_for_status=green&timeout=60s", timeout=70) as reply:  # noqa: S310 - loopback
        return bool(reply.status == 200)


CASES = [
    pytest.param(find_redis, REDIS_IMAGE, REDIS, "a local redis-server", answers_of_redis, id="Redis"),
    pytest.param(find_opensearch, OPENSEARCH_IMAGE, OPENSEARCH, "a local node", answers_of_opensearch, id="OpenSearch"),
]


@pytest.mark.parametrize(("find", "wanted", "made", "local", "answers"), CASES)
def test_a_container_is_used_where_its_image_is_and_else_a_local_server_which_says_why(
    engine: Machine,
    tmp_path: Path,
    find: Callable[[], Source | Missing],
    wanted: str,
    made: str,
    local: str,
    answers: Callable[[str], bool],
) -> None:
    without = find()
    assert isinstance(without, Source)
    assert without.origin == local
    assert without.no_container is not None
    assert without.no_container.startswith(f"the Docker engine lacks the image {wanted} and cannot pull it (")
    with without.open(tmp_path) as url:
        assert answers(url)
        assert engine.docker("ps", "--quiet") == ""

    engine.docker("tag", made, wanted)
    why_no_container.cache_clear()
    try:
        source = find()
        assert isinstance(source, Source)
        assert (source.origin, source.no_container) == ("testcontainers", None)
        with source.open(tmp_path) as url:
            assert answers(url)
            assert engine.docker("ps", "--format={{.Image}}").split() == [wanted]
        assert engine.docker("ps", "--all", "--quiet") == ""
        assert HELPER not in engine.docker("images")
    finally:
        engine.docker("rmi", wanted)
