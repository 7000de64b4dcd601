"""Records of the catalogue: every limit, at which one is taken and beyond which refused, and URLs to pay at."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from ada_url import URL
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from index_mappings.countries import COUNTRY_CODES
from indexer.records.faults import RefusedRecordError
from indexer.records.related import RECORDS, CouponRecord
from indexer.records.shop import (
    NO_ORDER,
    UPDATED_AT,
    VERSION,
    CategoryRecord,
    Order,
    Record,
    ShopRecord,
    reasons,
    validated,
)
from indexer.records.urls import affiliate_url, template_fault, url_of_shop
from tests.support.catalogues import coupon, offer, policy, program, redirect, shipping, shop, trust

CANARY: Final = "zqcanaryzq"
HOST_REASON: Final = "must be a host name with at least two labels"
UNKNOWN_REASON: Final = "is not a known field (--lenient passes over unknown fields)"


def _record(**fields: Any) -> ShopRecord:  # noqa: ANN401 - JSON values
    return ShopRecord.model_validate({**shop("Nord", "nord.internal"), **fields})


def _why_not(line: object) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as refused:
        ShopRecord.model_validate(line)
    return reasons(refused.value)


# Lengths, numbers and choices are in docs/catalogue.schema.json.
AT_THE_LIMIT: Final[dict[str, tuple[str, object]]] = {
    "a name with a tab": ("name", "Nord\tSee"),
    "a name with joiners and direction marks": ("name", "متجر\u200c\u200d\u200e"),
    "a tiny popularity": ("popularity", 5e-324),
    "a huge popularity": ("popularity", 1.7976931348623157e308),
    "every assigned country and Kosovo": ("countries", tuple(sorted(COUNTRY_CODES))),
    "a domain of 253 characters": ("domain", ".".join(["a" * 63] * 3 + ["b" * 61])),
    "a domain with an underscore": ("domain", "a_b.internal"),
    "a domain with digits": ("domain", "1.2.3.4a"),
    "joiners and a variation selector that is no tag": ("name", "a\u200d\u2060\ufe0f\U000e0100b"),
}

# What no line of JSON has; other wrong values are in the table of tests/unit/indexer/catalogue/test_validation.py.
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
    twenty = [{"slug": f"c{number}", "name": "C"} for number in range(20)]
    assert len(_record(categories=twenty).categories) == 20
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


APPLIED: Final = {"verification_status": "verified_applied", "last_verified_at": "2031-05-06T07:08:09Z"}
UNVERIFIED_REASON: Final = "must be given where verification_status is verified_applied or verified_rejected"
GOOD_TAGS: Final = (
    "de", "DE", "jpn", "pt-BR", "zh-Hant", "zh-Hant-TW", "zh-yue-HK", "es-419", "de-CH-1996", "sl-rozaj-biske",
    "en-a-myext-b-another", "fr-x-shop", "x-klingon",
)  # fmt: skip
PAYMENT: Final[dict[str, Any]] = {"kind": "payment_methods", "category": None, "methods": ["card"]}
METHODS_REASON: Final = "must be of at_kiosk, by_mail, in_store, keep_product where kind is returns"
KIND_REASON: Final = "must be one of 'returns', 'payment_methods' or 'buyer_protection'"
ACCOUNT: Final[dict[str, Any]] = {"provider": "P", "account": "a"}
LINES: Final[dict[str, dict[str, Any]]] = {
    "coupons": coupon("SAVE", "s1"),
    "offers": offer("o1", "s1"),
    "shipping": shipping("s1"),
    "policies": policy("s1", "returns"),
    "trust": trust("s1", "registrar", "R"),
    "affiliate_programs": program("s1", "Net"),
    "redirects": redirect("a.internal", "b.internal"),
    "resource_accounts": ACCOUNT,
    "categories": {"slug": "books"},
}


def _related_record(kind: str, fields: dict[str, Any]) -> Record:
    return RECORDS[kind].model_validate({**LINES[kind], **fields})


def _related_why_not(kind: str, fields: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as refused:
        _related_record(kind, fields)
    return reasons(refused.value)


RELATED_AT_THE_LIMIT: Final[list[tuple[str, dict[str, Any]]]] = [
    *((kind, {}) for kind in LINES),
    ("coupons", {"code": "aZ09._+*%!#&$/@-" * 4}),
    ("coupons", {"code": "割引Ä10" * 12}),
    ("coupons", {"discount": {"kind": "percent", "value": "100"}}),
    ("coupons", {"discount": {"kind": "percent", "value": "0.5", "currency": None}}),
    ("coupons", {"discount": {"kind": "amount", "value": "999999999999.999999", "currency": "JPY"}}),
    ("coupons", {"discount": {"kind": "free_shipping"}}),
    ("coupons", {"discount": {"kind": "other", "value": None}}),
    ("coupons", {"countries": ["WORLDWIDE"], "blocked_countries": ["DE", "XK"]}),
    ("coupons", {**APPLIED, "verification_status": "verified_rejected"}),
    # An inconclusive test leaves a time on an unverified coupon.
    ("coupons", {"last_verified_at": "2031-05-06T07:08:09Z"}),
    ("offers", {"url": "not a URL at all", "price": None, "availability": None}),
    ("shipping", {"destinations": ["WORLDWIDE", "EU", "XK"], "excluded": ["DACH"], "destinations_exhaustive": False}),
    ("shipping", {"delivery_time": {"as_stated": "soon"}, "source": "structured_data"}),
    ("policies", {"days": 0, "counted_from": "ordered", "fees": "free", "countries": ["WORLDWIDE"], "country": "XK"}),
    ("policies", {"category": "unlimited", "fees": "unknown", "methods": ["keep_product"] * 50}),
    ("policies", {"category": "not_permitted", "as_stated": "a" * 300, "source": "s" * 2_048}),
    ("policies", {"kind": "payment_methods", "category": None, "methods": ["m" * 300], "as_stated": "as you like"}),
    ("policies", {"kind": "buyer_protection", "category": None, "as_stated": "a", "methods": [], "countries": []}),
    ("trust", {"value": ["card", "invoice"], "kind": "payment_methods"}),
    ("affiliate_programs", {"url_template": "https://go.network.internal/{url}"}),
    ("affiliate_programs", {"network_hosts": ["GO.network.internal."], "commission_stated": "4 %"}),
    ("categories", {"name": None, "names": None}),
    ("categories", {"names": dict.fromkeys(GOOD_TAGS, "Books")}),
]


@pytest.mark.parametrize(("kind", "fields"), RELATED_AT_THE_LIMIT)
def test_what_is_at_the_limit_is_taken_and_survives_the_staging_file(kind: str, fields: dict[str, Any]) -> None:
    record = _related_record(kind, fields)
    assert RECORDS[kind].model_validate_json(record.model_dump_json()) == record


# Wrong values of single fields are in the table of tests/unit/indexer/catalogue/test_validation.py.
RELATED_BEYOND: Final[list[tuple[str, dict[str, Any], str, str]]] = [
    ("coupons", {"verification_status": "verified_applied"}, "last_verified_at", UNVERIFIED_REASON),
    ("coupons", {"verification_status": "verified_rejected"}, "last_verified_at", UNVERIFIED_REASON),
    (
        "affiliate_programs",
        {"url_template": "https://go.network.internal/"},
        "url_template",
        "must hold {url} exactly once",
    ),
    ("resource_accounts", {"limit": float("inf")}, "limit", "must be a finite number"),
    *(
        ("policies", fields, field, reason)
        for fields, field, reason in (
            ({"category": None}, "category", "must be given where kind is returns"),
            ({**PAYMENT, "methods": []}, "methods", "must be given where kind is payment_methods"),
            (
                {"kind": "buyer_protection", "category": None},
                "as_stated",
                "must be given where kind is buyer_protection",
            ),
            ({**PAYMENT, "category": "finite"}, "category", "must not be given where kind is payment_methods"),
            ({**PAYMENT, "days": 0}, "days", "must not be given where kind is payment_methods"),
            ({**PAYMENT, "countries": ["DE"]}, "countries", "must not be given where kind is payment_methods"),
            (
                {**PAYMENT, "kind": "buyer_protection", "as_stated": "a"},
                "methods",
                "must not be given where kind is buyer_protection",
            ),
            ({"methods": ["by_mail", "pigeon"]}, "methods", METHODS_REASON),
            ({"category": "unlimited", "days": 0}, "days", "must not be given where category is unlimited"),
            (
                {"category": "unlimited", "counted_from": "ordered"},
                "counted_from",
                "must not be given where category is unlimited",
            ),
            (
                {"category": "not_permitted", "fees": "free"},
                "fees",
                "must not be given where category is not_permitted",
            ),
            (
                {"category": "not_permitted", "methods": ["in_store"]},
                "methods",
                "must not be given where category is not_permitted",
            ),
        )
    ),
]


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize(("kind", "fields", "field", "reason"), RELATED_BEYOND)
def test_what_is_beyond_the_limit_is_refused_by_field_and_reason(
    kind: str, fields: dict[str, Any], field: str, reason: str
) -> None:
    assert _related_why_not(kind, fields) == [(field, reason)]


@pytest.mark.parametrize(
    ("kind", "fields", "reported"),
    [
        (
            "coupons",
            {"title": "", "verification_status": "verified_applied", "discount": {"kind": "amount", "currency": "eur"}},
            {
                "title": "must not be blank",
                "discount.value": "must be given where kind is amount",
                "discount.currency": "must be an ISO 4217 currency code in capitals",
                "last_verified_at": UNVERIFIED_REASON,
            },
        ),
        (
            "policies",
            {"category": "unlimited", "days": 3, "counted_from": "ordered", "methods": ["pigeon"], "source": ""},
            {
                "days": "must not be given where category is unlimited",
                "counted_from": "must not be given where category is unlimited",
                "methods": METHODS_REASON,
                "source": "must not be empty",
            },
        ),
        ("policies", {"kind": "vouchers", "category": "finite"}, {"kind": KIND_REASON}),
        (
            "affiliate_programs",
            {"program_id": "", "network_hosts": ["localhost"], "url_template": "https://go.network.internal/"},
            {
                "program_id": "must not be blank",
                "network_hosts.0": HOST_REASON,
                "url_template": "must hold {url} exactly once",
            },
        ),
    ],
)
def test_what_does_not_fit_together_is_reported_with_all_else_and_for_valid_fields_only(
    kind: str, fields: dict[str, Any], reported: dict[str, str]
) -> None:
    assert dict(_related_why_not(kind, fields)) == reported


@pytest.mark.rule("A4")
def test_a_bare_date_begins_at_midnight_and_ends_with_its_last_second() -> None:
    record = CouponRecord.model_validate(coupon("A", "s1", valid_from="2031-05-06", valid_until="2031-05-06"))
    assert record.valid_from == datetime(2031, 5, 6, tzinfo=UTC)
    assert record.valid_until == datetime(2031, 5, 6, 23, 59, 59, tzinfo=UTC)


SHOP = "nord-licht.internal"
HOSTS = ("pay.partner.internal", "xn--bcher-kva.internal")

TABLE: Final = tomllib.loads(Path(__file__).with_name("checkout_urls.toml").read_text(encoding="utf-8"))
TEMPLATES: Final[list[str]] = TABLE["templates"]["good"]
NETWORK: Final = ("go.network.internal",)


@pytest.mark.rule("A10")
@pytest.mark.parametrize(("stated", "canonical"), TABLE["good"])
def test_a_url_of_the_shop_or_of_a_listed_host_is_given_in_canonical_form(stated: str, canonical: str) -> None:
    assert url_of_shop(stated, SHOP, HOSTS) == canonical
    assert url_of_shop(canonical, SHOP, HOSTS) == canonical


@pytest.mark.rule("A10")
@pytest.mark.parametrize("kind", TABLE["bad"])
def test_any_other_url_is_none(kind: str) -> None:
    assert url_of_shop(TABLE["bad"][kind], SHOP, HOSTS) is None


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    ("shop_domain", "listed", "valid", "invalid"),
    [
        ("co.uk", (), ("co.uk",), ("evil.co.uk", "www.co.uk", "www.evil.co.uk")),
        ("myshopify.com", (), ("myshopify.com",), ("foo.myshopify.com", "www.myshopify.com", "a.foo.myshopify.com")),
        (
            "foo.myshopify.com",
            (),
            ("foo.myshopify.com", "www.foo.myshopify.com", "a.b.foo.myshopify.com"),
            ("myshopify.com", "bar.myshopify.com", "www.myshopify.com"),
        ),
        ("a.shop.co.uk", (), ("a.shop.co.uk", "b.a.shop.co.uk"), ("shop.co.uk", "b.shop.co.uk", "www.shop.co.uk")),
        ("shop.de", ("co.uk",), ("co.uk", "pay.shop.de"), ("evil.co.uk", "www.co.uk")),
        ("shop.de", ("pay.co.uk",), ("pay.co.uk", "www.pay.co.uk"), ("a.pay.co.uk", "www.www.pay.co.uk")),
        ("shop.de", ("myshopify.com",), ("myshopify.com",), ("www.myshopify.com", "foo.myshopify.com")),
    ],
)
def test_a_sub_domain_is_of_its_parent_only_with_the_same_registrable_domain(
    shop_domain: str, listed: tuple[str, ...], valid: tuple[str, ...], invalid: tuple[str, ...]
) -> None:
    assert [url_of_shop(f"https://{host}/", shop_domain, listed) for host in valid] == [
        f"https://{host}/" for host in valid
    ]
    assert [url_of_shop(f"https://{host}/", shop_domain, listed) for host in invalid] == [None] * len(invalid)


@pytest.mark.rule("A10")
def test_an_address_is_refused_even_where_a_catalogue_lists_it() -> None:
    listed = ("127.0.0.1", "[::1]", "::1", "2130706433", "localhost")
    assert [url_of_shop(f"https://{host}/", SHOP, listed) for host in ("127.0.0.1", "[::1]", "2130706433")] == [
        None
    ] * 3
    assert url_of_shop("https://localhost/", SHOP, listed) is None


_pieces = st.sampled_from(
    ("https://", "http://", "HTTPS:", "//", "/", "\\", "@", ":", ":443", ":8443", "#", "?", "%2f", "%40", "%2e", ".",
     "。", "．", "\t", "\r\n", "\x00", " ", "\u200b", "www.", SHOP, "pay.partner.internal", "evil.internal", "evil",
     "127.0.0.1", "0x7f.1", "[::1]", "user", "{url}", "bücher.internal", "xn--", "а", "..", "javascript:"),
)  # fmt: skip
_urls = st.one_of(
    st.lists(_pieces, max_size=8).map("".join),
    st.lists(_pieces, max_size=6).map(lambda parts: f"https://{''.join(parts)}"),
    st.text(max_size=30).map(lambda text: f"https://{text}{SHOP}/"),
    st.text(max_size=30).map(lambda text: f"https://{SHOP}{text}"),
)


def _is_safe(url: str, hosts: tuple[str, ...]) -> bool:
    read = URL(url)
    plain = (read.protocol, read.username, read.password, read.port) == ("https:", "", "", "")
    host = read.hostname
    return plain and url.isascii() and (host.endswith(f".{SHOP}") or host.removeprefix("www.") in hosts)


@pytest.mark.rule("A10")
@example(f"https://{SHOP}")
@given(_urls)
def test_whatever_is_given_out_is_https_to_a_host_of_the_shop_without_credentials_or_port(stated: str) -> None:
    given_out = url_of_shop(stated, SHOP, HOSTS)
    assert given_out is None or _is_safe(given_out, (SHOP, *HOSTS))


@pytest.mark.rule("A10")
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_on_the_networks_host_carries_the_url_percent_encoded_once(template: str) -> None:
    url = f"https://{SHOP}/a?b=c%20d&e=ä#f"
    assert template_fault(template, NETWORK) is None
    built = affiliate_url(template, NETWORK, url)
    assert built is not None
    assert URL(built).hostname in ("go.network.internal", "www.go.network.internal")
    assert built.count(quote(url, safe="")) == 1


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    ("template", "fault"), [(one, found["reason"]) for found in TABLE["templates"]["faults"] for one in found["of"]]
)
def test_a_template_that_could_lead_elsewhere_is_a_fault(template: str, fault: str) -> None:
    assert template_fault(template, NETWORK) == fault


@pytest.mark.rule("A10")
@given(_urls, st.sampled_from(TEMPLATES))
def test_a_networks_url_stays_on_the_networks_host_whatever_it_carries(url: str, template: str) -> None:
    built = affiliate_url(template, NETWORK, url)
    assert built is not None
    read = URL(built)
    assert (read.protocol, read.username, read.password, read.port) == ("https:", "", "", "")
    assert read.hostname.removeprefix("www.") == "go.network.internal"


@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"destinations": [], "destinations_exhaustive": True, "excluded": []},
        {"delivery_time": {}, "checked_at": "2031-05-06T07:08:09Z", "source": "policy_page"},
        {"delivery_time": {"min_days": None}, "free_shipping_threshold": None},
    ],
)
def test_a_shipping_statement_that_states_nothing_is_a_bad_record(said: dict[str, Any]) -> None:
    with pytest.raises(RefusedRecordError) as refused:
        validated(RECORDS["shipping"], {"shop_id": "s1", **said}, lenient=False)
    reason = "states nothing: it needs one of destinations, excluded, delivery_time, free_shipping_threshold"
    assert refused.value.faults == ((None, reason),)
