"""The plain counts that the measurement of one-letter searches is held against, and that it is held against them."""

from pathlib import Path

import pytest

from bench.built_indices import Shops
from bench.invented import invented_shops
from bench.letters import CHARACTERS, WrongTotalError, plain_totals, time_backend
from service.search.embedded.engine import EmbeddedBackend
from service.search.protocol import FindQuery
from tests.support.catalogues import build_into, shop, write_catalogue_directory
from tests.support.memory_sink import MemorySink
from tests.support.reference.backend import ReferenceBackend

SHOPS = [
    *invented_shops(200),
    shop("Über Dinge", "u1.internal", aliases=["7 Days"]),
    shop("大東京", "j1.internal"),
    shop("Quiet", "x1.internal", categories=[("z", "Z & Co")]),
    shop("Yellow", "h1.internal", visibility="under_review"),
]


@pytest.mark.rule("M3")
async def test_plain_totals_are_those_of_the_rules(tmp_path: Path) -> None:
    sink = MemorySink()
    build_into(sink, write_catalogue_directory(tmp_path, shops=SHOPS))
    assert sink.stamp is not None
    reference = ReferenceBackend(sink.stamp, sink.documents)
    expected = {
        text: (await reference.find(FindQuery(text, country=None, category=None, offset=0, limit=1))).total
        for text in CHARACTERS
    }
    assert plain_totals(SHOPS) == expected
    assert (expected["東"], expected["z"], expected["ü"], expected["y"]) == (1, 1, 1, 0)


def test_an_index_is_built_once_and_every_total_is_checked(tmp_path: Path) -> None:
    shops = Shops(tmp_path, 100)
    with shops.embedded() as first, Shops(tmp_path, 100).embedded() as again:
        index = Path(first.settings["data_dir"])
        assert again == first
    totals = shops.totals()
    timed = time_backend(EmbeddedBackend(index), totals, rounds=2)
    found = sum(total > 0 for total in totals.values())
    assert (len(timed.found), len(timed.empty)) == (2 * found, 2 * (len(CHARACTERS) - found))
    with pytest.raises(WrongTotalError):
        time_backend(EmbeddedBackend(index), {**totals, "b": totals["b"] + 1}, rounds=1)
