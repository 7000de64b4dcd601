"""Segments against the plain rules: all tiers but those that categories add to (M9)."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index_mappings.documents import ShopDocument
from index_mappings.forms import QueryForms, query_forms
from tests.engines.typeahead.segmented import Segmented, assert_answers, document, forms_of, with_texts

pytestmark = pytest.mark.rule("M9", "M9.typos", "M9.words", "M1", "M7")

_LETTERS = "abc𐐨"
# The last code point of all, and one that UTF-16 would sort behind those after it.
_ODD_LETTERS = "ab\ue000𐐨\U0010ffff"
_COUNTRIES = ("DE", "FR")
_ASKED_COUNTRIES = (None, None, *_COUNTRIES, "JP")
_POPULARITIES = st.sampled_from((None, 0.0, 0.5, 0.5, 7.0))
_MARKETS = st.sampled_from(((), (), ("WORLDWIDE",), ("DE",), ("FR",), ("DE", "FR")))
_MOST_SHOPS = 12
_IDS = st.integers(0, _MOST_SHOPS + 3).map(lambda number: f"{'sS-_'[number % 4]}{number}")

_MANY = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True, slots=True)
class _Change:
    put: list[ShopDocument]
    removed: list[str]


@st.composite
def _with_odd_texts(draw: st.DrawFn) -> ShopDocument:
    """A shop with any texts at all, of which some are full forms and no keys."""
    words = st.text(_ODD_LETTERS, min_size=1, max_size=5)
    texts = st.lists(
        st.text(_ODD_LETTERS, min_size=1, max_size=9) | st.lists(words, min_size=2).map(" ".join), max_size=4
    )
    made = document(draw(_IDS), popularity=draw(_POPULARITIES), countries=draw(_MARKETS))
    return with_texts(made, draw(texts), draw(texts), draw(st.lists(words, max_size=4)))


def _several(shops: st.SearchStrategy[ShopDocument], most: int) -> st.SearchStrategy[list[ShopDocument]]:
    return st.lists(shops, max_size=most, unique_by=lambda shop: shop.id)


def _changes(shops: st.SearchStrategy[ShopDocument]) -> st.SearchStrategy[list[_Change]]:
    change = st.builds(_Change, _several(shops, 5), st.lists(_IDS, max_size=4))
    return st.lists(change, max_size=2)


@st.composite
def _misspelt(draw: st.DrawFn, text: str, letters: str) -> str:
    """The text, or its beginning, with errors."""
    text = text[: draw(st.integers(min(1, len(text)), len(text)))]
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 1, 2)))):
        at = draw(st.integers(0, max(0, len(text) - 1)))
        letter = draw(st.sampled_from(letters))
        text = draw(
            st.sampled_from(
                (
                    text[:at] + letter + text[at:],
                    text[:at] + text[at + 1 :],
                    text[:at] + letter + text[at + 1 :],
                    text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :],
                    text + letter,
                )
            )
        )
    return text


def _check(
    built: list[ShopDocument], changes: list[_Change], asked: Sequence[tuple[QueryForms, str | None, int]]
) -> None:
    with TemporaryDirectory() as directory:
        segmented = Segmented(Path(directory), built)
        for change in changes:
            taken = {shop.id for shop in change.put}
            segmented.change(change.put, [shop_id for shop_id in change.removed if shop_id not in taken])
        typeahead = segmented.opened()
        for forms, country, limit in asked:
            assert_answers(segmented, typeahead, forms, country, (limit,))


@_MANY
@given(built=_several(_with_odd_texts(), _MOST_SHOPS), changes=_changes(_with_odd_texts()), data=st.data())
def test_any_texts_are_found_as_the_rules_require(
    built: list[ShopDocument], changes: list[_Change], data: st.DataObject
) -> None:
    shops = (*built, *(shop for change in changes for shop in change.put))
    known = [text for shop in shops for text in (*shop.full, *shop.keys, *shop.words)]
    one = st.sampled_from(known or ["ab"]) | st.text(_ODD_LETTERS, min_size=1, max_size=9)
    one = one.flatmap(lambda text: _misspelt(text, _ODD_LETTERS)).filter(str.strip)
    alone = st.lists(one, min_size=1, max_size=3, unique=True).map(lambda texts: forms_of(*texts))
    words = sorted({word for text in known for word in text.split()}) or ["ab"]
    several = st.lists(st.sampled_from(words) | one, min_size=2, max_size=8).map(
        lambda texts: query_forms(" ".join(texts))
    )
    asked = data.draw(
        st.lists(
            st.tuples(alone | several, st.sampled_from(_ASKED_COUNTRIES), st.integers(1, 20)), min_size=1, max_size=10
        )
    )
    _check(built, changes, asked)


# A word with a letter twice in a row, one that begins and ends alike, and an astral one.
@pytest.mark.parametrize("word", ["abcd", "aabbc", "abcabcabc", "𐐨a𐐨b𐐨"])
def test_every_error_at_every_position_of_every_prefix_is_found_and_nothing_else(tmp_path: Path, word: str) -> None:
    letters = sorted({*word, "z"})
    near = {_edited for end in range(1, len(word) + 1) for _edited in _all_edited(word[:end], letters)}
    shops = [with_texts(document("word"), (), [word]), with_texts(document("other"), (), [word[2:] + word[:2]])]
    segmented = Segmented(tmp_path, shops)
    typeahead = segmented.opened()
    twice = {text for once in sorted(near)[::7] for text in _all_edited(once, letters)}
    for text in sorted((near | twice) - {""}):
        assert_answers(segmented, typeahead, forms_of(text), None, (1, 2))
    assert sum(segmented.expected(forms_of(text)) != [] for text in near - {""}) > 50


def _all_edited(text: str, letters: Sequence[str]) -> set[str]:
    cuts = [(text[:place], text[place:]) for place in range(len(text) + 1)]
    return {
        *(before + after[1:] for before, after in cuts if after),
        *(before + after[1] + after[0] + after[2:] for before, after in cuts if len(after) > 1),
        *(before + letter + after[1:] for before, after in cuts if after for letter in letters),
        *(before + letter + after for before, after in cuts for letter in letters),
    }


def test_one_shop_with_many_texts_of_a_beginning_is_there_once_and_with_its_best_tier(tmp_path: Path) -> None:
    many = [f"ab{letter}c" for letter in "abcdefghijklmnopqrstuvwxyz"]
    segmented = Segmented(
        tmp_path,
        [
            with_texts(document("both", popularity=1), ["ab", *many], many),
            with_texts(document("key", popularity=2), ["zz"], many),
            with_texts(document("full", popularity=None), many, ["zz"]),
        ],
    )
    typeahead = segmented.opened()
    assert segmented.expected(forms_of("ab")) == [(8, "both"), (7, "full"), (5, "key")]
    for texts in (("ab",), ("ab", "abc"), ("abxc",), ("abzc", "abxc"), ("baac",), ("abcc", "ab", "zz")):
        assert assert_answers(segmented, typeahead, forms_of(*texts), None, range(1, 5))


def test_where_enough_is_found_nothing_is_looked_for_and_the_answer_is_no_longer(tmp_path: Path) -> None:
    shops = [with_texts(document(f"s{number:02d}"), ["abcd"], ["abcd"]) for number in range(25)]
    near = [with_texts(document(f"n{number:02d}", popularity=9), ["abxd"], ["abxd"]) for number in range(25)]
    segmented = Segmented(tmp_path, [*shops, *near])
    typeahead = segmented.opened()
    assert assert_answers(segmented, typeahead, forms_of("abcd"), None, (1, 19, 20, 25, 26, 49, 50, 51)) == 50
    segmented.change([with_texts(document("m0"), ["abcd"], ["abcd"])], ["s00"])
    assert assert_answers(segmented, segmented.opened(), forms_of("abcd"), None, (1, 2, 24, 25, 26, 50, 51)) == 50


def test_nothing_outside_an_array_is_read_or_written(tmp_path: Path, plain: Mapping[str, ModuleType]) -> None:
    chance = random.Random(5)  # noqa: S311 - the same each time

    def texts(most: int) -> list[str]:
        return ["".join(chance.choices("abc", k=chance.randrange(1, 8))) for _ in range(chance.randrange(1, most))]

    def shop(number: int) -> ShopDocument:
        made = document(f"s{number}", popularity=chance.choice((None, 1.0, 2.0)))
        return with_texts(made, texts(3), texts(5), texts(4))

    segmented = Segmented(tmp_path, map(shop, range(60)))
    segmented.change([shop(5), shop(77)], ["s1", "s59"])
    typeahead = segmented.opened()
    for _ in range(60):
        words = texts(4)
        for forms in (forms_of(*dict.fromkeys(words)), query_forms(" ".join(words))):
            assert_answers(segmented, typeahead, forms, chance.choice(("DE", None)), (1, 5, 60))
    assert isinstance(plain["suggest"].suggest, FunctionType)
    assert isinstance(plain["arrays"].prefix_range, FunctionType)
