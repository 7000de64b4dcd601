"""Every limit of the catalogue: at the limit a record is taken, one beyond it is refused by field and reason.

A reason never holds the value that broke it: it may be that of a hidden shop (V1).
"""

from typing import Any, Final

import pytest
from pydantic import ValidationError

from index_mappings.countries import COUNTRY_CODES
from indexer.records.shop import NO_ORDER, UPDATED_AT, VERSION, CategoryRecord, Order, ShopRecord, reasons
from tests.support.catalogues import shop

CANARY: Final = "zqcanaryzq"
HOST_REASON: Final = "must be a host name with at least two labels"
UNKNOWN_REASON: Final = "is not a known field (--lenient passes over unknown fields)"


def _record(**fields: Any) -> ShopRecord:  # noqa: ANN401 - JSON values
    return ShopRecord.model_validate({**shop("Nord", "nord.internal"), **fields})


def _why_not(line: object) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as refused:
        ShopRecord.model_validate(line)
    return reasons(refused.value)


def _slugs(count: int) -> list[dict[str, str]]:
    return [{"slug": f"c{number}", "name": "C"} for number in range(count)]


AT_THE_LIMIT: Final[dict[str, tuple[str, object]]] = {
    "an id of one character": ("id", "Z"),
    "an id of 64 characters": ("id", "aB0_-" * 12 + "last"),
    "a name of 300 characters": ("name", "緑" * 300),
    "a name with a tab": ("name", "Nord\tSee"),
    "a name with joiners and direction marks": ("name", "متجر\u200c\u200d\u200e"),
    "an alias of 300 characters": ("aliases", ("a" * 300,)),
    "50 aliases": ("aliases", tuple(f"a{number}" for number in range(50))),
    "no popularity": ("popularity", None),
    "popularity nought": ("popularity", 0.0),
    "a tiny popularity": ("popularity", 5e-324),
    "a huge popularity": ("popularity", 1.7976931348623157e308),
    "no market": ("countries", ()),
    "the whole world": ("countries", ("WORLDWIDE",)),
    "every assigned country and Kosovo": ("countries", tuple(sorted(COUNTRY_CODES))),
    "50 checkout hosts": ("checkout_hosts", tuple(f"pay{number}.internal" for number in range(50))),
    "a domain of 253 characters": ("domain", ".".join(["a" * 63] * 3 + ["b" * 61])),
    "a domain with an underscore": ("domain", "a_b.internal"),
    "a domain with digits": ("domain", "1.2.3.4a"),
    "under review": ("visibility", "under_review"),
    "removed": ("visibility", "removed"),
    "a source of 2,048 characters": ("source", "s" * 2_048),
    "no source": ("source", None),
    "joiners and a variation selector that is no tag": ("name", "a\u200d\u2060\ufe0f\U000e0100b"),
    "version nought": ("version", 0),
    "the greatest version": ("version", 2**63 - 1),
}

# What no line of JSON has; other wrong values are in the table of tests/unit/indexer/catalogue/test_wrong_values.py.
BEYOND: Final[dict[str, tuple[str, object, str, str]]] = {
    "half a surrogate pair": ("name", f"{CANARY}\ud800", "name", "holds characters that are not valid Unicode"),
    "a popularity that is no number": ("popularity", float("nan"), "popularity", "must be a finite number"),
    "an infinite popularity": ("popularity", float("inf"), "popularity", "must be a finite number"),
    "a popularity beyond all floats": ("popularity", 10**400, "popularity", "must be a number or null"),
    "a field whose name is text": (f"{CANARY} {CANARY}", 1, "(a name)", UNKNOWN_REASON),
}


@pytest.mark.parametrize("what", AT_THE_LIMIT)
def test_a_record_at_the_limit_is_taken_as_it_is(what: str) -> None:
    field, value = AT_THE_LIMIT[what]
    line = list(value) if isinstance(value, tuple) else value
    assert getattr(_record(**{field: line}), field) == value


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize("what", BEYOND)
def test_a_record_beyond_the_limit_is_refused_by_field_and_reason_without_its_value(what: str) -> None:
    field, value, path, reason = BEYOND[what]
    reported = _why_not({**shop("Nord", "nord.internal"), field: value})
    assert reported == [(path, reason)]
    assert CANARY not in str(reported).lower()


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize("line", [CANARY, [CANARY], None, 77, True])
def test_a_line_that_is_no_object_is_reported(line: object) -> None:
    assert _why_not(line) == [("record", "must be an object")]


def test_all_problems_of_a_record_are_reported_together() -> None:
    line = {**shop("Nord", "nord"), "popularity": -1, "categories": [{"slug": "A"}]}
    assert _why_not(line) == [
        ("domain", HOST_REASON),
        ("categories.0.slug", "must match ^[a-z0-9-]{1,100}$"),
        ("categories.0.name", "is missing"),
        ("popularity", "must be at least 0"),
    ]


@pytest.mark.rule("R1")
def test_hosts_are_reduced_as_pasted_references_are() -> None:
    record = _record(domain="https://WWW.Müller.internal/x", checkout_hosts=["pay.Nord.internal.:443"])
    assert (record.domain, record.checkout_hosts) == ("xn--mller-kva.internal", ("pay.nord.internal",))


def test_twenty_categories_are_taken_and_one_stated_twice_counts_at_its_first_position() -> None:
    assert len(_record(categories=_slugs(20)).categories) == 20
    twice = [{"slug": "a", "name": "A"}, {"slug": "b", "name": "B"}, {"slug": "a", "name": "Other"}]
    stated = _record(categories=twice).categories
    assert stated == (CategoryRecord(slug="a", name="A"), CategoryRecord(slug="b", name="B"))


def test_a_country_stated_twice_counts_once() -> None:
    assert _record(countries=["XK", "DE", "XK"]).countries == ("XK", "DE")


def test_a_record_is_ordered_by_its_version_or_its_time() -> None:
    earlier = _record(updated_at="2031-05-06T07:08:09.000001+02:00")
    later = _record(updated_at="2031-05-06t05:08:09.000002z")
    assert _record().order == NO_ORDER
    assert _record(version=7).order == Order(VERSION, 7)
    assert (earlier.order.kind, later.order.number - earlier.order.number) == (UPDATED_AT, 1)
