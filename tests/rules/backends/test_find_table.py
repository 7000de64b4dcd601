"""The decision's table of queries, each row in a small world of its own (M6)."""

from typing import Any, Final

import pytest

from service.search.protocol import WordCount
from tests.rules.backends.asking import find, names
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop

_PLAIN: Final[dict[str, Any]] = {"total": 1, "ignored": (), "did_you_mean": [], "word_counts": None}
_EMPTY: Final[dict[str, Any]] = {"shops": [], **_PLAIN, "total": 0}
_ROWS: Final[dict[str, tuple[list[dict[str, Any]], dict[str, Any]]]] = {
    "Marks & Spencer": ([shop("Marks & Spencer")], {"shops": ["Marks & Spencer"], **_PLAIN}),
    "mcdonald s": ([shop("McDonald's")], {"shops": ["McDonald's"], **_PLAIN}),
    "stewart´s": ([shop("Stewart's Shops")], {"shops": ["Stewart's Shops"], **_PLAIN}),
    "tui.co.uk": ([shop("TUI", "tui.co.uk")], {"shops": ["TUI"], **_PLAIN}),
    "zalando qqxx": ([shop("Zalando")], {"shops": ["Zalando"], **_PLAIN, "ignored": ("qqxx",)}),
    "amazon de": ([shop("Amazon", "amazon.de")], {"shops": ["Amazon"], **_PLAIN}),
    "amazon uk": (
        [shop("Amazon", "amazon.com", popularity=9), shop("Amazon Marketplace", "amazon.co.uk")],
        {"shops": ["Amazon Marketplace"], **_PLAIN},
    ),
    "nike mx": (
        [shop("Nike", "nike.com"), shop("Zapatos", "zapatos.mx")],
        {**_EMPTY, "did_you_mean": ["Nike"], "word_counts": (WordCount("nike", 1), WordCount("mx", 1))},
    ),
    "body shop": (
        [shop("The Body Shop"), shop("Body Shop Supplies", popularity=9)],
        {"shops": ["The Body Shop", "Body Shop Supplies"], **_PLAIN, "total": 2},
    ),
    "???": ([shop("???")], {"shops": ["???"], **_PLAIN}),
    "qqxx": ([shop("Zalando")], {**_EMPTY, "ignored": ("qqxx",)}),
    "qqyx": ([shop("Qqxy")], {**_EMPTY, "ignored": ("qqyx",), "did_you_mean": ["Qqxy"]}),
}


@pytest.mark.rule("M6", "M6.ignored", "M6.did_you_mean", "M6.word_counts", "M3.labels")
@pytest.mark.parametrize("query", _ROWS)
async def test_each_row_is_answered_as_the_table_says(directory: Directory, query: str) -> None:
    shops, expected = _ROWS[query]
    found = await find(await directory(shops), query)
    assert {
        "shops": names(found.shops),
        "total": found.total,
        "ignored": found.ignored,
        "did_you_mean": names(found.did_you_mean),
        "word_counts": found.word_counts,
    } == expected
