"""Other names of categories find shops and categories over every transport, and no answer shows them."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client

from service.app import create_app
from service.settings.service import Settings
from tests.support.served import get, served
from tests.support.transports import mcp_transports, over_mcp, over_rest
from tests.support.worlds import embedded_world

CATEGORIES: Final = (
    {"slug": "books", "name": "Books & Zines", "names": {"de": "Bücher", "ja": "本"}, "synonyms": ["Buch", "novels"]},
    {"slug": "secrets", "names": {"de": "Geheimnisse"}, "synonyms": ["mysteries"]},
)
SHOWN: Final = {"category": "Books & Zines", "slug": "books", "count": 2}
EVERY: Final = [SHOWN, *({"category": name, "slug": slug, "count": 1} for slug, name in (
    ("garden", "Garden"), ("kitchen-ware", "Kitchen Ware")))]  # fmt: skip


@pytest.fixture(scope="module")
def index_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the four-shop world, with names for its categories."""
    return embedded_world(tmp_path_factory.mktemp("names"), categories=CATEGORIES)


@pytest.fixture(scope="module")
def base(index_directory: Path) -> Iterator[str]:
    """The base URL of the service."""
    with served(create_app(Settings(data_dir=index_directory, request_timeout=10.0))) as url:
        yield url


def _shops(text: str) -> list[str]:
    answer: dict[str, Any] = json.loads(text)
    return [shop["id"] for shop in answer["results"]]


async def _ready(client: Client) -> None:
    """Wait until a process on stdio has opened its typeahead: on a busy machine that takes seconds."""
    async with asyncio.timeout(30):
        while (await over_mcp(client, "list_categories", {})).failed:
            await asyncio.sleep(0.1)


@pytest.mark.rule("M5", "A3", "V1")
async def test_a_search_by_another_name_of_a_category_is_answered_alike_over_every_transport(
    base: str, index_directory: Path
) -> None:
    found = {
        "zine": ["shop_books", "shop_kitchen"], "novels": ["shop_books", "shop_kitchen"],
        "本": ["shop_books", "shop_kitchen"], "zines harbour": ["shop_books"], "geheimnisse": [], "mysteries": [],
    }  # fmt: skip
    async with mcp_transports(base, index_directory) as clients:
        for client in clients.values():
            await _ready(client)
        for query, ids in found.items():
            rest = over_rest(base, "find_shop", {"query": query})
            assert _shops(rest.text) == ids, query
            for name, client in clients.items():
                assert (await over_mcp(client, "find_shop", {"query": query})).text == rest.text, (name, query)
        listed = over_rest(base, "list_categories", {})
        assert json.loads(listed.text) == {"results": EVERY, "total_count": 3}
        for name, client in clients.items():
            assert (await over_mcp(client, "list_categories", {})).text == listed.text, name


@pytest.mark.rule("M10", "I72", "V1")
def test_a_suggested_category_shows_its_display_name_whatever_name_was_typed(base: str) -> None:
    found = ("buch", "Nov", "%E6%9C%AC", "b%C3%BCch", "boosk", "novesl", "cheap%20nvels", "zine")
    unknown = ("geheim", "mysteries", "secret", "nvel")
    expected: dict[str, list[dict[str, Any]]] = {**{typed: [SHOWN] for typed in found}, **{t: [] for t in unknown}}
    # Over a connection of its own, and on the fast path.
    for headers in ({"connection": "close"}, {}):
        answers = {typed: get(base, f"/suggest?q={typed}", **headers).json["categories"] for typed in expected}
        assert answers == expected
