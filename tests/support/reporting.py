"""The four-shop world with a queue of reports, and what the queue holds."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from service.app import create_app
from service.reports.opening import QueueSettings, open_queue
from service.reports.protocol import Report
from service.settings.service import Settings
from tests.rules.reports.stores import REPORTED_AT, exported
from tests.support.callers import Issued, issue
from tests.support.catalogues import coupon
from tests.support.served import Reply, post, served
from tests.support.worlds import embedded_world

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
        """Report over REST."""
        return post(self.base, f"/tool/{tool}", arguments, x_api_token=self.token.text)

    def stored(self) -> tuple[list[Report], int]:
        """The rows, without their times, and how many re-checks wait."""
        reports, depth = stored_in(self.queue)
        return [replace(one, reported_at=REPORTED_AT) for one in reports], depth

    def row(self, kind: Any, reason: str, code: str | None = None) -> Report:  # noqa: ANN401 - a kind
        """A row about the bookshop."""
        return Report(self.token.id, kind, "shop_books", code, reason, REPORTED_AT)


def stored_in(settings: QueueSettings) -> tuple[list[Report], int]:
    """The reports in a queue, and how many re-checks wait."""

    async def read() -> tuple[list[Report], int]:
        queue = open_queue(settings)
        try:
            return await exported(queue), (await queue.waiting(1)).depth
        finally:
            await queue.close()

    return asyncio.run(read())


@contextmanager
def reporting_to(queue: QueueSettings, folder: Path) -> Iterator[Reporting]:
    """The four-shop world with two coupons, served."""
    variables = {
        "SHOP_DIRECTORY_TOKEN_FILE": str(folder / "tokens.sqlite"),
        "SHOP_DIRECTORY_REPORTS": queue.kind,
        "SHOP_DIRECTORY_REPORTS_FILE": str(queue.path),
        "SHOP_DIRECTORY_REDIS_URL": queue.redis.url,
        "SHOP_DIRECTORY_REDIS_PREFIX": queue.prefix,
    }
    index = embedded_world(folder / "world", coupons=COUPONS)
    token = issue(folder / "tokens.sqlite")
    settings = Settings(
        data_dir=index,
        token_file=folder / "tokens.sqlite",
        reports=queue.kind,
        reports_file=queue.path,
        redis_url=queue.redis.url,
        redis_prefix=queue.prefix,
        redis_ca_file=queue.redis.ca_file,
        request_timeout=10.0,
    )
    with served(create_app(settings)) as base:
        yield Reporting(base, index, token, queue, variables)
