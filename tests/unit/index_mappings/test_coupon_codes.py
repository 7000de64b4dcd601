"""What a coupon code may hold, and when two codes are the same (A9, Q5)."""

import json
import re
from typing import Final
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.values import CODE_PATTERN, folded_code, normal_code

PUNCTUATION: Final = "._+*%!#&$/@-"
CODES: Final = ("A", "aZ09" + PUNCTUATION, "ÄRGER10", "скидка", "初回割引", "خصم٢٠", "छूट", "９９", "½", "a" * 64)
NO_CODES: Final = (
    "", " ", "A B", "A\n", "a" * 65, "<b>", "a=b", "a,b", "a;b", "~", "'", '"', "`", "😀", "–", "€5", "\x00", "\ud800",
)  # fmt: skip
# Letters and marks that are invisible: Default_Ignorable_Code_Point without the format characters.
INVISIBLE: Final = (
    "\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u180b", "\u180f", "\u3164", "\ufe0f", "\uffa0", "\U000e0100",
)  # fmt: skip
FORMAT: Final = ("\u00ad", "\u200b", "\u200d", "\u202e", "\u2060", "\ufeff", "\U000e0041")


@pytest.mark.rule("A9")
def test_letters_marks_and_numbers_of_any_script_are_a_code_and_the_rest_is_not() -> None:
    assert [normal_code(text) for text in CODES] == list(CODES)
    refused = (*NO_CODES, *(f"A{char}B" for char in (*INVISIBLE, *FORMAT)))
    assert [text for text in refused if normal_code(text) is not None] == []


@pytest.mark.rule("A9")
def test_a_code_is_normalised_before_its_length_is_counted() -> None:
    assert normal_code("A\u0308RGER") == "ÄRGER"
    assert normal_code("e\u0301" * 64) == "é" * 64
    assert normal_code("e\u0301" * 65) is None
    # Excluded from composition, so that 33 characters are 66 in NFC.
    assert normal_code("\u0958" * 33) is None


@pytest.mark.rule("Q5")
def test_codes_are_the_same_whatever_their_case() -> None:
    assert {folded_code(code) for code in ("straße", "STRASSE", "Straße")} == {"strasse"}
    # The case fold of this letter is not in NFC.
    assert folded_code("ΐ") == folded_code("\u1fd3") == normalize("NFC", "ΐ".casefold())


@pytest.mark.rule("A9")
@given(st.text(max_size=70))
def test_whatever_is_a_code_fits_the_pattern_and_stays_as_it_is(text: str) -> None:
    code = normal_code(text)
    if code is not None:
        assert normal_code(code) == code
        assert re.search(CODE_PATTERN, code)
        assert json.loads(json.dumps(code)) == code


@pytest.mark.rule("A9")
def test_the_pattern_decides_for_every_ascii_character_and_control_as_the_rule_does() -> None:
    characters = [chr(code) for code in range(0xA1)]
    by_rule = [char for char in characters if normal_code(char) is not None]
    assert [char for char in characters if re.search(CODE_PATTERN, char)] == by_rule
