"""Timestamps: exact to the microsecond, RFC 3339 in UTC on the wire (A4). Coupon codes: what one may hold (A9, Q5)."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.values import (
    CODE_PATTERN,
    FAR_AHEAD,
    LONG_AGO,
    folded_code,
    microseconds,
    normal_code,
    optional_timestamp,
    wire_timestamp,
)

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
# Away from the ends of the calendar, so that every zone has a date for them.
timestamps = st.integers(-62_000_000_000_000_000, 253_000_000_000_000_000).map(
    lambda since: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=since)
)


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


@pytest.mark.rule("A4")
@given(timestamps, timestamps)
def test_timestamps_compare_like_their_numbers_and_no_number_is_beyond_an_open_end(
    one: datetime, other: datetime
) -> None:
    assert (one < other) == (microseconds(one) < microseconds(other))
    assert LONG_AGO < microseconds(one) < FAR_AHEAD


@pytest.mark.rule("A4")
@given(timestamps, st.integers(-1_439, 1_439))
def test_a_timestamp_is_written_in_utc_whatever_its_zone_and_reads_back_exactly(
    timestamp: datetime, minutes: int
) -> None:
    elsewhere = timestamp.astimezone(timezone(timedelta(minutes=minutes)))
    written = wire_timestamp(elsewhere)
    assert written.endswith("Z")
    assert datetime.fromisoformat(written) == timestamp


@pytest.mark.rule("A4")
def test_a_fraction_is_written_only_where_there_is_one() -> None:
    noon = datetime(2031, 5, 6, 12, tzinfo=UTC)
    assert [optional_timestamp(timestamp) for timestamp in (noon, noon.replace(microsecond=50), None)] == [
        "2031-05-06T12:00:00Z",
        "2031-05-06T12:00:00.000050Z",
        None,
    ]


def test_one_microsecond_is_one() -> None:
    noon = datetime(2031, 5, 6, 12, tzinfo=UTC)
    assert microseconds(noon + timedelta(microseconds=1)) - microseconds(noon) == 1
    assert microseconds(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert microseconds(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
