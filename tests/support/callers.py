"""Tokens as the operator issues and revokes them, an engine that must not be asked, and a queue of reports."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from service.app import create_app
from service.auth.protocol import Token, TokenStore
from service.auth.redis import RedisTokenStore
from service.auth.secrets import hash_of, new_token_id, new_token_text
from service.auth.sqlite import SqliteTokenStore
from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings, open_queue
from service.reports.protocol import Report
from tests.rules.reports.stores import REPORTED_AT, exported
from tests.support.catalogues import coupon
from tests.support.served import Reply, post, served, settings_in
from tests.support.worlds import embedded_world


@dataclass(frozen=True, slots=True)
class Issued:
    id: str
    text: str


def issue(path: Path, *, quota_class: str = "default", expires_at: int | None = None) -> Issued:
    return _issued(SqliteTokenStore(path), quota_class, expires_at)


def issue_in_redis(url: str, prefix: str) -> Issued:
    return _issued(RedisTokenStore(RedisAccess(url), prefix))


def in_redis(url: str, prefix: str) -> dict[str, str]:
    """The settings of services, as processes, that share tokens, quotas and reports."""
    return {"REDIS_URL": url, "REDIS_PREFIX": prefix, "LIMITER": "redis", "TOKEN_STORE": "redis", "REPORTS": "redis"}


def _issued(store: TokenStore, quota_class: str = "default", expires_at: int | None = None) -> Issued:
    issued = Issued(new_token_id(), new_token_text())

    async def store_it() -> None:
        await store.issue(Token(issued.id, "test", quota_class, expires_at), hash_of(issued.text))
        await store.close()

    asyncio.run(store_it())
    return issued


def revoke(path: Path, issued: Issued) -> None:
    async def forget() -> None:
        store = SqliteTokenStore(path)
        assert await store.revoke(issued.id)
        await store.close()

    asyncio.run(forget())


COUPONS: Final = (coupon("SPRING10", "shop_books"), coupon("HIDDEN-5", "shop_hidden"))


@dataclass(frozen=True, slots=True)
class Reporting:
    """A service that takes reports, the index of its world, its queue, and a token that counts.

    `variables` make a process on stdio the same service.
    """

    base: str
    index: Path
    token: Issued
    queue: QueueSettings
    variables: dict[str, str]

    def report(self, tool: str, arguments: dict[str, Any]) -> Reply:
        return post(self.base, f"/tool/{tool}", arguments, x_api_token=self.token.text)

    def stored(self) -> tuple[list[Report], int]:
        reports, depth = stored_in(self.queue)
        return [replace(one, reported_at=REPORTED_AT) for one in reports], depth

    def row(self, kind: Any, reason: str, code: str | None = None) -> Report:  # noqa: ANN401 - a kind
        return Report(self.token.id, kind, "shop_books", code, reason, REPORTED_AT)


def stored_in(settings: QueueSettings) -> tuple[list[Report], int]:
    async def read() -> tuple[list[Report], int]:
        queue = open_queue(settings)
        try:
            return await exported(queue), (await queue.waiting(1)).depth
        finally:
            await queue.close()

    return asyncio.run(read())


@contextmanager
def reporting_to(queue: QueueSettings, folder: Path) -> Iterator[Reporting]:
    variables = {
        "SHOP_DIRECTORY_TOKEN_FILE": str(folder / "tokens.sqlite"),
        "SHOP_DIRECTORY_REPORTS": queue.kind,
        "SHOP_DIRECTORY_REPORTS_FILE": str(queue.path),
        "SHOP_DIRECTORY_REDIS_URL": queue.redis.url,
        "SHOP_DIRECTORY_REDIS_PREFIX": queue.prefix,
    }
    index = embedded_world(folder / "world", coupons=COUPONS)
    token = issue(folder / "tokens.sqlite")
    settings = settings_in(
        folder,
        data_dir=index,
        reports=queue.kind,
        reports_file=queue.path,
        redis_url=queue.redis.url,
        redis_prefix=queue.prefix,
        redis_ca_file=queue.redis.ca_file,
    )
    with served(create_app(settings)) as base:
        yield Reporting(base, index, token, queue, variables)
