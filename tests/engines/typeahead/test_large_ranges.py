"""Prefixes that very many texts have: by rank, by trees of blocks, and with more ranges than are noted at a time (M9).

A catalogue by seeded chance, as what a property test makes is too small for any of these.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import ShopDocument
from index_mappings.forms import QueryForms, query_forms
from service.search.typeahead.typeahead import Typeahead
from tests.engines.typeahead.segmented import Segmented, assert_answers, document, forms_of, with_texts

pytestmark = pytest.mark.rule("M9", "M9.typos", "M9.words", "M1", "M7")

# One text of a hundred is a large range; some blocks of 16 texts are worth a tree. This is far from both.
_MANY: Final = 7_000
_LETTERS: Final = "bcdfghjklmnpqrstvwxz"
_LIMITS: Final = (1, 3, 8, 20)
# Whatever begins with "abcd" but for its third letter stands in another range for each of these.
_OTHERS: Final = tuple(chr(0x4E00 + 7 * number) for number in range(260))


def _catalogue() -> Iterator[ShopDocument]:
    chance = random.Random(11)  # noqa: S311 - the same each time

    def shop(number: int, full: list[str], keys: list[str], words: Sequence[str] = ()) -> ShopDocument:
        popularity = chance.choice((None, 0.0, float(chance.randrange(40)), float(chance.randrange(4_000))))
        markets = chance.choice(((), ("DE",), ("DE", "FR"), ("FR",), ("WORLDWIDE",)))
        return with_texts(document(f"s{number:05d}", popularity=popularity, countries=markets), full, keys, words)

    def word(size: int) -> str:
        return "".join(chance.choice(_LETTERS) for _ in range(size))

    for number in range(_MANY):
        if number % 7 == 0:
            # Large: a seventh of all. One of ten is a full form only, one a key only.
            text = f"large{word(2)}"
            words = ["large", "many"] if number % 2 else ["many", *["few"] * (number % 9 == 0)]
            if number % 3 == 0:
                # Words of one beginning, together rarer than the others.
                words.append(f"wood{number % 10}")
            yield shop(number, [text] if number % 10 else [], [text] if number % 5 else [], words)
        elif number % 100 == 1:
            # Of one beginning each, so many that they fill some blocks.
            yield shop(number, [], [f"tree{word(3)}", f"o{chance.choice(_LETTERS)}chid{word(2)}"])
        elif number % 200 == 2:
            yield shop(number, [f"tree{word(3)}"], [])
        else:
            # Many shops have one text.
            yield shop(number, [], [word(4), word(5), f"{chance.choice('abc')}common"])
    for number, letter in enumerate(_OTHERS):
        yield shop(_MANY + 2 * number, [], [f"ab{letter}d{word(1)}"])
        yield shop(_MANY + 2 * number + 1, [], [f"ab{letter}cd{word(1)}"])


@pytest.fixture(scope="module")
def segmented(tmp_path_factory: pytest.TempPathFactory) -> Segmented:
    """The catalogue, of which the best of each range are removed, replaced, or found by other texts."""
    segmented = Segmented(tmp_path_factory.mktemp("changed"), _catalogue())
    best = {shop_id for texts in _ASKED for _, shop_id in segmented.expected(_forms(texts))[:9]}
    listed = sorted(best)
    replaced = [with_texts(document(shop_id, popularity=5.0), ["larger"], ["tree"]) for shop_id in listed[1::3]]
    segmented.change(replaced, listed[::3])
    return segmented


@pytest.fixture(scope="module")
def typeahead(segmented: Segmented) -> Typeahead:
    return segmented.opened()


def _forms(texts: tuple[str, ...]) -> QueryForms:
    return query_forms(" ".join(texts[1:])) if texts[0] == "words" else forms_of(*texts)


# Forms of one word, or several words.
_ASKED: Final = (
    ("words", "many", "larg"),
    ("words", "large", "man"),
    ("words", "many", "wood"),
    ("words", "large", "many", "woo"),
    ("words", "few", "many"),
    ("words", "many", "few"),
    ("words", "many", "zzz"),
    ("words", "qqqqqqqq", "many", "large"),
    ("words", "few", "qqq"),
    ("words", "large", "qqqq"),
    ("large",),
    ("larg",),
    ("largeb", "large"),
    ("tree",),
    ("treeb",),
    ("trees", "tree"),
    ("xlarge",),
    ("lrage",),
    ("lartge",),
    ("larxe",),
    ("xree",),
    ("ttree",),
    ("ochid",),
    ("ochi",),
    ("xcommon",),
    ("common",),
    ("acommon", "tree"),
    ("abcd",),
    ("abxcd",),
    ("abcd", "xcommon", "large"),
)


@pytest.mark.parametrize("texts", _ASKED, ids="+".join)
def test_the_best_of_very_many_are_those_that_the_rules_require(
    segmented: Segmented, typeahead: Typeahead, texts: tuple[str, ...]
) -> None:
    for country in (None, "DE", "FR", "JP"):
        assert assert_answers(segmented, typeahead, _forms(texts), country, _LIMITS) > 8


@pytest.mark.rule("M9.country")
def test_of_a_large_range_the_few_that_sell_in_a_country_are_all_found(tmp_path: Path) -> None:
    # Their numbers are at both sides of the words of 32 bits that hold no shop, and in the last, shorter one.
    few = {0, 31, 64, 65, 95, 160, 191, 199}
    shops = [
        document(
            f"s{number:03d}", f"Lamp {number}", popularity=200 - number, countries=["AT" if number in few else "DE"]
        )
        for number in range(200)
    ]
    segmented = Segmented(tmp_path, shops)
    for country, found in (("AT", len(few)), ("DE", 200 - len(few)), ("FR", 0)):
        assert assert_answers(segmented, segmented.opened(), forms_of("lamp"), country, (1, 7, 8, 9, 200)) == found
