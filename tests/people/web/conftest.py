"""One Chromium for all tests of this folder, a fresh visitor for each, and two services to look at."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from service.app import create_app
from service.limits.policy import QuotaClass
from tests.people.web.browser import Visitor, chromium
from tests.people.web.world import web_world
from tests.support.callers import issue
from tests.support.sample import SampleService, sample_service
from tests.support.served import served, settings_in

# Results while typing are reads; without a bound, no test depends on what others read in the same minute.
PLENTY: Final = QuotaClass(reads=1_000_000, suggest=1_000_000, reports=0)


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


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser) -> AsyncIterator[Visitor]:
    visitor = Visitor(browser)
    yield visitor
    assert await visitor.leave() == []
