"""The engines against the oracle: random catalogues, queries, coupons and clocks."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index_mappings.usable_codes import CHANNELS
from index_mappings.values import microseconds
from service.tools.find_shop import FIND_SHOP
from shop_directory.search.protocol import CouponQuery, FindQuery, Found, Snapshot
from shop_directory.typeahead.suggestions import SuggestQuery, SuggestResult
from tests.rules.backends.asking import call
from tests.rules.backends.backends import Opener, reference
from tests.rules.backends.strategies import (
    catalogues,
    category_names,
    clocks,
    coupon_lines,
    coupons,
    numbered,
    queries,
    shipping_statements,
)
from tests.support.catalogues import Lines, shop
from tests.support.rounds import rounds

CATALOGUES, QUESTIONS = map(int, os.environ.get("SHOP_DIRECTORY_AGREEMENT", "15x20").split("x"))
OPENSEARCH: Final = pytest.param("opensearch", marks=pytest.mark.opensearch)
# The fixture only says which engine is opened: it holds nothing from one example to the next.
MANY: Final = settings(
    max_examples=rounds(CATALOGUES),
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def compare(
    opener: Opener, ask: Callable[[Snapshot, Snapshot], Awaitable[None]], shops: Lines, **others: Lines
) -> None:
    """Build a catalogue for the reference and for a tested backend, and ask both."""

    async def ask_both(directory: Path) -> None:
        async with (
            reference(shops, directory / "oracle", **others) as oracle,
            opener(shops, directory / "engine", **others) as tested,
        ):
            await ask(await oracle.snapshot(), await tested.snapshot())

    with TemporaryDirectory() as directory:
        asyncio.run(ask_both(Path(directory)))


async def _answer(snapshot: Snapshot, query: FindQuery | SuggestQuery) -> Found | SuggestResult:
    return await snapshot.find(query) if isinstance(query, FindQuery) else snapshot.suggest(query)


@pytest.mark.rule(
    "M1", "M2", "M3", "M3.labels", "M4", "M5", "M6", "M6.ignored", "M6.nothing_left", "M6.did_you_mean",
    "M6.word_counts", "M7", "M9", "M9.one_shop", "M9.dotted", "M9.typos", "M9.words", "M10", "M11", "I5", "F1", "F3",
    "F5", "F6", "F7",
)  # fmt: skip
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("opener", ["kernel", "embedded", OPENSEARCH], indirect=True)
@MANY
@given(catalogue=catalogues, data=st.data())
def test_every_engine_answers_like_the_reference(
    opener: Opener, catalogue: list[dict[str, Any]], data: st.DataObject
) -> None:
    others = {
        "categories": data.draw(category_names),
        "shipping": data.draw(shipping_statements),
        "coupons": data.draw(coupons),
    }
    asked = [data.draw(queries(catalogue)) for _ in range(QUESTIONS)]

    async def ask(oracle: Snapshot, tested: Snapshot) -> None:
        assert await tested.categories() == await oracle.categories()
        for query in asked:
            assert await _answer(tested, query) == await _answer(oracle, query), query

    compare(opener, ask, catalogue, **others)


_SHOPS: Final = [
    shop("Nord", "nord.internal", id="s1"),
    shop("Sud", "sud.test", id="s2"),
    shop("Ost", "example.com", id="s3"),
    shop("Hidden", "hidden.internal", id="h", visibility="under_review"),
]
_REFERENCES: Final = ("s1", "nord.internal", "s2", "sud.test", "s3", "h", "hidden.internal", "nobody")

_catalogues = st.lists(coupon_lines(("s1", "s1", "s2", "s3", "h", "nobody")), max_size=40).map(numbered("c"))
_queries = st.builds(
    CouponQuery,
    shops=st.one_of(st.none(), st.lists(st.sampled_from(_REFERENCES), max_size=6).map(tuple)),
    now_us=clocks,
    channel=st.sampled_from(CHANNELS),
    country=st.sampled_from((None, "AT", "DE", "FR")),
    list_limit=st.sampled_from((None, None, None, 0, 3)),
)


def _taking_part(catalogue: list[dict[str, Any]], query: CouponQuery, named: str | None) -> int:
    """How many coupons of public shops have begun: the number that the balance must come to."""
    public = {fields["id"]: fields["domain"] for fields in _SHOPS if fields["visibility"] == "public"}
    return sum(
        line["shop_id"] in public
        and named in (None, line["shop_id"], public[line["shop_id"]])
        and (line["valid_from"] is None or microseconds(datetime.fromisoformat(line["valid_from"])) <= query.now_us)
        for line in catalogue
    )


async def assert_balances(
    oracle: Snapshot, tested: Snapshot, query: CouponQuery, catalogue: list[dict[str, Any]]
) -> None:
    """Every coupon is in the balance once."""
    balances = await tested.coupons(query)
    assert balances == await oracle.coupons(query), query
    for named, found in zip((None,) if query.shops is None else query.shops, balances, strict=True):
        if found is None:
            assert named in ("h", "hidden.internal", "nobody")
            continue
        withheld = found.expired + found.rejected + found.reserved + found.policy
        assert found.usable + withheld == _taking_part(catalogue, query, named), query
        if found.views is None:
            assert query.list_limit is not None
            assert found.usable > query.list_limit
        else:
            assert len(found.views) == found.usable, query


async def assert_found_by_code(oracle: Snapshot, tested: Snapshot, query: CouponQuery) -> None:
    """A shop has a code exactly while list_coupons lists one of it, a good one for its filters."""
    public = tuple(str(line["id"]) for line in _SHOPS if line["visibility"] == "public")
    now = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=query.now_us)
    audience: dict[str, Any] = {"channel": query.channel, "caller_country": query.country}
    listed = await tested.coupons(replace(query, shops=public, list_limit=None))
    views = {shop_id: coupons.views for shop_id, coupons in zip(public, listed, strict=True) if coupons}
    for wanted, country in product(("has_code", "verified_code"), (None, "AT")):
        asked: dict[str, Any] = {"query": "", wanted: True, "country": country}
        found, expected = [
            await call(directory, FIND_SHOP, now=now, **audience, **asked) for directory in (tested, oracle)
        ]
        assert found == expected, query
        usable = [
            shop_id
            for shop_id, codes in views.items()
            if any(
                (wanted == "has_code" or code["verificationStatus"] == "verified_applied")
                and (country is None or code["countries"] is None or {country, "WORLDWIDE"} & {*code["countries"]})
                for code in codes or ()
            )
        ]
        ids = [one["id"] for one in found["results"]]
        # A caller of an unknown country is shown codes that are blocked in some, and not promised them.
        assert ids == usable if query.country else set(ids) <= set(usable), query


@pytest.mark.rule("A4", "A5", "A6", "I18", "I20", "I39", "I40", "I41", "M11.other_lists", "F3", "F4")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("opener", ["reference", "embedded", OPENSEARCH], indirect=True)
@MANY
@given(catalogue=_catalogues, data=st.data())
def test_the_balance_comes_to_every_coupon_once_and_a_search_finds_the_shops_with_a_code_on_every_engine(
    opener: Opener, catalogue: list[dict[str, Any]], data: st.DataObject
) -> None:
    asked = [data.draw(_queries) for _ in range(QUESTIONS)]

    async def ask(oracle: Snapshot, tested: Snapshot) -> None:
        for query in asked:
            await assert_balances(oracle, tested, query, catalogue)
            await assert_found_by_code(oracle, tested, query)

    compare(opener, ask, _SHOPS, coupons=catalogue)
