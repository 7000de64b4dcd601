"""Every field of every record with wrong values: the message names file, line and field, and what is allowed.

The table has the wrong values of each form of value, and the form of each field.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.documents import TRUST_KINDS
from index_mappings.values import ALLOWED_CODE
from indexer.catalogue.new_catalogue import STARTER
from indexer.catalogue.validation import validate
from indexer.records.problems import Problem
from indexer.records.related import RECORDS

# Where a value is wrong below its field, and why.
Wrong = tuple[object, str, str]

_TEXT: Final = "must be a string"
_LIST: Final = "must be a list"
_OBJECT: Final = "must be an object"
_ID: Final = "must match ^[A-Za-z0-9_-]{1,64}$"
_HOST: Final = "must be a host name with at least two labels"
_COUNTRIES: Final = "must hold assigned ISO 3166-1 alpha-2 codes (or XK) in capitals"
_DESTINATIONS: Final = "must hold assigned country codes and known groups, such as EU or WORLDWIDE"
_TIME: Final = "must be a date and time as in RFC 3339"
_DATE: Final = "must be a date, or a date and time as in RFC 3339"
_AMOUNT: Final = r"must match ^[0-9]{1,12}(\.[0-9]{1,6})?$"
_CURRENCY: Final = "must be an ISO 4217 currency code in capitals"
_SLUG: Final = "must match ^[a-z0-9-]{1,100}$"
_TAGS: Final = "must have language tags (BCP 47) such as de, pt-BR or zh-Hant as its keys"
_WHOLE: Final = "must be a whole number"
_NUMBER: Final = "must be a number or null"


def _longer(most: int) -> Wrong:
    return "x" * (most + 1), "", f"is longer than {most} characters"


def _each(values: Iterable[object], reason: str, below: str = "") -> list[Wrong]:
    return [(value, below, reason) for value in values]


def _one_of(*values: str) -> list[Wrong]:
    allowed = f"must be one of {', '.join(map(repr, values[:-1]))} or {values[-1]!r}"
    return _each(("zqcanaryzq", values[0][:-1], values[0].upper(), "", 5), allowed)


_CONTROL: Final = "holds a control character"
_TAG: Final = "holds an invisible tag character"
_BIDIRECTIONAL: Final = "holds a bidirectional override or isolate"
_SEPARATOR: Final = "holds a line or paragraph separator"
_UNKNOWN: Final = "is not a known field (--lenient passes over unknown fields)"
_LABEL: Final[list[Wrong]] = [(5, "", _TEXT), _longer(300), ("zqcanaryzq\x07", "", _CONTROL)]
_NAME: Final[list[Wrong]] = [("", "", "must not be blank"), (" ", "", "must not be blank"), *_LABEL]
_OVERRIDES: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_AMOUNTS: Final = ("", "-1", "1,5", "1.", ".5", "1e3", "1.1234567", "1" * 13, "NaN", " 1", "+1", "1\n", "\u0661")
_BAD_TAGS: Final = (
    "", "d", "jp", "gr", "german", "Deutsch", "de_DE", "de-", "-de", "de--DE", "de-DEUTSCHLAND", "pt BR", "d\u0435",
    "x", "de\n", "de-x", f"de-x-{'-'.join(['abcdefgh'] * 4)}", "zqcanaryzq",
)  # fmt: skip
_MONEY: Final[list[Wrong]] = [
    ("5", "", _OBJECT),
    ({"currency": "EUR"}, "amount", "is missing"),
    *_each(({"amount": amount, "currency": "EUR"} for amount in (5, 9.99)), _TEXT, "amount"),
    *_each(({"amount": amount, "currency": "EUR"} for amount in _AMOUNTS), _AMOUNT, "amount"),
    ({"amount": "5"}, "currency", "is missing"),
    *_each(({"amount": "5", "currency": currency} for currency in ("eur", "euro", "EURO")), _CURRENCY, "currency"),
]
WRONG: Final[dict[str, list[Wrong]]] = {
    "id": [*_each(("", "zq canary zq", "x" * 65, "a/b", "zqcanaryzq.x", "c\n"), _ID), *_each((5, None), _TEXT)],
    "name": _NAME,
    "name of a shop": [
        *_NAME,
        (" \u200d ", "", "must not be blank"),
        (["zqcanaryzq"], "", _TEXT),
        *_each((f"zqcanaryzq{char}" for char in "\n\x7f\x85"), _CONTROL),
        *_each((f"zqcanaryzq{char}" for char in _OVERRIDES), _BIDIRECTIONAL),
        *_each((f"zqcanaryzq{char}" for char in "\u2028\u2029"), _SEPARATOR),
        *_each((f"zqcanaryzq{char}" for char in "\U000e0000\U000e0001\U000e0041\U000e007f"), _TAG),
    ],
    "label": _LABEL,
    "source": [
        (5, "", _TEXT), _longer(2_048), ("zqcanaryzq\x00", "", _CONTROL), ("zqcanaryzq\u2028", "", _SEPARATOR),
    ],
    "host": [
        *_each(
            ("localhost", "zqcanaryzq", "192.0.2.1", "192.0.2.0x4d", "[2001:db8::77]", "https://[2001:db8::77]:443/",
             "zqcanaryzq x.internal", "zqcanaryzq☃.internal", f"{'a' * 64}.internal",
             ".".join(["a" * 63] * 3 + ["b" * 62])),
            _HOST,
        ),
        (5, "", _TEXT), _longer(2_048),
        ("zqcanaryzq.internal/".ljust(2_049, "x"), "", "is longer than 2048 characters"),
    ],
    "hosts": [
        ("a.example", "", _LIST), ([5], "0", _TEXT), (["a.example"] * 51, "", "has more than 50 entries"),
        *_each((["a.example", host] for host in ("zqcanaryzq", "192.0.2.77")), _HOST, "1"),
    ],
    "categories": [
        ([], "", "needs at least 1 entry"),
        ("lighting", "", _LIST),
        (["lighting"], "0", _OBJECT),
        ([{"slug": "a", "name": "A"}] * 21, "", "has more than 20 entries"),
        *_each(([{"slug": slug, "name": "A"}] for slug in ("Zq Canary", "ZQCANARYZQ")), _SLUG, "0.slug"),
        ([{"slug": "a"}], "0.name", "is missing"),
        ([{"slug": "a", "name": "A" * 301}], "0.name", "is longer than 300 characters"),
        ([{"slug": "a", "name": "A", "parent": "zqcanaryzq"}], "0.parent", _UNKNOWN),
    ],
    "slug": [*_each(("Zq Canary", "Books", "", "a" * 101), _SLUG), (5, "", _TEXT)],
    "names": [
        *_each(("Leuchten", ["Leuchten"]), _OBJECT),
        *_each(({"de": "", tag: ""} for tag in _BAD_TAGS), _TAGS),
        ({"de": ""}, "de", "must not be blank"),
        ({"pt-BR": 5}, "pt-BR", _TEXT),
        ({"de": "n" * 301}, "de", "is longer than 300 characters"),
        ({"de": "zqcanaryzq\u202e"}, "de", _BIDIRECTIONAL),
        ({f"de-x-{number}": "B" for number in range(101)}, "", "has more than 100 entries"),
    ],
    "countries": [
        *_each(("DE", None), _LIST), ([5], "0", _TEXT),
        *_each((["de"], ["UK"], ["DE", "UK"], ["XX"], ["zqcanaryzq"]), _COUNTRIES),
        (["WORLDWIDE", "DE"], "", "must be WORLDWIDE alone, or country codes"),
    ],
    "blocked": [("DE", "", _LIST), *_each((["WORLDWIDE"], ["de"]), _COUNTRIES), ([None], "0", _TEXT)],
    "destinations": [("EU", "", _LIST), (["EUROPE"], "", _DESTINATIONS), (["eu"], "", _DESTINATIONS)],
    "number": [*_each(("1", True), _NUMBER), *_each((-1, -77.123), "must be at least 0")],
    "aliases": [
        ("zqcanaryzq", "", _LIST), (["a"] * 51, "", "has more than 50 entries"), ([""], "0", "must not be blank"),
        (["zqcanaryzq\x00"], "0", _CONTROL), (["b", "zqcanaryzq\U000e0041"], "1", _TAG),
        (["b", "a" * 301], "1", "is longer than 300 characters"),
    ],
    "synonyms": [
        ("zqcanaryzq", "", "must be a list of strings, or an object of such lists by language tag"),
        (["a"] * 51, "", "has more than 50 entries"), ([""], "0", "must not be blank"),
        (["zqcanaryzq\x00"], "0", _CONTROL), ({"de": ["b", "a" * 301]}, "de.1", "is longer than 300 characters"),
        ({"zq canary": ["a"]}, "", _TAGS),
    ],
    "visibility": [
        *_one_of("public", "under_review", "removed"),
        (None, "", "must be one of 'public', 'under_review' or 'removed'"),
    ],
    "code": [
        *_each(
            ("", "a" * 65, "zq canary zq", "A\n", "<b>", "a=b", "a,b", "A\ufe0f", "😀"), f"must be {ALLOWED_CODE}"
        ),
        (5, "", _TEXT),
    ],
    "discount": [
        ("10%", "", _OBJECT),
        ({"value": "10"}, "kind", "is missing"),
        ({"kind": "half"}, "kind", "must be one of 'percent', 'amount', 'free_shipping' or 'other'"),
        *_each(
            ({"kind": "percent", "value": value} for value in (None, "101", "100.01")),
            "needs a value of at most 100 for a percentage",
        ),
        *_each(
            ({"kind": "amount", "value": "5"}, {"kind": "amount", "currency": "EUR"}),
            "needs a value and a currency for an amount",
        ),
        ({"kind": "other", "value": "-1"}, "value", _AMOUNT),
    ],
    "money": _MONEY,
    "time": _each(
        ("2026-10-01", "soon", 5, "2026-10-01T09:30:00", "2031-02-30T07:08:09Z", "0001-01-01T00:00:00+14:00"), _TIME
    ),
    "date or time": _each(("2026-02-30", "2031-02-29", "", "soon", 5, "2031-05-06T07:08:09", "2031-05-06\n"), _DATE),
    "verification": _one_of("verified_applied", "verified_rejected", "unverified"),
    "channels": [("rest", "", _LIST), (["ftp"], "0", "must be one of 'rest', 'mcp' or 'stdio'")],
    "url": [(5, "", _TEXT), _longer(2_048), ("https://zqcanaryzq\x00", "", _CONTROL)],
    "availability": _one_of("in_stock", "out_of_stock", "preorder", "discontinued"),
    "switch": _each(("true", 1), "must be true, false or null"),
    "delivery": [
        ("2 days", "", _OBJECT),
        ({"min_days": -1}, "min_days", "must be at least 0"),
        ({"max_days": 1_001}, "max_days", "must be at most 1000"),
        ({"min_days": 1.5}, "min_days", _WHOLE),
        ({"as_stated": 5}, "as_stated", _TEXT),
        ({"as_stated": "d" * 301}, "as_stated", "is longer than 300 characters"),
    ],
    "where read": _one_of("policy_page", "structured_data"),
    "kind": _one_of(*TRUST_KINDS),
    "value": [
        (5, "", "must be a string, a list of strings, or null"),
        (["a", 5], "1", _TEXT),
        _longer(300),
        (["a"] * 51, "", "has more than 50 entries"),
    ],
    "template": _each((5, None), _TEXT),
    "network hosts": [([], "", "needs at least 1 entry"), (["localhost"], "0", _HOST), ("a.example", "", _LIST)],
    "version": [
        (-1, "", "must be at least 0"), (2**63, "", "must be at most 9223372036854775807"),
        *_each((1.5, "1", True), _WHOLE),
    ],
}  # fmt: skip
_COMMON: Final = {"version": "version", "updated_at": "time"}
FORMS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("field_forms.toml").read_text(encoding="utf-8")
)


def _first(kind: str) -> dict[str, Any]:
    """The first record of a kind in the starter, without a version."""
    line = (STARTER / f"{kind}.ndjson").read_text(encoding="utf-8").splitlines()[0]
    record: dict[str, Any] = json.loads(line)
    return {field: value for field, value in record.items() if field not in _COMMON}


def _cases() -> Iterator[tuple[str, str, object, str, str]]:
    for kind, fields in FORMS.items():
        for field, form in {**fields, **_COMMON}.items():
            for value, below, reason in WRONG[form]:
                yield kind, field, value, f"{field}.{below}" if below else field, reason


CASES: Final = tuple(_cases())
REQUIRED: Final = tuple(
    (kind, field) for kind, model in RECORDS.items() for field, info in model.model_fields.items() if info.is_required()
)


def _problems(folder: Path, kind: str, record: dict[str, Any]) -> list[Problem]:
    """What is wrong with the starter catalogue when a record of a kind replaces its own ones."""
    for file in STARTER.glob("*.ndjson"):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / f"{kind}.ndjson").write_text(f"\n{json.dumps(record)}\n", encoding="utf-8")
    if kind == "shops":
        others = (STARTER / "shops.ndjson").read_text(encoding="utf-8").splitlines()[1:]
        with (folder / "shops.ndjson").open("a", encoding="utf-8") as shops:
            shops.writelines(f"{line}\n" for line in others)
    found: list[Problem] = []
    validate(folder, found.append)
    return found


def test_the_table_has_every_field_of_every_record_and_at_least_500_wrong_values() -> None:
    assert {kind: {*fields, *_COMMON} for kind, fields in FORMS.items()} == {
        kind: set(model.model_fields) for kind, model in RECORDS.items()
    }
    assert len(CASES) >= 500


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize(("kind", "field", "value", "field_path", "reason"), CASES)
def test_a_wrong_value_is_reported_by_file_line_and_field_with_what_is_allowed(
    tmp_path: Path, kind: str, field: str, value: object, field_path: str, reason: str
) -> None:
    found = _problems(tmp_path, kind, {**_first(kind), field: value})
    assert found == [Problem(f"{kind}.ndjson", 2, field_path, reason)]
    assert "zqcanaryzq" not in str(found[0])


@pytest.mark.parametrize(("kind", "field"), REQUIRED)
def test_a_required_field_that_is_missing_is_reported(tmp_path: Path, kind: str, field: str) -> None:
    record = _first(kind)
    del record[field]
    assert _problems(tmp_path, kind, record) == [Problem(f"{kind}.ndjson", 2, field, "is missing")]


@pytest.mark.parametrize("kind", RECORDS)
def test_an_unknown_field_is_reported_and_passed_over_by_lenient(tmp_path: Path, kind: str) -> None:
    found = _problems(tmp_path, kind, {**_first(kind), "colour": "red"})
    assert found == [Problem(f"{kind}.ndjson", 2, "colour", _UNKNOWN)]
    assert validate(tmp_path, found.append, lenient=True).problems == 0
