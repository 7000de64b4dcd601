"""`shop-directory insights`: what people look for and don't find, of the queries that enough of them asked."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

import typer

from service.insights.protocol import (
    KEPT_DAYS,
    LEAST_GROUPS,
    InsightStore,
    InsightsUnavailable,
    QueryCount,
    first_day,
    first_of,
)
from shop_directory.settings.commands import ExitCode, JsonOption, end_command, loaded

if TYPE_CHECKING:
    from service.settings.service import Settings

_OFF: Final = "Queries are not counted: SHOP_DIRECTORY_INSIGHTS is off."
_TITLES: Final[dict[Literal["asked", "not_found"], str]] = {
    "not_found": "Looked for and not found",
    "asked": "Looked for most",
}
_Answer = TypeVar("_Answer")


def insights(
    *,
    days: Annotated[int, typer.Option("--days", min=1, max=KEPT_DAYS, help="Today and the days before it.")] = 7,
    count: Annotated[int, typer.Option("--count", min=1, max=1_000, help="The queries of each list.")] = 20,
    erase: Annotated[bool, typer.Option("--erase", help="Delete all counts, and the hashes of today.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what people look for, and what they don't find.

    A query is shown only if five address groups asked it on one day; an IPv4
    address or an IPv6 /64 is a group. Queries are counted, for 30 days, where
    SHOP_DIRECTORY_INSIGHTS is embedded or redis; letters on the way to a word are
    not.

    Examples:
      shop-directory insights
      shop-directory insights --days 30 --json

    Exit codes: 0 done, also where nothing is counted, 2 wrong usage, 3 the store
    does not answer.
    """
    from service.settings.service import Settings

    settings = loaded(Settings)
    try:
        if erase:
            asked_of(settings, lambda store: store.erase())
            print(json.dumps({"erased": True}) if as_json else "All counts of queries are deleted.")
            return
        found = counts_of(settings, days)
    except InsightsUnavailable as error:
        end_command(ExitCode.UNAVAILABLE, f"The counts of queries do not answer: {error}.")
    lists = {name: first_of(found or (), name, count) for name in _TITLES}
    if as_json:
        wire = {
            name: [{"query": one.query, "count": getattr(one, name)} for one in listed]
            for name, listed in lists.items()
        }
        print(json.dumps({"counting": found is not None, "days": days, **wire}, ensure_ascii=False))
    elif found is None:
        print(_OFF)
    else:
        for name, title in _TITLES.items():
            print(f"{title}, in {days} days, by {LEAST_GROUPS} address groups or more:")
            print("\n".join(f"{getattr(one, name):>8,}  {one.query}" for one in lists[name]) or "    none")


def counts_of(settings: "Settings", days: int) -> tuple[QueryCount, ...] | None:
    """The counts of the last days; None where queries are not counted."""
    return asked_of(settings, lambda store: store.counts(first_day(days)))


def asked_of(settings: "Settings", ask: Callable[[InsightStore], Awaitable[_Answer]]) -> _Answer | None:
    """What the store of the settings answers; None where there is none. Raises InsightsUnavailable."""

    async def run() -> _Answer | None:
        store = settings.open_insights()
        if store is None:
            return None
        try:
            return await ask(store)
        finally:
            await store.close()

    return asyncio.run(run())
