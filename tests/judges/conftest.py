"""The four-shop world, served by the embedded engine for all judges."""

from collections.abc import Iterator

import pytest

from service.app import create_app
from service.settings import Settings
from tests.e2e.served import served
from tests.worlds import embedded_world


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings as in production, with an index, a build that knows itself, and time for a busy machine."""
    return Settings(
        data_dir=embedded_world(tmp_path_factory.mktemp("judged")),
        commit="0123456789abcdef0123456789abcdef01234567",
        built_at="2026-11-21T09:30:00Z",
        request_timeout=10.0,
    )


@pytest.fixture(scope="session")
def base(settings: Settings) -> Iterator[str]:
    """The base URL of the service."""
    with served(create_app(settings)) as url:
        yield url
