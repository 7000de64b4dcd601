"""The four-shop world and a larger one, each served by the embedded engine for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.app import create_app
from service.settings.service import Settings
from shop_directory.search.failures import BackendUnavailable
from tests.rules.transports.test_probes_and_headers import SECRET, FailingBackend
from tests.support.catalogues import shop
from tests.support.served import served
from tests.support.worlds import SHOPS, embedded_world

REMOVED = shop("Long Gone Goods", "long-gone.example", id="shop_removed", visibility="removed")


@pytest.fixture(scope="session")
def index_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedded_world(tmp_path_factory.mktemp("world"), [*SHOPS, REMOVED])


@pytest.fixture(scope="session")
def base(index_directory: Path) -> Iterator[str]:
    with served(create_app(Settings(data_dir=index_directory, request_timeout=10.0))) as url:
        yield url


@pytest.fixture(scope="session")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service of 21 shops that begin with "lane", 20 that begin with "moor", and four categories for each."""
    names = [*(f"Lane {number}" for number in range(21)), *(f"Moor {number}" for number in range(20))]
    shops = [
        shop(name, f"{name.lower().replace(' ', '-')}.example", categories=[f"kind-{number}-{n}" for n in range(4)])
        for number, name in enumerate(names)
    ]
    directory = embedded_world(tmp_path_factory.mktemp("crowd"), shops)
    with served(create_app(Settings(data_dir=directory, request_timeout=10.0))) as url:
        yield url


@pytest.fixture(scope="session")
def away(index_directory: Path) -> Iterator[str]:
    settings = Settings(data_dir=index_directory, request_timeout=10.0)
    with served(create_app(settings, search=FailingBackend(BackendUnavailable(SECRET)))) as url:
        yield url
