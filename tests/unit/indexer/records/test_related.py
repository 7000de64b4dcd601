"""Every limit of related records: at it a record is taken, one beyond it is refused by field and reason."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from pydantic import ValidationError

from index_mappings.documents import TRUST_KINDS
from index_mappings.strict_json import strict_loads
from indexer.records.related import RECORDS, CouponRecord, OfferRecord
from indexer.records.shop import Record, reasons
from indexer.records.values import CURRENCIES
from tests.support.catalogues import coupon, offer, program, redirect, shipping, trust

CANARY: Final = "zqcanaryzq"
APPLIED: Final = {"verification_status": "verified_applied", "last_verified_at": "2031-05-06T07:08:09Z"}
AMOUNT_REASON: Final = r"must match ^[0-9]{1,12}(\.[0-9]{1,6})?$"
AMOUNT_OFF_REASON: Final = "needs a value and a currency for an amount"
COUNTRY_REASON: Final = "must hold assigned ISO 3166-1 alpha-2 codes (or XK) in capitals"
HOST_REASON: Final = "must be a host name with at least two labels"
ID_REASON: Final = "must match ^[A-Za-z0-9_-]{1,64}$"
PERCENT_REASON: Final = "needs a value of at most 100 for a percentage"
CODE_REASON: Final = "must be 1 to 64 letters, marks and numbers of any script, or ._+*%!#&$/@-"
CURRENCY_REASON: Final = "must be an ISO 4217 currency code in capitals"
DESTINATION_REASON: Final = "must hold assigned country codes and known groups, such as EU or WORLDWIDE"
TIME_REASON: Final = "must be a date and time as in RFC 3339"
DATE_REASON: Final = "must be a date, or a date and time as in RFC 3339"
UNVERIFIED_REASON: Final = "needs last_verified_at where verification_status is verified_applied or verified_rejected"
TAG_REASON: Final = "must have language tags (BCP 47) such as de, pt-BR or zh-Hant as its keys"
GOOD_TAGS: Final = (
    "de", "DE", "jpn", "pt-BR", "zh-Hant", "zh-Hant-TW", "zh-yue-HK", "es-419", "de-CH-1996", "sl-rozaj-biske",
    "en-a-myext-b-another", "fr-x-shop", "x-klingon",
)  # fmt: skip
BAD_TAGS: Final = (
    "", "d", "jp", "gr", "german", "Deutsch", "de_DE", "de-", "-de", "de--DE", "de-DEUTSCHLAND", "pt BR", "d\u0435",
    "x", "de\n", "de-x", f"de-x-{'-'.join(['abcdefgh'] * 4)}", CANARY,
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


@pytest.mark.parametrize("kind", LINES)
def test_the_plainest_record_of_each_type_is_taken_and_survives_the_staging_file(kind: str) -> None:
    record = _record(kind, {})
    assert RECORDS[kind].model_validate_json(record.model_dump_json()) == record


AT_THE_LIMIT: Final[list[tuple[str, dict[str, Any]]]] = [
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
def test_what_is_at_the_limit_is_taken(kind: str, fields: dict[str, Any]) -> None:
    record = _record(kind, fields)
    assert RECORDS[kind].model_validate_json(record.model_dump_json()) == record


def _bad_money(field: str, kind: str) -> list[tuple[str, dict[str, Any], str, str]]:
    return [
        (kind, {field: {"amount": amount, "currency": "EUR"}}, f"{field}.amount", AMOUNT_REASON)
        for amount in ("", "-1", "1,5", "1.", ".5", "1e3", "1.1234567", "1" * 13, "NaN", " 1", "+1", "1\n", "\u0661")
    ] + [
        (kind, {field: {"amount": 5, "currency": "EUR"}}, f"{field}.amount", "must be a string"),
        (kind, {field: {"amount": "5", "currency": "eur"}}, f"{field}.currency", CURRENCY_REASON),
        (kind, {field: {"amount": "5", "currency": "EURO"}}, f"{field}.currency", CURRENCY_REASON),
        (kind, {field: {"amount": "5"}}, f"{field}.currency", "is missing"),
    ]


BEYOND: Final[list[tuple[str, dict[str, Any], str, str]]] = [
    *_bad_money("min_order", "coupons"),
    *_bad_money("price", "offers"),
    *_bad_money("free_shipping_threshold", "shipping"),
    *[
        ("coupons", {"code": code}, "code", CODE_REASON)
        for code in ("", "a" * 65, "A B", "A\n", "<b>", "a=b", "a,b", "A\ufe0f", "😀")
    ],
    *[("coupons", {"id": bad}, "id", ID_REASON) for bad in ("", "a" * 65, "a/b", "c\n")],
    ("coupons", {"shop_id": "a b"}, "shop_id", ID_REASON),
    ("coupons", {"title": "t" * 301}, "title", "is longer than 300 characters"),
    ("coupons", {"title": f"{CANARY}\x07"}, "title", "holds a control character"),
    ("coupons", {"discount": {"kind": "percent"}}, "discount", PERCENT_REASON),
    ("coupons", {"discount": {"kind": "percent", "value": "100.01"}}, "discount", PERCENT_REASON),
    ("coupons", {"discount": {"kind": "amount", "value": "5"}}, "discount", AMOUNT_OFF_REASON),
    ("coupons", {"discount": {"kind": "amount", "currency": "EUR"}}, "discount", AMOUNT_OFF_REASON),
    (
        "coupons",
        {"discount": {"kind": "half"}},
        "discount.kind",
        "must be one of 'percent', 'amount', 'free_shipping' or 'other'",
    ),
    ("coupons", {"countries": ["UK"]}, "countries", COUNTRY_REASON),
    ("coupons", {"countries": ["WORLDWIDE", "DE"]}, "countries", "must be WORLDWIDE alone, or country codes"),
    *[("coupons", {"blocked_countries": [bad]}, "blocked_countries", COUNTRY_REASON) for bad in ("de", "WORLDWIDE")],
    ("coupons", {"blocked_channels": ["ftp"]}, "blocked_channels.0", "must be one of 'rest', 'mcp' or 'stdio'"),
    (
        "coupons",
        {"verification_status": "verified"},
        "verification_status",
        "must be one of 'verified_applied', 'verified_rejected' or 'unverified'",
    ),
    ("coupons", {"verification_status": "verified_applied"}, "record", UNVERIFIED_REASON),
    ("coupons", {"verification_status": "verified_rejected"}, "record", UNVERIFIED_REASON),
    ("coupons", {"last_verified_at": "2031-05-06"}, "last_verified_at", TIME_REASON),
    ("coupons", {"source": "s" * 2_049}, "source", "is longer than 2048 characters"),
    *[("coupons", {end: "2031-02-29"}, end, DATE_REASON) for end in ("valid_from", "valid_until")],
    *[
        ("coupons", {"valid_until": bad}, "valid_until", DATE_REASON)
        for bad in ("", "soon", "2031-05-06T07:08:09", 5, "2031-05-06\n")
    ],
    ("offers", {"title": " "}, "title", "must not be blank"),
    ("offers", {"url": "u" * 2_049}, "url", "is longer than 2048 characters"),
    ("offers", {"url": "https://a\x00b"}, "url", "holds a control character"),
    (
        "offers",
        {"availability": "maybe"},
        "availability",
        "must be one of 'in_stock', 'out_of_stock', 'preorder' or 'discontinued'",
    ),
    ("shipping", {"destinations": ["EUROPE"]}, "destinations", DESTINATION_REASON),
    ("shipping", {"excluded": ["eu"]}, "excluded", DESTINATION_REASON),
    ("shipping", {"destinations_exhaustive": "true"}, "destinations_exhaustive", "must be true, false or null"),
    ("shipping", {"delivery_time": {"min_days": -1}}, "delivery_time.min_days", "must be at least 0"),
    ("shipping", {"delivery_time": {"max_days": 1_001}}, "delivery_time.max_days", "must be at most 1000"),
    (
        "shipping",
        {"delivery_time": {"as_stated": "d" * 301}},
        "delivery_time.as_stated",
        "is longer than 300 characters",
    ),
    ("shipping", {"source": "rumour"}, "source", "must be one of 'policy_page' or 'structured_data'"),
    (
        "trust",
        {"kind": "score"},
        "kind",
        f"must be one of {', '.join(map(repr, TRUST_KINDS[:-1]))} or 'payment_methods'",
    ),
    ("affiliate_programs", {"network": ""}, "network", "must not be blank"),
    ("affiliate_programs", {"network_hosts": []}, "network_hosts", "needs at least 1 entry"),
    ("affiliate_programs", {"network_hosts": ["localhost"]}, "network_hosts.0", HOST_REASON),
    (
        "affiliate_programs",
        {"url_template": "https://go.network.internal/"},
        "record",
        "url_template must hold {url} exactly once",
    ),
    ("redirects", {"from_domain": "127.0.0.1"}, "from_domain", HOST_REASON),
    ("redirects", {"to_domain": "b"}, "to_domain", HOST_REASON),
    ("categories", {"slug": "Books"}, "slug", "must match ^[a-z0-9-]{1,100}$"),
    ("categories", {"name": " "}, "name", "must not be blank"),
    ("categories", {"names": {"de": "n" * 301}}, "names.de", "is longer than 300 characters"),
    ("categories", {"names": {"de": f"{CANARY}\u202e"}}, "names.de", "holds a bidirectional override or isolate"),
    ("categories", {"names": {f"de-x-{number}": "B" for number in range(101)}}, "names", "has more than 100 entries"),
    *[("categories", {"names": {"de": "", tag: ""}}, "names", TAG_REASON) for tag in BAD_TAGS],
    ("categories", {"synonyms": ["s"] * 51}, "synonyms", "has more than 50 entries"),
    ("categories", {"synonyms": [""]}, "synonyms.0", "must not be blank"),
    ("resource_accounts", {"used": -1}, "used", "must be at least 0"),
    ("resource_accounts", {"limit": float("inf")}, "limit", "must be a finite number"),
    ("resource_accounts", {"account": " "}, "account", "must not be blank"),
]


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize(("kind", "fields", "field", "reason"), BEYOND)
def test_what_is_beyond_the_limit_is_refused_by_field_and_reason(
    kind: str, fields: dict[str, Any], field: str, reason: str
) -> None:
    assert _why_not(kind, fields) == [(field, reason)]


@pytest.mark.parametrize("kind", LINES)
def test_an_unknown_field_is_refused_in_every_type(kind: str) -> None:
    assert _why_not(kind, {"colour": "red"}) == [
        ("colour", "is not a known field (--lenient passes over unknown fields)")
    ]


def test_no_line_that_json_can_hold_has_a_number_for_an_amount() -> None:
    line = strict_loads(b'{"id": "o1", "shop_id": "s1", "title": "T", "price": {"amount": 9.99, "currency": "EUR"}}')
    with pytest.raises(ValidationError) as refused:
        OfferRecord.model_validate(line)
    assert reasons(refused.value) == [("price.amount", "must be a string")]


@pytest.mark.rule("A4")
def test_a_bare_date_begins_at_midnight_and_ends_with_its_last_second() -> None:
    record = CouponRecord.model_validate(coupon("A", "s1", valid_from="2031-05-06", valid_until="2031-05-06"))
    assert record.valid_from == datetime(2031, 5, 6, tzinfo=UTC)
    assert record.valid_until == datetime(2031, 5, 6, 23, 59, 59, tzinfo=UTC)


@pytest.mark.rule("A4")
def test_a_time_is_taken_to_the_microsecond_and_moved_to_utc() -> None:
    record = CouponRecord.model_validate(coupon("A", "s1", valid_until="2031-05-06T01:00:00.000001+02:00"))
    assert record.valid_until == datetime(2031, 5, 5, 23, 0, 0, 1, tzinfo=UTC)


def test_currencies_are_those_of_the_standard() -> None:
    assert {"EUR", "USD", "JPY", "KWD", "CHF", "GBP"} <= CURRENCIES
    assert CURRENCIES.isdisjoint({"EURO", "eur", "", "BTC", "DEM"})


def test_each_record_has_the_key_of_its_type() -> None:
    keys = {kind: getattr(_record(kind, {}), "key") for kind in LINES}  # noqa: B009 - the base class has none
    assert keys == {
        "coupons": LINES["coupons"]["id"],
        "offers": "o1",
        "shipping": "s1",
        "trust": "s1/registrar",
        "affiliate_programs": "s1/Net",
        "redirects": "a.internal/b.internal",
        "resource_accounts": "P/a",
        "categories": "books",
    }
