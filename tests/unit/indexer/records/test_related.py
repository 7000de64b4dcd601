"""Related records: what is taken at the limits, what is refused for several fields together, and times."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from pydantic import ValidationError

from indexer.records.related import RECORDS, CouponRecord
from indexer.records.shop import Record, reasons
from tests.support.catalogues import coupon, offer, program, redirect, shipping, trust

APPLIED: Final = {"verification_status": "verified_applied", "last_verified_at": "2031-05-06T07:08:09Z"}
UNVERIFIED_REASON: Final = "needs last_verified_at where verification_status is verified_applied or verified_rejected"
GOOD_TAGS: Final = (
    "de", "DE", "jpn", "pt-BR", "zh-Hant", "zh-Hant-TW", "zh-yue-HK", "es-419", "de-CH-1996", "sl-rozaj-biske",
    "en-a-myext-b-another", "fr-x-shop", "x-klingon",
)  # fmt: skip
ACCOUNT: Final[dict[str, Any]] = {"provider": "P", "account": "a"}
LINES: Final[dict[str, dict[str, Any]]] = {
    "coupons": coupon("SAVE", "s1"),
    "offers": offer("o1", "s1"),
    "shipping": shipping("s1"),
    "trust": trust("s1", "registrar", "R"),
    "affiliate_programs": program("s1", "Net"),
    "redirects": redirect("a.internal", "b.internal"),
    "resource_accounts": ACCOUNT,
    "categories": {"slug": "books"},
}


def _record(kind: str, fields: dict[str, Any]) -> Record:
    return RECORDS[kind].model_validate({**LINES[kind], **fields})


def _why_not(kind: str, fields: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as refused:
        _record(kind, fields)
    return reasons(refused.value)


AT_THE_LIMIT: Final[list[tuple[str, dict[str, Any]]]] = [
    *((kind, {}) for kind in LINES),
    ("coupons", {"code": "A"}),
    ("coupons", {"code": "aZ09._+*%!#&$/@-" * 4}),
    ("coupons", {"code": "割引Ä10" * 12}),
    ("coupons", {"discount": {"kind": "percent", "value": "100"}}),
    ("coupons", {"discount": {"kind": "percent", "value": "0.5", "currency": None}}),
    ("coupons", {"discount": {"kind": "amount", "value": "999999999999.999999", "currency": "JPY"}}),
    ("coupons", {"discount": {"kind": "free_shipping"}}),
    ("coupons", {"discount": {"kind": "other", "value": None}}),
    ("coupons", {"min_order": {"amount": "0", "currency": "EUR"}}),
    ("coupons", {"countries": ["WORLDWIDE"], "blocked_countries": ["DE", "XK"]}),
    ("coupons", {"blocked_channels": ["rest", "mcp", "stdio"]}),
    ("coupons", {"title": "t" * 300, "source": "s" * 2_048}),
    ("coupons", {**APPLIED, "verification_status": "verified_rejected"}),
    # An inconclusive test leaves a time on an unverified coupon.
    ("coupons", {"last_verified_at": "2031-05-06T07:08:09Z"}),
    ("offers", {"url": "u" * 2_048}),
    ("offers", {"url": "not a URL at all", "price": None, "availability": None}),
    ("offers", {"price": {"amount": "0.000001", "currency": "USD"}, "availability": "preorder"}),
    ("shipping", {"destinations": ["WORLDWIDE", "EU", "XK"], "excluded": ["DACH"], "destinations_exhaustive": False}),
    ("shipping", {"destinations": [], "delivery_time": {"min_days": 0, "max_days": 1_000}}),
    ("shipping", {"delivery_time": {"as_stated": "soon"}, "source": "structured_data"}),
    ("trust", {"value": ["card", "invoice"], "kind": "payment_methods"}),
    ("trust", {"value": None, "source": None, "checked_at": None}),
    ("affiliate_programs", {"url_template": "https://go.network.internal/{url}"}),
    ("affiliate_programs", {"network_hosts": ["GO.network.internal."], "commission_stated": "4 %"}),
    ("redirects", {"observed_at": "2031-05-06T07:08:09Z", "source": "crawl"}),
    ("categories", {"name": "n" * 300, "names": {}, "synonyms": ["s" * 300] * 50}),
    ("categories", {"name": None, "names": None}),
    ("categories", {"names": dict.fromkeys(GOOD_TAGS, "Books")}),
    ("categories", {"names": {f"de-x-{number}": "Bücher" for number in range(100)}}),
    ("resource_accounts", {"used": 0, "limit": 1.5, "unit": "calls", "resets_at": "2031-05-06T07:08:09Z"}),
]


@pytest.mark.parametrize(("kind", "fields"), AT_THE_LIMIT)
def test_what_is_at_the_limit_is_taken_and_survives_the_staging_file(kind: str, fields: dict[str, Any]) -> None:
    record = _record(kind, fields)
    assert RECORDS[kind].model_validate_json(record.model_dump_json()) == record


# Wrong values of single fields are in the table of tests/unit/indexer/catalogue/test_wrong_values.py.
BEYOND: Final[list[tuple[str, dict[str, Any], str, str]]] = [
    ("coupons", {"verification_status": "verified_applied"}, "record", UNVERIFIED_REASON),
    ("coupons", {"verification_status": "verified_rejected"}, "record", UNVERIFIED_REASON),
    (
        "affiliate_programs",
        {"url_template": "https://go.network.internal/"},
        "record",
        "url_template must hold {url} exactly once",
    ),
    ("resource_accounts", {"limit": float("inf")}, "limit", "must be a finite number"),
]


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize(("kind", "fields", "field", "reason"), BEYOND)
def test_what_is_beyond_the_limit_is_refused_by_field_and_reason(
    kind: str, fields: dict[str, Any], field: str, reason: str
) -> None:
    assert _why_not(kind, fields) == [(field, reason)]


@pytest.mark.rule("A4")
def test_a_bare_date_begins_at_midnight_and_ends_with_its_last_second() -> None:
    record = CouponRecord.model_validate(coupon("A", "s1", valid_from="2031-05-06", valid_until="2031-05-06"))
    assert record.valid_from == datetime(2031, 5, 6, tzinfo=UTC)
    assert record.valid_until == datetime(2031, 5, 6, 23, 59, 59, tzinfo=UTC)


@pytest.mark.rule("A4")
def test_a_time_is_taken_to_the_microsecond_and_moved_to_utc() -> None:
    record = CouponRecord.model_validate(coupon("A", "s1", valid_until="2031-05-06T01:00:00.000001+02:00"))
    assert record.valid_until == datetime(2031, 5, 5, 23, 0, 0, 1, tzinfo=UTC)
