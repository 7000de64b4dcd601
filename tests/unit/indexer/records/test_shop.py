"""Every limit of the catalogue: at the limit a record is taken, one beyond it is refused by field and reason.

A reason never holds the value that broke it: it may be that of a hidden shop (V1).
"""

from typing import Any, Final

import pytest
from pydantic import ValidationError

from index_mappings.countries import COUNTRY_CODES
from indexer.records.shop import CategoryRecord, ShopRecord, reasons
from indexer.sources.protocol import NO_ORDER, VERSION, Order, order_of
from tests.support.catalogues import shop

CANARY: Final = "zqcanaryzq"
COUNTRY_REASON: Final = "must hold assigned ISO 3166-1 alpha-2 codes (or XK) in capitals"
HOST_REASON: Final = "must be a host name with at least two labels"
ID_REASON: Final = "must match ^[A-Za-z0-9_-]{1,64}$"
TIME_REASON: Final = "must be a date and time as in RFC 3339"
UNKNOWN_REASON: Final = "is not a known field (--lenient passes over unknown fields)"
VISIBILITY_REASON: Final = "must be one of 'public', 'under_review' or 'removed'"


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

BEYOND: Final[dict[str, tuple[str, object, str, str]]] = {
    "an empty id": ("id", "", "id", ID_REASON),
    "an id of 65 characters": ("id", CANARY + "a" * 55, "id", ID_REASON),
    "an id with a dot": ("id", f"{CANARY}.x", "id", ID_REASON),
    "an id with a line end": ("id", f"{CANARY}\n", "id", ID_REASON),
    "a number as id": ("id", 77_123, "id", "must be a string"),
    "a name of 301 characters": ("name", CANARY + "a" * 291, "name", "is longer than 300 characters"),
    "a blank name": ("name", " \u200d ", "name", "must not be blank"),
    "a name that is a list": ("name", [CANARY], "name", "must be a string"),
    "a name with a line end": ("name", f"{CANARY}\n", "name", "holds a control character"),
    "a name with a bell": ("name", f"{CANARY}\x07", "name", "holds a control character"),
    "a name with a delete": ("name", f"{CANARY}\x7f", "name", "holds a control character"),
    "a name with a C1 control": ("name", f"{CANARY}\x85", "name", "holds a control character"),
    **{
        f"a name with U+{ord(mark):04X}": (
            "name", f"{CANARY}{mark}", "name", "holds a bidirectional override or isolate",
        )
        for mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    },
    **{
        f"a name with U+{ord(mark):04X}": ("name", f"{CANARY}{mark}", "name", "holds a line or paragraph separator")
        for mark in "\u2028\u2029"
    },
    **{
        f"a name with U+{ord(mark):04X}": ("name", f"{CANARY}{mark}", "name", "holds an invisible tag character")
        for mark in "\U000e0000\U000e0001\U000e0041\U000e007f"
    },
    "an alias with a tag": (
        "aliases", ["b", f"{CANARY}\U000e0041"], "aliases.1", "holds an invisible tag character",
    ),
    "a source with a separator": ("source", f"{CANARY}\u2028", "source", "holds a line or paragraph separator"),
    "half a surrogate pair": ("name", f"{CANARY}\ud800", "name", "holds characters that are not valid Unicode"),
    "an alias of 301 characters": ("aliases", ["b", CANARY + "a" * 291], "aliases.1", "is longer than 300 characters"),
    "a blank alias": ("aliases", ["b", ""], "aliases.1", "must not be blank"),
    "an alias with a control": ("aliases", [f"{CANARY}\x00"], "aliases.0", "holds a control character"),
    "51 aliases": ("aliases", [CANARY] * 51, "aliases", "has more than 50 entries"),
    "aliases as text": ("aliases", CANARY, "aliases", "must be a list"),
    "a domain of one label": ("domain", CANARY, "domain", HOST_REASON),
    "a domain of 254 characters": ("domain", ".".join([CANARY + "a" * 53] * 3 + ["b" * 62]), "domain", HOST_REASON),
    "a label of 64 characters": ("domain", f"{CANARY + 'a' * 54}.internal", "domain", HOST_REASON),
    "a pasted text of 2,049 characters": (
        "domain", f"{CANARY}.internal/".ljust(2_049, "x"), "domain", "is longer than 2048 characters",
    ),
    "an IPv4 address": ("domain", "192.0.2.77", "domain", HOST_REASON),
    "an IPv4 address in hexadecimal": ("domain", "192.0.2.0x4d", "domain", HOST_REASON),
    "an IPv6 address": ("domain", "[2001:db8::77]", "domain", HOST_REASON),
    "an IPv6 address with a port": ("domain", "https://[2001:db8::77]:443/", "domain", HOST_REASON),
    "a domain with a space": ("domain", f"{CANARY} x.internal", "domain", HOST_REASON),
    "a domain that is refused": ("domain", f"{CANARY}☃.internal", "domain", HOST_REASON),
    "an address as checkout host": ("checkout_hosts", ["a.internal", "192.0.2.77"], "checkout_hosts.1", HOST_REASON),
    "51 checkout hosts": ("checkout_hosts", ["a.internal"] * 51, "checkout_hosts", "has more than 50 entries"),
    "no category": ("categories", [], "categories", "needs at least 1 entry"),
    "21 categories": ("categories", _slugs(21), "categories", "has more than 20 entries"),
    "a category as text": ("categories", [CANARY], "categories.0", "must be an object"),
    "a slug in capitals": (
        "categories", [{"slug": CANARY.upper(), "name": "A"}], "categories.0.slug", "must match ^[a-z0-9-]{1,100}$",
    ),
    "a category name of 301 characters": (
        "categories", [{"slug": "a", "name": CANARY * 31}], "categories.0.name", "is longer than 300 characters",
    ),
    "a category with another field": (
        "categories", [{"slug": "a", "name": "A", "parent": CANARY}], "categories.0.parent", UNKNOWN_REASON,
    ),
    "a reserved country": ("countries", ["DE", "UK"], "countries", COUNTRY_REASON),
    "a placeholder country": ("countries", ["XX"], "countries", COUNTRY_REASON),
    "a country in small letters": ("countries", ["de"], "countries", COUNTRY_REASON),
    "no country at all": ("countries", [CANARY], "countries", COUNTRY_REASON),
    "the world and a country": (
        "countries", ["WORLDWIDE", "DE"], "countries", "must be WORLDWIDE alone, or country codes",
    ),
    "markets that are null": ("countries", None, "countries", "must be a list"),
    "a negative popularity": ("popularity", -77.123, "popularity", "must be at least 0"),
    "a popularity that is no number": ("popularity", float("nan"), "popularity", "must be a finite number"),
    "an infinite popularity": ("popularity", float("inf"), "popularity", "must be a finite number"),
    "a popularity beyond all floats": ("popularity", 10**400, "popularity", "must be a number or null"),
    "a popularity as text": ("popularity", CANARY, "popularity", "must be a number or null"),
    "a popularity as truth": ("popularity", True, "popularity", "must be a number or null"),
    "another visibility": ("visibility", CANARY, "visibility", VISIBILITY_REASON),
    "a visibility that is null": ("visibility", None, "visibility", VISIBILITY_REASON),
    "a source with a control": ("source", f"{CANARY}\x00", "source", "holds a control character"),
    "a source of 2,049 characters": ("source", CANARY.ljust(2_049), "source", "is longer than 2048 characters"),
    "a negative version": ("version", -77_123, "version", "must be at least 0"),
    "a version beyond 63 bits": ("version", 2**63, "version", "must be at most 9223372036854775807"),
    "a version with a fraction": ("version", 1.5, "version", "must be a whole number"),
    "a version as truth": ("version", True, "version", "must be a whole number"),
    "a time that is a date": ("updated_at", "2031-05-06", "updated_at", TIME_REASON),
    "a time without a zone": ("updated_at", "2031-05-06T07:08:09", "updated_at", TIME_REASON),
    "the 30th of February": ("updated_at", "2031-02-30T07:08:09Z", "updated_at", TIME_REASON),
    "a time that is a number": ("updated_at", 77_123, "updated_at", TIME_REASON),
    "a time before all times": ("updated_at", "0001-01-01T00:00:00+14:00", "updated_at", TIME_REASON),
    "another field": ("colour", CANARY, "colour", UNKNOWN_REASON),
    "a field whose name is text": (f"{CANARY} {CANARY}", 1, "(a name)", UNKNOWN_REASON),
}  # fmt: skip


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


@pytest.mark.parametrize("field", ["id", "name", "domain", "categories", "visibility"])
def test_a_required_field_must_be_there(field: str) -> None:
    line = shop("Nord", "nord.internal")
    del line[field]
    assert _why_not(line) == [(field, "is missing")]


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
    assert (_record().version_kind, order_of(_record())) == (None, NO_ORDER)
    assert (_record(version=7).version_kind, order_of(_record(version=7))) == ("version", Order(VERSION, 7))
    assert (earlier.version_kind, order_of(later).number - order_of(earlier).number) == ("updated_at", 1)
