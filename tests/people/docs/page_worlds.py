"""What the reader of a page has before its first command: an index, a service, reports, files of secrets."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from service.reports.opening import QueueSettings, open_queue
from tests.people.docs.conftest import MakeWorld
from tests.people.docs.pages import BY_PATH
from tests.people.docs.world import World, sample_catalogue
from tests.rules.reports.stores import report
from tests.support.real.certificates import Authority
from tests.support.sample import SampleService

Begin = Callable[[MakeWorld, SampleService, Path], World]


def plain(make_world: MakeWorld, _sample: SampleService, _folder: Path) -> World:
    """A clone of the repository: enough for most pages."""
    return make_world()


def _served(make_world: MakeWorld, sample: SampleService, _folder: Path) -> World:
    """The sample is served already, and the reader has a token."""
    tokens = sample.variables["SHOP_DIRECTORY_TOKEN_FILE"]
    return make_world(served=sample.base, SHOP_DIRECTORY_TOKEN_FILE=tokens, TOKEN=sample.token)


def _catalogue(make_world: MakeWorld, _sample: SampleService, folder: Path) -> World:
    """The reader's own catalogue, with acceptance queries."""
    catalogue = sample_catalogue(folder / "shops")
    (queries,) = [block.text for block in BY_PATH["docs/acceptance-queries.md"].blocks if block.language == "ndjson"]
    (folder / "acceptance.ndjson").write_text(queries, encoding="utf-8")
    locations = {
        "./my-shops": str(catalogue),
        "/srv/shops": str(catalogue),
        "/srv/acceptance.ndjson": str(folder / "acceptance.ndjson"),
        "/var/log/build.jsonl": str(folder / "build.jsonl"),
    }
    return make_world(stands_for=locations)


def _secrets(make_world: MakeWorld, _sample: SampleService, folder: Path) -> World:
    """The files of an authority and of a password, where the page has them."""
    password = folder / "password"
    password.write_text("of the test\n", encoding="utf-8")
    locations = {
        "/etc/shop-directory/ca.pem": str(Authority(folder).file),
        "/run/secrets/opensearch-service": str(password),
        "/run/shop-directory/opensearch_password": str(password),
    }
    return make_world(stands_for=locations)


def _reported(make_world: MakeWorld, _sample: SampleService, folder: Path) -> World:
    """Three reports have come in."""
    path = folder / "reports.sqlite"

    async def append() -> None:
        queue = open_queue(QueueSettings(path=path))
        for shop in ("s1", "s2", "s3"):
            await queue.append(report(shop))
        await queue.close()

    asyncio.run(append())
    return make_world(SHOP_DIRECTORY_REPORTS_FILE=str(path))


WORLDS: Final[dict[str, Begin]] = {
    "docs/clients.md": _served,
    "docs/indexing.md": _catalogue,
    "docs/opensearch-security.md": _secrets,
    "docs/operations.md": _secrets,
    "docs/rechecks.md": _reported,
    "docs/tools.md": _served,
}
