"""Acceptance queries: the file, and what is wrong with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.acceptance import (
    MAX_BYTES,
    MAX_QUERIES,
    AcceptanceFileError,
    AcceptanceQuery,
    read_acceptance,
)
from indexer.records.problems import LISTED, CatalogueError
from shop_directory.search.bounds import MAX_Q, MAX_QUERY, MAX_QUERY_WORDS

FIND: Final = {"tool": "find_shop", "query": "lamp", "expect": ["lamp"]}
SUGGEST: Final = {"tool": "suggest", "query": "lamp", "expect": ["lamp"]}
COUNTRY: Final = "must be an assigned ISO 3166-1 alpha-2 code (or XK) in capitals"
SHOP: Final = "must be the id or the domain of a shop"
ONLY_FIND: Final = "is for find_shop only"
NOTHING: Final = "record states nothing to check: give expect, absent or minimum_total"
TOO_MANY: Final = "record expects more shops than within allows"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes lines, JSON values or bytes, as a file of acceptance queries."""

    def write(*lines: Any) -> Path:  # noqa: ANN401 - JSON values
        path = tmp_path / "golden.ndjson"
        raw = [line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() for line in lines]
        path.write_bytes(b"\n".join(raw))
        return path

    return write


def test_a_query_is_read_with_its_location_and_shops_as_callers_may_name_them(written: Callable[..., Path]) -> None:
    path = written(
        b"\xef\xbb\xbf",
        {
            "tool": "find_shop",
            "query": "lamp's",
            "country": "XK",
            "category": "light",
            "expect": ["lamp_1", "https://www.Lämp.internal/new", " lamp.internal. "],
            "within": 100,
            "absent": ["candle.internal"],
            "minimum_total": 3,
        },
        b"  \r",
        {"tool": "suggest", "query": "", "absent": ["candle"], "country": None, "category": None, "within": None},
        {"tool": "find_shop", "query": "", "minimum_total": 1},
        b"",
    )
    assert read_acceptance(path) == {
        "golden.ndjson:2": AcceptanceQuery(
            tool="find_shop",
            query="lamp's",
            country="XK",
            category="light",
            expect=("lamp_1", "xn--lmp-qla.internal", "lamp.internal"),
            within=100,
            absent=("candle.internal",),
            minimum_total=3,
        ),
        "golden.ndjson:4": AcceptanceQuery(tool="suggest", query="", absent=("candle",)),
        "golden.ndjson:5": AcceptanceQuery(tool="find_shop", query="", minimum_total=1),
    }


