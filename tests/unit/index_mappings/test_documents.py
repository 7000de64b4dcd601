"""What is stored: documents and their sortable keys, generation names, the stamp, typeahead files as documents."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.documents import ANY_MARKET, DOCUMENTS, SCHEMA_VERSION, Form, Role, ShopDocument, declared_fields
from index_mappings.embedded import column_values, columns
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
from index_mappings.ngrams import frequent_terms
from index_mappings.opensearch import (
    CHUNK_BYTES,
    chunk_count,
    chunk_document,
    chunk_id,
    chunk_of,
    file_size,
    mapping,
    wire_document,
)
from index_mappings.tiers import coupon_rank_key, newest_first_key, rank_key, suggestion_score
from shop_directory.typeahead.manifest import Announcement

SHOP = ShopDocument(
    id="s1", refs=("s1", "ab.internal"), rank="ff-s1", name="Äb", aliases=("Ab & Co",), domain="ab.internal",
    categories=("books", "garden"), primary="books", countries=(), markets=(ANY_MARKET,), popularity=0.25, logo=None,
    offers=({"offer_id": "o1"},), offers_total=4, redirects=(), registrable="ab.internal", main_label="ab",
    stated=("ab", "ab co"), names=("ab", "ab.internal"), leading=("ab",), full=("ab", "ab.internal"),
    keys=("ab", "ab.internal", "abcd"), other_keys=("abcd",), words=("ab",), infixes=("abc", "緑b"),
    labels=("internal",), dotted=(), rests=(), clipped=("a",), ships_to=("yes:*", "no:CH"), codes=("*:*:*:*:",),
    related_digest="d1",
)  # fmt: skip
# What both engines are given of it.
TERMS: Final[dict[str, Any]] = {
    "id": "s1", "refs": ["s1", "ab.internal"], "rank": "ff-s1", "categories": ["books", "garden"], "primary": "books",
    "countries": [], "markets": ["*"], "registrable": "ab.internal", "main_label": "ab", "stated": ["ab", "ab co"],
    "full": ["ab", "ab.internal"], "words": ["ab"], "labels": ["internal"], "clipped": ["a"],
    "ships_to": ["yes:*", "no:CH"], "codes": ["*:*:*:*:"],
    "other_keys": ["abcd"],  # where long prefixes are looked up
    "other_keys_prefixes": ["a", "ab", "abc", "abcd"], "words_prefixes": ["a", "ab"],
    # Of fewer than three characters, only a part with a Han, kana or Hangul character counts.
    "infixes_short": ["緑", "緑b"],
}  # fmt: skip


@pytest.mark.rule("X4")
def test_the_cluster_is_given_finished_terms_of_a_shop_and_nothing_else() -> None:
    values = wire_document(SHOP)
    several = {name: sorted(value) for name, value in values.items() if name.endswith(("_short", "_prefixes"))}
    assert values | several == TERMS | {
        "full_prefixes": ["ab.internal"[:length] for length in range(1, 9)], "name": "Äb", "aliases": ["Ab & Co"],
        "domain": "ab.internal", "popularity": 0.25, "logo": None, "offers": [{"offer_id": "o1"}], "offers_total": 4,
        "redirects": [], "related_digest": "d1", "infixes_suffixes": ["abc"],
    }  # fmt: skip


@pytest.mark.rule("X4")
def test_the_embedded_engine_is_given_finished_terms_of_a_shop_and_nothing_else() -> None:
    values = column_values("shops", SHOP)
    several = {name: sorted(value) for name, value in values.items() if name.endswith(("_short", "_prefixes"))}
    assert values | several == TERMS | {
        "full_prefixes": ["ab.internal"[:length] for length in range(1, 6)],
        "infixes_parts": [],
        "infixes_runs": ["abc"],
        "infixes_repetitive_runs": [],
        "other_keys_starts": [],
    }


@pytest.mark.rule("X4")
def test_the_embedded_engine_is_also_given_the_prefixes_and_parts_that_are_frequent_in_a_sample() -> None:
    sampled = [replace(SHOP, full=("ab.international",), infixes=(f"xabcde{number}",)) for number in range(6)]
    frequent = frequent_terms(ShopDocument, sampled)
    document = replace(SHOP, full=("ab.internal", "ab.x"), infixes=("abcdez", "xab"))
    values = column_values("shops", document, frequent)
    assert sorted(values["full_prefixes"]) == ["a", "ab", "ab.", *("ab.internal"[:n] for n in range(4, 11)), "ab.x"]
    assert sorted(values["infixes_parts"]) == ["abcd", "abcde", "bcde"]
    assert column_values("shops", document, frequent_terms(ShopDocument, sampled[4:])) == column_values(
        "shops", document
    )
    # A hostile shop's texts, of which each beginning would be a term.
    hostile = frequent_terms(ShopDocument, [replace(SHOP, full=tuple(f"{'y' * 5_000}{end}" for end in "abcd"))])
    assert max(map(len, hostile["full_prefixes"])) == 48


@pytest.mark.rule("X4")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_what_is_written_has_exactly_the_fields_that_are_declared(kind: str) -> None:
    samples = {Form.TERMS: "x", Form.WHOLE: 1, Form.NUMBER: 1.0, Form.CARRIED: {}}
    document = DOCUMENTS[kind](**{field.name: samples[field.form] for field in declared_fields(DOCUMENTS[kind])})
    assert list(wire_document(document)) == list(mapping(kind)["properties"])
    assert list(column_values(kind, document)) == [column.name for column in columns(kind)]


@pytest.mark.rule("X4")
def test_a_field_without_a_role_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Careless:
        id: Annotated[str, Role.EXACT]
        secret: str

    with pytest.raises(TypeError, match="field secret of a document declares no role"):
        declared_fields(Careless)


popularities = st.one_of(
    st.none(),
    st.floats(min_value=0.0, allow_nan=False, allow_infinity=False),
    st.sampled_from((0.0, -0.0, 5e-324, 1e-300, 0.1, 1.0, 1.0000000000000002, 1.7976931348623157e308)),
    st.integers(0, 10**15).map(float),
)
ids = st.text("ABCXYZabcxyz0129_-", min_size=1, max_size=64)
ranked = st.tuples(popularities, ids)


@pytest.mark.rule("M1")
@given(st.lists(ranked, max_size=12))
def test_the_order_of_the_keys_is_popularity_descending_then_id(shops: list[tuple[float | None, str]]) -> None:
    by_key = sorted(shops, key=lambda shop: rank_key(*shop))
    by_rule = sorted(shops, key=lambda shop: (-(shop[0] or 0.0), shop[1]))
    assert [(shop[0] or 0.0, shop[1]) for shop in by_key] == [(shop[0] or 0.0, shop[1]) for shop in by_rule]


@pytest.mark.rule("M9.score")
def test_a_score_is_the_tier_and_a_part_below_one() -> None:
    assert [suggestion_score(*shop) for shop in ((8, None), (8, 0.0), (6, 1.0), (3, 3.0))] == [8.0, 8.0, 6.5, 3.75]


instants = st.one_of(st.none(), st.integers(-(2**62), 2**62), st.integers(-2, 2))


@pytest.mark.rule("M11.other_lists")
@given(st.lists(st.tuples(instants, ids), max_size=12))
def test_the_newest_come_first_those_without_a_time_last_and_then_the_smaller_id(
    records: list[tuple[int | None, str]],
) -> None:
    by_rule = sorted(records, key=lambda record: (record[0] is None, -(record[0] or 0), record[1]))
    assert sorted(records, key=lambda record: newest_first_key(*record)) == by_rule


@pytest.mark.rule("M11.other_lists")
@given(st.lists(st.tuples(st.booleans(), instants, ids), max_size=12))
def test_coupons_that_were_applied_come_before_all_others(coupons: list[tuple[bool, int | None, str]]) -> None:
    by_rule = sorted(coupons, key=lambda one: (not one[0], one[1] is None, -(one[1] or 0), one[2]))
    by_key = sorted(coupons, key=lambda one: coupon_rank_key(applied=one[0], last_verified_us=one[1], coupon_id=one[2]))
    assert by_key == by_rule


ACCOUNT = ResourceAccount("P", "a", "calls", 1.5, 10.0, "2031-05-06T00:00:00Z", "ok", "2031-05-05T12:00:00Z")
FOLLOWER = FollowerStatus("file", "line 3, byte 99", 0, "2031-05-06T07:08:09Z", "2031-05-06T07:08:09Z")
NOW = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
NAME = "20310506t070809000010-0a1b2c"
timestamps = st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


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


_NAME = "ab" * 32


@pytest.mark.parametrize(
    ("size", "chunks"), [(0, 1), (1, 1), (CHUNK_BYTES, 1), (CHUNK_BYTES + 1, 2), (2 * CHUNK_BYTES, 2)]
)
def test_a_file_comes_back_from_its_chunks(size: int, chunks: int) -> None:
    data = bytes(number % 251 for number in range(size))
    assert chunk_count(size) == chunks
    documents = [
        chunk_document(_NAME, size, data[position * CHUNK_BYTES :][:CHUNK_BYTES]) for position in range(chunks)
    ]
    assert [file_size(document) for document in documents] == [size] * chunks
    assert b"".join(chunk_of(document, _NAME, position, size) for position, document in enumerate(documents)) == data
    assert len({chunk_id(_NAME, position) for position in range(chunks)}) == chunks


@pytest.mark.parametrize(
    "change",
    [
        {"file": "cd" * 32},
        {"bytes": 7},
        {"bytes": "8"},
        {"bytes": -1},
        {"data": "not base64"},
        {"data": chunk_document(_NAME, 8, b"longer than 8")["data"]},
        {"data": chunk_document(_NAME, 8, bytes(CHUNK_BYTES + 1))["data"]},
        {"data": chunk_document(_NAME, 8, b"8 bytes.")["data"][:-8]},
    ],
)
def test_a_chunk_that_is_damaged_or_of_another_file_is_refused(change: dict[str, Any]) -> None:
    document = chunk_document(_NAME, 8, b"8 bytes.")
    assert chunk_of(document, _NAME, 0, 8) == b"8 bytes."
    with pytest.raises(ValueError, match="a chunk of the typeahead"):
        chunk_of({**document, **change}, _NAME, 0, 8)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"stamp": None},
        {"stamp": {"announced": {}}},
        {"stamp": {"announced": {"generation": "../elsewhere", "typeahead": _NAME}}},
        {"stamp": {"announced": {"generation": "20250101t000000000000-abcdef", "typeahead": "../elsewhere"}}},
        {"stamp": {"announced": {"generation": 1, "typeahead": 2}}},
    ],
)
def test_what_is_no_announcement_announces_nothing(document: dict[str, Any]) -> None:
    assert Announcement.from_wire(document) is None
