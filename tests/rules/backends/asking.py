"""Asking a directory as a person does: in a line, with what is not said left at its default (M1 to M10)."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from index_mappings.documents import Shop
from service.calls.dispatch import to_wire
from service.reports.sqlite import SqliteReports
from service.tools.find_shop import FindShopResponse, page_wire
from service.tools.request import validated
from service.tools.tool import Tool, ToolContext
from shop_directory.search.protocol import FindQuery, Found, Position, Snapshot
from shop_directory.typeahead.suggestions import SuggestedShop, SuggestQuery, SuggestResult

# Opened by the first report, and nothing can be opened there: a tool that only reads does not notice.
_NO_REPORTS: Final = SqliteReports(Path(os.devnull) / "reports")
NOW: Final = datetime(2031, 5, 6, 12, tzinfo=UTC)


async def call(
    directory: Snapshot,
    tool: Tool[Any],
    *,
    now: datetime = NOW,
    channel: str = "rest",
    caller_country: str | None = None,
    most_coupons: int | None = None,
    **arguments: Any,  # noqa: ANN401 - JSON values
) -> dict[str, Any]:
    """Call a tool as a transport does, and see that the answer is what its model would write, byte for byte."""
    context = ToolContext(
        search=directory,
        now=now,
        channel=channel,
        country=caller_country,
        most_coupons=most_coupons,
        reports=_NO_REPORTS,
        source=None,
    )
    answer = to_wire(await tool.run(validated(tool.request, arguments), context))
    model = tool.response if "shop_domains" not in arguments else tool.responses[-1]
    assert orjson.dumps(answer) == orjson.dumps(model.model_validate(answer).model_dump(by_alias=True))
    return answer


async def find(
    directory: Snapshot,
    text: str,
    *,
    country: str | None = None,
    category: str | None = None,
    offset: int = 0,
    limit: int = 50,
    after: Position | None = None,
) -> Found:
    countries = () if country is None else (country,)
    categories = () if category is None else (category,)
    found = await directory.find(FindQuery(text, countries, categories, offset, limit, after=after))
    page = page_wire(found)
    assert orjson.dumps(page) == orjson.dumps(FindShopResponse.model_validate(page).model_dump())
    return found


async def walked(directory: Snapshot, text: str, *, country: str | None = None, limit: int = 100) -> list[Shop]:
    """All pages of a search, each behind the last shop of the one before; all have the same total (F7)."""
    page = await find(directory, text, country=country, limit=limit)
    shops, total = [*page.shops], page.total
    while page.last is not None:
        page = await find(directory, text, country=country, limit=limit, after=page.last)
        assert page.total == total
        shops += page.shops
    assert len({shop.id for shop in shops}) == len(shops) == total
    return shops


async def suggest(directory: Snapshot, text: str, *, country: str | None = None, limit: int = 20) -> SuggestResult:
    return directory.suggest(SuggestQuery.of(text, country, limit))


async def found_names(directory: Snapshot, text: str, *, country: str | None = None) -> list[str]:
    """The names that a search finds, in order, after a look that its total says the same."""
    found = await find(directory, text, country=country)
    assert found.total == len(found.shops), text
    return names(found.shops)


async def ladder(
    directory: Snapshot, text: str, *, country: str | None = None, limit: int = 20
) -> list[tuple[int, str]]:
    suggested = await suggest(directory, text, country=country, limit=limit)
    return [(int(suggestion.tier), suggestion.shop.name) for suggestion in suggested.shops]


def names(shops: Iterable[Shop | SuggestedShop]) -> list[str]:
    return [shop.name for shop in shops]