@pytest.mark.rule("M8", "M9")
@pytest.mark.parametrize(
    "line",
    [
        {**FIND, "query": "l" * MAX_QUERY},
        {**FIND, "query": "a b " * (MAX_QUERY_WORDS // 2)},
        {**FIND, "within": 1},
        {**SUGGEST, "query": "l" * MAX_Q},
        {**SUGGEST, "query": "a b " * MAX_QUERY_WORDS},
        {**SUGGEST, "within": 20, "expect": [f"s{number}" for number in range(20)]},
    ],
    ids=["find: longest", "find: most words", "first", "suggest: longest", "suggest: many words", "suggest: most"],
)
def test_what_is_just_within_the_bounds_is_read(written: Callable[..., Path], line: dict[str, Any]) -> None:
    (read,) = read_acceptance(written(line)).values()
    assert (read.query, list(read.expect)) == (line["query"], line["expect"])


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ({**FIND, "colour": "secret"}, ["colour is not a known field"]),
        ({"query": "secret", "expect": ["secret"]}, ["tool is missing"]),
        ({"tool": "get_shop", "query": "secret", "expect": ["a"]}, ["tool must be one of 'find_shop' or 'suggest'"]),
        ({"tool": "suggest", "expect": ["secret"]}, ["query is missing"]),
        ({**FIND, "query": 5}, ["query must be a string"]),
        ({**FIND, "query": "secret\n"}, ["query holds a control character"]),
        ({**FIND, "query": "secret" * 34}, ["query is longer than 200 characters"]),
        ({**FIND, "query": "secret " * 13}, ["query has more than 12 words"]),
        ({**SUGGEST, "query": "secret" * 43}, ["query is longer than 256 characters"]),
        ({**FIND, "country": "de"}, [f"country {COUNTRY}"]),
        ({**FIND, "country": "UK"}, [f"country {COUNTRY}"]),
        ({**FIND, "category": "Secret"}, ["category must match ^[a-z0-9-]{1,100}$"]),
        ({**SUGGEST, "category": "secret"}, [f"category {ONLY_FIND}"]),
        ({**SUGGEST, "minimum_total": 1}, [f"minimum_total {ONLY_FIND}"]),
        ({**FIND, "minimum_total": 0}, ["minimum_total must be at least 1"]),
        ({**FIND, "minimum_total": 1.5}, ["minimum_total must be a whole number"]),
        ({**FIND, "expect": "secret"}, ["expect must be a list"]),
        ({**FIND, "expect": ["lamp", "a secret"]}, [f"expect.1 {SHOP}"]),
        ({**FIND, "expect": ["secret."], "absent": [""]}, [f"expect.0 {SHOP}", f"absent.0 {SHOP}"]),
        (
            {**FIND, "absent": ["www.secret.internal"], "expect": ["secret.internal"]},
            ["absent names a shop that expect"],
        ),
        ({**FIND, "within": 0}, ["within must be at least 1"]),
        ({**FIND, "within": True}, ["within must be a whole number"]),
        ({**FIND, "within": 101}, ["within must be at most 100"]),
        ({**SUGGEST, "within": 21}, ["within must be at most 20"]),
        ({**FIND, "expect": ["a", "b"], "within": 1}, [TOO_MANY]),
        ({**SUGGEST, "expect": [f"s{number}" for number in range(9)]}, [TOO_MANY]),
        ({**FIND, "expect": []}, [NOTHING]),
        ([], ["record must be an object"]),
        (b'{"query": "secret", "query": "secret"}', ["the line has the same key twice in one object"]),
        (b'{"query": "secret"', ["the line is not valid JSON"]),
        (b'{"query": "\xff"}', ["the line is not UTF-8"]),
    ],
)
def test_a_bad_line_is_reported_by_file_line_and_field_without_its_value(
    written: Callable[..., Path], line: object, faults: list[str]
) -> None:
    with pytest.raises(AcceptanceFileError, match=r"^1 acceptance queries are wrong: correct them$") as raised:
        read_acceptance(written(FIND, line))
    reported = [str(problem) for problem in raised.value.problems.listed]
    assert len(reported) == len(faults)
    assert all(one.startswith(f"golden.ndjson:2: {fault}") for one, fault in zip(reported, faults, strict=True))
    assert not any("secret" in one for one in (*reported, str(raised.value)))


def test_all_bad_lines_are_counted_and_the_first_hundred_listed(written: Callable[..., Path]) -> None:
    with pytest.raises(AcceptanceFileError, match=r"^103 acceptance queries are wrong") as raised:
        read_acceptance(written(*[{**FIND, "within": 0}] * 103, FIND))
    assert (raised.value.problems.count, len(raised.value.problems.listed)) == (103, LISTED)


def test_a_file_without_queries_with_too_many_too_large_or_not_there_is_refused(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(CatalogueError, match="holds 0 acceptance queries: it may hold 1 to 10000"):
        read_acceptance(written(b"", b" "))
    with pytest.raises(CatalogueError, match="holds 10001 acceptance queries"):
        read_acceptance(written(*[b"{}"] * (MAX_QUERIES + 1)))
    with pytest.raises(CatalogueError, match="is larger than 16777216 bytes"):
        read_acceptance(written(b" " * (MAX_BYTES + 1)))
    with pytest.raises(CatalogueError, match="cannot be read: No such file or directory"):
        read_acceptance(tmp_path / "nowhere.ndjson")
