"""No suggest request takes the longer the more characters a script has, and those that take long are answered (M9)."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from index_mappings.forms import query_forms
from index_mappings.tiers import SUGGEST_CUT
from service.search.protocol import SuggestQuery
from tests.engines.typeahead.crowded import COMMON, COMPANY, HAN, crowded
from tests.engines.typeahead.followed import projected
from tests.engines.typeahead.segmented import Segmented, assert_answers, document, with_texts

# What the search found among a million shops before the work was bounded, each of another part of the kernel.
WORST: Final = (
    f"{COMPANY}椄螊犬tฆrvpen𐑊m649enmas6492.رcommerul14322",
    f"{COMPANY}.眕曁謑株式h社c眕曁9謑式h繖唪眕曁謑株3式会社.眕曁謑株式h社c",
    " ".join(HAN[start : start + 7] for start in range(0, 56, 7)),
    "online store the de company market group",
    "shop store company market the de online",
    "shop online j",
    "shop z",
    "online s",
    "books shoes e",
    "s h o p o n l i n e s t o r e a b c d e f g h i",
    "brondrond-27245o.it-nernailgrulmtaim-613000.intorn",
)

pytestmark = pytest.mark.rule("M9.typos", "M9.words")


def test_the_walk_with_two_errors_does_not_grow_with_the_characters_of_a_script(
    tmp_path: Path, plain: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{COMPANY}{HAN[number % 40]}{HAN[number]}" for number in range(1_200)]
    segmented = Segmented(tmp_path, [with_texts(document(f"s{n:04d}"), [name], [name]) for n, name in enumerate(names)])
    typeahead = segmented.opened()
    walk = plain["typos"]
    steps = 0
    fill_row = walk._fill_row

    def counted(*arguments: object) -> object:
        nonlocal steps
        steps += 1
        return fill_row(*arguments)

    monkeypatch.setattr(walk, "_fill_row", counted)
    typeahead.suggest(SuggestQuery.of(f"{COMPANY}abcdefgh", None, 20))
    assert 0 < steps < 30


def test_no_error_of_two_touches_a_han_character_of_a_key(tmp_path: Path) -> None:
    keys = ("周生生 chow sang", "abcdefgh株", "nor株thern")
    segmented = Segmented(tmp_path, [with_texts(document(f"s{n}"), [key], [key]) for n, key in enumerate(keys)])
    typeahead = segmented.opened()
    for text, found in (
        ("周生生 chwo snag", 1),  # two swaps of letters
        ("周生生 chow sxnx", 1),
        ("周生生x chow sanx", 1),
        ("周生美 chow sanx", 0),  # another Han character stands there
        ("周生 chow sanx", 0),  # one is missing
        ("生周生 chow sanx", 0),
        ("周生生株 chow sanx", 1),  # one too many is none of the key's
        ("abxdefhg株", 1),
        ("no株rthxrn", 0),  # a swap that touches one
    ):
        forms = query_forms(text, SUGGEST_CUT)
        assert assert_answers(segmented, typeahead, forms, None, (1, 20)) >= found, text
        two = [tier for tier, _ in segmented.expected(forms) if tier == 2]
        assert len(two) == found, text


def test_words_of_most_shops_are_found_as_the_rules_require(tmp_path: Path) -> None:
    shops = [projected(shop_id, line) for shop_id, line in crowded(3_000)]
    segmented = Segmented(tmp_path, shops)
    typeahead = segmented.opened()
    for text in (*WORST[3:], " ".join(COMMON[:6]), "the the shop shop", "shop st", "toys books zzzz"):
        assert_answers(segmented, typeahead, query_forms(text, SUGGEST_CUT), None, (1, 20))
        assert_answers(segmented, typeahead, query_forms(text, SUGGEST_CUT), "SE", (20,))
