"""Generation names, the stamp and the operations document, which are trusted whole or not at all."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.generations import (
    FollowerStatus,
    Operations,
    ResourceAccount,
    Stamp,
    alias_name,
    first_stamp,
    index_name,
    is_generation,
    new_generation,
)

ACCOUNT = ResourceAccount("P", "a", "calls", 1.5, 10.0, "2031-05-06T00:00:00Z", "ok", "2031-05-05T12:00:00Z")
BARE = ResourceAccount("P", "b", None, None, None, None, None, None)
FOLLOWER = FollowerStatus("file", "line 3, byte 99", 0, "2031-05-06T07:08:09Z", "2031-05-06T07:08:09Z")
NOW = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
NAME = "20310506t070809000010-0a1b2c"
STAMP = Stamp(SCHEMA_VERSION, NAME, 7, "2031-05-06T07:08:09Z", "pos-9", MappingProxyType({"shops": 2, "categories": 1}))
# A stamp of an older schema version has no typeahead, and must be read to be distinguished from this one.
REQUIRED = sorted({*STAMP.as_wire()} - {"typeahead"})
timestamps = st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@pytest.mark.parametrize(
    "operations",
    [
        Operations((), None),
        Operations((ACCOUNT, BARE), FOLLOWER),
        Operations((), FollowerStatus("sql", None, None, None, "2031-05-06T07:08:09Z")),
    ],
)
def test_an_operations_document_comes_back_from_json_as_it_was(operations: Operations) -> None:
    assert Operations.from_wire(json.loads(json.dumps(operations.as_wire()))) == operations


def test_fields_of_a_later_version_of_the_operations_document_are_ignored() -> None:
    stored = Operations((ACCOUNT,), FOLLOWER).as_wire()
    later = {
        **stored,
        "accounts": [{**stored["accounts"][0], "colour": "green"}],
        "follower": {**stored["follower"], "host": "h"},
        "more": 1,
    }
    assert Operations.from_wire(later) == Operations((ACCOUNT,), FOLLOWER)


def test_a_whole_number_in_an_account_is_a_number() -> None:
    stored = Operations((ACCOUNT,), None).as_wire()
    stored["accounts"][0]["limit"] = 10
    assert Operations.from_wire(stored) == Operations((ACCOUNT,), None)


def _with(part: str, **changed: object) -> dict[str, Any]:
    stored = Operations((ACCOUNT,), FOLLOWER).as_wire()
    if part == "follower":
        return {**stored, "follower": {**stored["follower"], **changed}}
    return {**stored, "accounts": [{**stored["accounts"][0], **changed}]}


@pytest.mark.parametrize(
    "stored",
    [
        {},
        [],
        "operations",
        {"accounts": [], "follower": "unknown"},
        {"accounts": None, "follower": None},
        {"accounts": [{"provider": "P"}], "follower": None},
        _with("account", used="many"),
        _with("account", limit=True),
        _with("account", provider=None),
        _with("follower", waiting=True),
        _with("follower", waiting=1.5),
        _with("follower", told_at=None),
    ],
)
def test_what_is_no_operations_document_is_refused(stored: Any) -> None:  # noqa: ANN401 - whatever lies there
    with pytest.raises(ValueError, match="not an operations document"):
        Operations.from_wire(stored)


@pytest.mark.rule("G1")
@given(timestamps, timestamps)
def test_generation_names_sort_by_their_time_of_birth(one: datetime, other: datetime) -> None:
    first, second = new_generation(one), new_generation(other)
    assert is_generation(first)
    if one != other:
        assert (first < second) == (one < other)


@pytest.mark.rule("G1")
def test_a_generation_name_is_the_timestamp_in_utc_and_random_digits() -> None:
    name = new_generation(NOW.astimezone(timezone(timedelta(hours=9))))
    assert name.startswith("20310506t070809000010-")
    assert name != new_generation(NOW)


@pytest.mark.rule("G1")
@pytest.mark.parametrize(
    "text",
    ["", "live", NAME.upper(), f"{NAME}\n", f" {NAME}", f"{NAME}/../x", NAME[:-1], f"{NAME}0", NAME.replace("t", "-")],
)
def test_other_texts_are_no_generation_names(text: str) -> None:
    assert is_generation(NAME)
    assert not is_generation(text)


@pytest.mark.rule("G1")
def test_the_indices_of_a_generation_are_named_after_it_and_the_aliases_are_not() -> None:
    assert index_name("shops-eu", "categories", NAME) == f"shops-eu-categories-{NAME}"
    assert alias_name("shops-eu", "categories") == "shops-eu-categories"


@pytest.mark.rule("G1")
def test_a_first_stamp_says_when_by_what_code_and_counts_nothing_yet() -> None:
    assert first_stamp(NAME, NOW, "pos-9") == Stamp(SCHEMA_VERSION, NAME, 1, "2031-05-06T07:08:09Z", "pos-9", {})
    assert first_stamp(NAME, NOW).counted({"shops": 3}).counts == {"shops": 3}


@pytest.mark.rule("G1")
@pytest.mark.parametrize("stamp", [STAMP, replace(STAMP, source_position=None), replace(STAMP, counts={})])
def test_a_stamp_survives_the_wire(stamp: Stamp) -> None:
    assert Stamp.from_wire(json.loads(json.dumps(stamp.as_wire()))) == stamp


@pytest.mark.rule("G1")
@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        None,
        "stamp",
        {**STAMP.as_wire(), "generation": "live"},
        {**STAMP.as_wire(), "generation": None},
        {**STAMP.as_wire(), "sequence": "soon"},
        {**STAMP.as_wire(), "sequence": None},
        {**STAMP.as_wire(), "counts": None},
        {**STAMP.as_wire(), "counts": [1, 2]},
        {**STAMP.as_wire(), "counts": {"shops": "many"}},
        *({field: value for field, value in STAMP.as_wire().items() if field != gone} for gone in REQUIRED),
    ],
)
def test_a_damaged_stamp_is_refused_whole(document: Any) -> None:  # noqa: ANN401 - whatever JSON holds
    with pytest.raises(ValueError, match=r"stamp|invalid literal"):
        Stamp.from_wire(document)


@pytest.mark.rule("G4.schema")
def test_a_stamp_of_another_schema_version_is_not_readable() -> None:
    assert STAMP.readable
    assert not replace(STAMP, schema_version=SCHEMA_VERSION + 1).readable
    assert not replace(STAMP, schema_version=SCHEMA_VERSION - 1).readable


@pytest.mark.rule("C1")
def test_caches_are_keyed_by_generation_and_sequence() -> None:
    assert STAMP.key == (NAME, 7)
    assert replace(STAMP, sequence=8).key != STAMP.key
