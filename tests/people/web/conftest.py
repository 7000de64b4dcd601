"""One Chromium for all tests of this folder, a fresh visitor for each, and two services to look at."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from service.app import create_app
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from tests.people.web.browser import Visitor, chromium
from tests.people.web.world import web_world
from tests.support.callers import issue
from tests.support.catalogues import Lines
from tests.support.sample import SampleService, sample_service
from tests.support.served import served, settings_in
from tests.support.worlds import embedded_world

# Results while typing are reads; without a bound, no test depends on what others read in the same minute.
PLENTY: Final = QuotaClass(reads=1_000_000, suggest=1_000_000, reports=0)


Serve = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Site:
    base: str
    token: str


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("web")
    settings = settings_in(folder, data_dir=web_world(folder / "world"), quota_anonymous=PLENTY)
    with served(create_app(settings)) as base:
        yield Site(base, issue(settings.token_file).text)


@pytest.fixture(scope="package")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleService]:
    with sample_service(tmp_path_factory.mktemp("sample"), quota_anonymous=PLENTY) as service:
        yield service


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The browser; only `tests.support.real.plugin` decides what becomes of a test where there is none."""
    async with chromium() as running:
        yield running


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serves shops of a test's own, with other records or settings; returns the base URL."""
    with ExitStack() as stack:

        def begin(
            shops: Lines,
            categories: Lines = (),
            coupons: Lines = (),
            **settings: Any,  # noqa: ANN401 - any setting
        ) -> str:
            index = embedded_world(tmp_path, shops, categories=categories, coupons=coupons)
            return stack.enter_context(served(create_app(Settings(data_dir=index, **settings))))

        yield begin


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser, serve: Serve) -> AsyncIterator[Visitor]:
    """Leaves before what the test serves has ended."""
    visitor = Visitor(browser)
    yield visitor
    assert await visitor.leave() == []
