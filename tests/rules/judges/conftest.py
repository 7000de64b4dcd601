"""The four-shop world, served by the embedded engine for all judges, with a token for the tools that need one."""

import asyncio
from collections.abc import Iterator

import pytest

from service.app import create_app
from service.auth.opening import open_tokens
from service.auth.protocol import Token
from service.auth.secrets import hash_of, new_token_id, new_token_text
from service.settings.service import Settings
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
    """The base URL of the service."""
    with served(create_app(settings)) as url:
        yield url


@pytest.fixture(scope="session")
def token(settings: Settings) -> str:
    """The text of an issued token."""
    text = new_token_text()

    async def issue() -> None:
        store = open_tokens(settings.token_store, settings.token_file, settings.redis_access, settings.redis_prefix)
        await store.issue(Token(new_token_id(), "judges", "default", None), hash_of(text))
        await store.close()

    asyncio.run(issue())
    return text
