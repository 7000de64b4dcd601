"""The four-shop world and the sample catalogue, each served by the embedded engine for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.app import create_app
from service.settings.service import Settings
from tests.support.emptying import unused_prefix
from tests.support.sample import SampleService, sample_service
from tests.support.served import served
from tests.support.worlds import embedded_world

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BUILT_AT = "2026-11-21T09:30:00Z"


@pytest.fixture(scope="session")
def index_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedded_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def base(index_directory: Path) -> Iterator[str]:
    settings = Settings(
        data_dir=index_directory,
        commit=COMMIT,
        built_at=BUILT_AT,
        cors_origins=("https://shop-finder.example",),
        request_timeout=10.0,
    )
    with served(create_app(settings)) as url:
        yield url


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleService]:
    with sample_service(tmp_path_factory.mktemp("sample"), commit=COMMIT, built_at=BUILT_AT) as service:
        yield service


@pytest.fixture
def redis_prefix(redis_url: str) -> Iterator[str]:
    """What the test's keys in the session's Redis begin with; they are removed after it."""
    with unused_prefix(redis_url=redis_url) as prefix:
        yield prefix
