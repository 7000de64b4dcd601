"""The four-shop world, served by the embedded engine for all judges, with a token for the tools that need one."""

from collections.abc import Iterator

import pytest

from service.app import create_app
from service.settings.service import Settings
from tests.support.callers import issue
from tests.support.catalogues import coupon, offer
from tests.support.served import served
from tests.support.worlds import embedded_world


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings as in production, with an index, a build that knows itself, and time for a busy machine."""
    return Settings(
        data_dir=embedded_world(
            tmp_path_factory.mktemp("judged"),
            coupons=[coupon("SPRING10", "shop_books")],
            offers=[offer("off_0042", "shop_books", url="https://harbour-lane-books.example/new")],
        ),
        commit="0123456789abcdef0123456789abcdef01234567",
        built_at="2026-11-21T09:30:00Z",
        request_timeout=10.0,
    )


@pytest.fixture(scope="session")
def base(settings: Settings) -> Iterator[str]:
    with served(create_app(settings)) as url:
        yield url


@pytest.fixture(scope="session")
def token(settings: Settings) -> str:
    return issue(settings.token_file).text
