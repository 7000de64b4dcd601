"""The catalogue of `make open-catalogue`: its size, and that well-known shops are found, typed with errors."""

from pathlib import Path
from typing import Final

import pytest

from indexer.catalogue.open_data.files import write_open_data
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.relevance.development import embedded_engine
from tests.support.open_data import real_package

# What is typed, and the beginning of the domain that has to come first.
TYPED: Final = {
    "iekea": "ikea.", "adiads": "adidas.", "zaara": "zara.", "h and m": "hm.", "lidel": "lidl.",
    "carefour": "carrefour.", "walmrat": "walmart.", "cotsco": "costco.", "decatlon": "decathlon.",
    "sephroa": "sephora.", "mediamrkt": "mediamarkt.", "pumma": "puma.", "rossman": "rossmann.", "uniqulo": "uniqlo.",
    "primrak": "primark.", "best buuy": "bestbuy.", "swarovsky": "swarovski.", "pandroa": "pandora.",
    "toys r u": "toysrus.", "gamestpo": "gamestop.", "leroy merln": "leroymerlin.", "tiffanny": "tiffany.",
    "louis vuiton": "louisvuitton.", "nikee": "nike.", "sainsburry": "sainsburys.",
    "marks & spencr": "marksandspencer.", "wooolworths": "woolworths.", "skechrs": "skechers.",
    "foot loker": "footlocker.", "ユニクロ": "uniqlo.",
}  # fmt: skip
assert len(TYPED) == 30


@pytest.mark.timeout(600)
async def test_eight_thousand_real_shops_are_found_typed_with_errors(tmp_path: Path) -> None:
    done = write_open_data(real_package(), tmp_path / "shops").converted
    assert len(done.shops) >= 7_000
    # Every brand of a kind of shop is a shop, one with another, or counted with its reason.
    reasons = {
        reason: count for reason, count in done.left_out.items() if "not " not in reason and "sites" not in reason
    }
    main = len(done.shops) - done.national
    assert main + done.joined + done.services.total() + sum(reasons.values()) == 8_842
    async with embedded_engine(tmp_path / "shops", tmp_path / "index") as backend:
        snapshot = await backend.snapshot()
        first = {}
        for typed in TYPED:
            suggested = snapshot.suggest(SuggestQuery.of(typed, None, 8)).shops
            first[typed] = suggested[0].shop.domain if suggested else ""
    assert {typed: first[typed] for typed, domain in TYPED.items() if not first[typed].startswith(domain)} == {}
