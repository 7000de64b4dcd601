"""The worlds of the pages: one clone of the repository for all of them, and one service on the sample."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.people.docs.world import HERE, Shell, World, environment, install, repository
from tests.rules.transports.test_mcp_transport import client_program
from tests.support.emptying import unused_prefix
from tests.support.real.process import free_ports
from tests.support.sample import SampleService, sample_service

__all__ = ["client_program"]

MakeWorld = Callable[..., World]


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return repository(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleService]:
    with sample_service(tmp_path_factory.mktemp("sample")) as service:
        yield service


@pytest.fixture
def make_world(source: Path, tmp_path: Path) -> Iterator[MakeWorld]:
    """Makes the world of a page: in an empty folder, or in a clone with the programs of the tests in it."""
    with ExitStack() as stack:

        def make(
            *, cloned: bool = True, served: str = "", stands_for: dict[str, str] | None = None, **variables: str
        ) -> World:
            (port,) = free_ports(1)
            clone = tmp_path / "shop-directory"
            if cloned:
                shutil.copytree(source, clone)
                install(clone)
            folder = clone if cloned else tmp_path
            shell = stack.enter_context(Shell(folder, tmp_path / "home", environment(clone, port, **variables)))
            host = urlsplit(served).netloc or f"127.0.0.1:{port}"
            return World(shell, port, {HERE: host, **(stands_for or {})})

        yield make


@pytest.fixture
def own_prefix(request: pytest.FixtureRequest) -> Iterator[str]:
    """What all names of a test begin with, in OpenSearch and in Redis; nothing of it is left."""
    servers = {
        name: request.getfixturevalue(name) for name in ("opensearch_url", "redis_url") if name in request.fixturenames
    }
    with unused_prefix(**servers) as prefix:
        yield prefix
