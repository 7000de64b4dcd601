"""Timestamps: exact to the microsecond as numbers, and RFC 3339 in UTC on the wire (A4)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.values import FAR_AHEAD, LONG_AGO, microseconds, optional_timestamp, wire_timestamp

# Away from the ends of the calendar, so that every zone has a date for them.
timestamps = st.integers(-62_000_000_000_000_000, 253_000_000_000_000_000).map(
    lambda since: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=since)
)


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
