"""Folding: each step of the rule by itself, and what holds for every text there is."""

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Final
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.text import (
    fold,
    fold_by_script,
    has_word_character,
    is_blank,
    is_ideographic,
    joined,
    script_starts,
    words_of,
)

FOLDED: Final = tomllib.loads(Path(__file__).with_name("folding.toml").read_text(encoding="utf-8"))


@pytest.mark.rule("X1", "X1.last_form")
@pytest.mark.parametrize(
    ("text", "folded"),
    [pytest.param(*case, id=f"{rule}: {case[0]}") for rule, cases in FOLDED.items() for case in cases],
)
def test_each_step_of_folding_does_what_it_says(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.rule("X1")
@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("쿠팡", "ㅋㅜㅍㅏㅇ"), ("쿠파", "ㅋㅜㅍㅏ"), ("쿺", "ㅋㅜㅍ"), ("쿠", "ㅋㅜ"), ("ㅋ", "ㅋ"), ("과", "ㄱㅗㅏ"),
        ("값", "ㄱㅏㅂㅅ"), ("ㄳ", "ㄱㅅ"), ("ㅘ", "ㅗㅏ"), ("밖", "ㅂㅏㄲ"), ("있", "ㅇㅣㅆ"), ("빵", "ㅃㅏㅇ"),
        ("\uffa1\uffc2", "ㄱㅏ"),
    ],
)  # fmt: skip
def test_hangul_is_the_jamo_that_are_typed(text: str, folded: str) -> None:
    assert fold(text) == fold(normalize("NFD", text)) == folded


@pytest.mark.rule("X1")
def test_a_syllable_on_its_way_to_the_next_begins_the_name() -> None:
    steps = ("ㅋ", "쿠", "쿺", "쿠파", "쿠팡", "쿠팡ㅁ", "쿠팡마")
    assert [step for step in steps if not fold("쿠팡마켓").startswith(fold(step))] == []


@pytest.mark.rule("X1")
@pytest.mark.parametrize(
    ("text", "folded"),
    [("みどり", "みどり"), ("쿠팡", "쿠팡"), ("ＣＡＦÉ ﾐﾄﾞﾘ", "cafe ミドリ"), ("کتاب", "كتاب"), (" ??? ", "???")],
)
def test_by_script_only_kana_and_hangul_are_what_they_were(text: str, folded: str) -> None:
    assert fold_by_script(text) == folded


@pytest.mark.rule("X1.last_form")
@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u00a0", "\u200d", " \ufeff ", "\ufe0f", "\u3164"])
def test_blank_text_has_no_form_at_all(text: str) -> None:
    assert (fold(text), is_blank(text), words_of(text)) == ("", True, ())


@pytest.mark.rule("M6.ignored")
@pytest.mark.parametrize("text", ["???", "’", "´", "\u0301", "…"])
def test_punctuation_is_no_word(text: str) -> None:
    assert (words_of(text), has_word_character(fold(text)), is_blank(text)) == ((), False, False)


def test_joining_takes_the_spaces_out() -> None:
    assert joined("marks and spencer") == "marksandspencer"


@pytest.mark.rule("M3")
def test_one_character_says_something_in_han_kana_and_hangul_only() -> None:
    assert [char for char in "緑みミ쿠ㅋ〆aяא1ก々ー" if is_ideographic(char)] == list("緑みミ쿠ㅋ〆々ー")


@pytest.mark.rule("X1")
@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.rule("X1")
@given(st.text())
def test_folded_text_has_no_outer_space_and_words_are_separated_by_one(text: str) -> None:
    folded = fold(text)
    assert folded == folded.strip()
    if has_word_character(folded):
        assert folded.split(" ") == folded.split()


@pytest.mark.rule("X1", "X1.last_form")
@given(st.text())
def test_only_blank_text_folds_to_nothing(text: str) -> None:
    assert (fold(text) == "") == is_blank(text)


@pytest.mark.rule("X2.unspaced")
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("銀座コージーコーナー", ["銀座", "コージーコーナー"]),
        ("ファッションセンターしまむら", ["ファッションセンター", "しまむら"]),
        ("佐々木書店", ["佐々木書店"]),
        ("トイザらス", ["トイザらス"]),
        ("タイヤ館", ["タイヤ館"]),
        ("眼鏡88", ["眼鏡", "88"]),
        ("11번가", ["11", "번가"]),
        ("auショップ", ["au", "ショップ"]),
        ("赤ちゃん本舗 東京", ["赤", "ちゃん", "本舗 東京"]),
        ("銀座 コージー", ["銀座 コージー"]),
        ("abc123 мир", ["abc123 мир"]),
        ("lamp", ["lamp"]),
        ("", [""]),
    ],
)
def test_a_change_of_script_begins_a_word_where_words_are_not_spaced(text: str, parts: list[str]) -> None:
    starts = [0, *script_starts(text), len(text)]
    assert [text[start:end] for start, end in pairwise(starts)] == parts
