"""The shipped sample is ordered, hides what it must, and holds every scenario that a tool has a rule for."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import idna
import pytest

from indexer.records.related import POLICY_FIELDS, RECORDS
from indexer.records.shop import Record
from tests.support.sample import SAMPLE, records
from tests.unit.indexer.catalogue.test_page import literals


@pytest.fixture(scope="package")
def sample() -> Mapping[str, Sequence[dict[str, Any]]]:
    return {path.stem: records(path) for path in SAMPLE.glob("*.ndjson")}


@pytest.fixture(scope="package")
def by_id(sample: Mapping[str, Sequence[dict[str, Any]]]) -> Mapping[str, dict[str, Any]]:
    return {shop["id"]: shop for shop in sample["shops"]}


Line = dict[str, Any]
World = Mapping[str, Sequence[Line]]

HIDDEN_ONLY: Final = "night-market"
RESERVED: Final = re.compile(r"(^|\.)(test|example|invalid|localhost|example\.(com|net|org))$")


@pytest.mark.parametrize("kind", RECORDS)
def test_the_records_of_a_file_are_ordered_by_their_key(sample: World, kind: str) -> None:
    keys = [tuple(record[field] or "" for field in RECORDS[kind].key_fields) for record in sample[kind]]
    assert keys == sorted(set(keys))


def test_domains_are_unique_hosts_in_a_label_that_cannot_be_registered(sample: World) -> None:
    domains = [shop["domain"] for shop in sample["shops"]]
    assert len(set(domains)) == len(domains)
    assert domains == [idna.encode(domain, uts46=True).decode() for domain in domains]
    assert [domain for domain in domains if not domain.endswith(".internal") and not RESERVED.search(domain)] == []


def test_every_category_has_a_name_in_five_languages_or_more_and_synonyms(sample: World) -> None:
    carried = {category["slug"]: category["name"] for shop in sample["shops"] for category in shop["categories"]}
    assert {record["slug"]: record["name"] for record in sample["categories"]} == carried
    assert [record["slug"] for record in sample["categories"] if len(record["names"]) < 5] == []
    assert [record["slug"] for record in sample["categories"] if not all(record["synonyms"])] == []


def test_hidden_shops_have_records_of_every_kind_and_share_no_word_with_public_ones(
    sample: World, by_id: Mapping[str, Line]
) -> None:
    hidden = {shop_id: shop for shop_id, shop in by_id.items() if shop["visibility"] != "public"}
    names = ("coupons", "offers", "shipping", "policies", "trust", "affiliate_programs")
    public = json.dumps(
        [
            [record for record in sample[name] if record.get("shop_id", record.get("id")) not in hidden]
            for name in ("shops", *names)
        ]
        + [[record for record in sample["categories"] if record["slug"] != HIDDEN_ONLY]],
        ensure_ascii=False,
    )
    marks = [text for shop in hidden.values() for text in (shop["id"], shop["name"], shop["domain"], *shop["aliases"])]
    marks += [r[field] for r in sample["coupons"] if r["shop_id"] in hidden for field in ("id", "code", "title")]
    marks += [r[field] for r in sample["offers"] if r["shop_id"] in hidden for field in ("id", "title", "url")]
    marks += [r["as_stated"] for r in sample["policies"] if r["shop_id"] in hidden and r["as_stated"]]
    marks += [host for shop in hidden.values() for host in shop["checkout_hosts"]]
    (unseen,) = [record for record in sample["categories"] if record["slug"] == HIDDEN_ONLY]
    marks += [unseen["name"], *unseen["names"].values(), *unseen["synonyms"]]

    assert Counter(shop["visibility"] for shop in hidden.values()) == {"under_review": 15, "removed": 5}
    assert {name: {r["shop_id"] for r in sample[name]} & hidden.keys() for name in names} == dict.fromkeys(
        names, hidden.keys()
    )
    assert [mark for mark in marks if mark in public] == []
    assert HIDDEN_ONLY not in public
    assert any(category["slug"] == HIDDEN_ONLY for shop in hidden.values() for category in shop["categories"])


# The shops that README, hints and docs link to.
FEATURED: Final = {
    "lumen-larch.internal": "GB",
    "kiefernhaus.internal": "DE",
    "encre-ondine.internal": "FR",
    "northpine.internal": "US",
    "midori-shoten.internal": "JP",
}
LOOKALIKES: Final = (
    ("store.kiefernhaus.internal", "kiefernhaus.internal"),  # one registrable domain
    ("northpine.test", "northpine.internal"),  # one main label
    ("arrow-outfitters.internal", "aukandarrow.internal"),  # a shared alias
    ("oldvellumry.internal", "vellumry.internal"),  # a redirect
    ("fr.kompass.internal", "de.kompass.internal"),  # one name
)
SHARED_CODE: Final = "TWINS10"
EDGE_CASES: Final = "zebra-comma.internal"
INVALID_URLS: Final = {
    f"off_invalid-{way}"
    for way in [
        "http",
        "foreign-host",
        "lookalike-host",
        "host-as-prefix",
        "credentials",
        "user-as-host",
        "ipv4",
        "ipv6",
        "port-8443",
        "network-host",
        "ftp",
    ]
}

# Optional fields that all public records of a kind have, or none.
UNIFORM: Final = {
    "shops": "logo source",
    "coupons": "title source",
    "offers": "url",
    "shipping": "destinations_exhaustive",
    "redirects": "observed_at source",
    "resource_accounts": "unit used status observed_at",
    "categories": "name names synonyms",
}


@pytest.mark.parametrize("kind", RECORDS)
def test_each_optional_field_is_stated_and_left_out_and_each_fixed_value_occurs_at_public_shops(
    sample: World, by_id: Mapping[str, Line], kind: str
) -> None:
    hidden = {shop_id for shop_id, shop in by_id.items() if shop["visibility"] != "public"}
    lines = [line for line in sample[kind] if line.get("shop_id", line.get("id")) not in hidden]
    fields = RECORDS[kind].model_fields.items()
    stated = {name: {line.get(name) in (None, []) for line in lines} for name, info in fields if not info.is_required()}
    uniform = {name for name, found in stated.items() if len(found) == 1}
    assert uniform - {*Record.model_fields} == {*UNIFORM.get(kind, "").split()}
    values = {value for _, info in fields for value in literals(info.annotation)}
    unused = {value for value in values if f'"{value}"' not in json.dumps(lines)}
    assert unused == ({"under_review", "removed"} if kind == "shops" else set())


def test_codes_are_valid_at_all_times_and_facts_are_measured_without_a_value(sample: World) -> None:
    ends = {str(coupon["valid_until"])[:4] for coupon in sample["coupons"]}
    assert {"None", "2024", "2035"} <= ends
    assert any((coupon["valid_from"] or "").startswith("2035") for coupon in sample["coupons"])
    assert any(coupon["valid_until"] == "2035-12-31" for coupon in sample["coupons"])
    assert any((offer["price"] or {}).get("currency") == "JPY" for offer in sample["offers"])
    assert {said["destinations_exhaustive"] for said in sample["shipping"]} == {True, False}
    assert any(row["value"] is None and row["source"] and row["checked_at"] for row in sample["trust"])


def test_one_shop_has_an_offer_for_every_invalid_url_and_all_other_urls_are_valid(
    sample: World, by_id: Mapping[str, Line]
) -> None:
    def is_valid(offer: Line) -> bool:
        shop, url = by_id[offer["shop_id"]], urlsplit(offer["url"])
        own = url.hostname == shop["domain"] or str(url.hostname).endswith("." + shop["domain"])
        plain = url.scheme == "https" and url.username is None and url.port in {None, 443}
        return plain and (own or url.hostname in shop["checkout_hosts"])

    invalid = {offer["id"] for offer in sample["offers"] if not is_valid(offer)}
    assert invalid == INVALID_URLS
    owners = {by_id[offer["shop_id"]]["domain"] for offer in sample["offers"] if offer["id"] in invalid}
    assert owners == {EDGE_CASES}


def test_each_pair_of_lookalikes_is_public_and_shares_a_code(sample: World) -> None:
    codes = defaultdict(set)
    for coupon in sample["coupons"]:
        codes[coupon["shop_id"]].add(coupon["code"])
    shops = {shop["domain"]: shop for shop in sample["shops"] if shop["visibility"] == "public"}
    for one, other in LOOKALIKES:
        assert SHARED_CODE in codes[shops[one]["id"]] & codes[shops[other]["id"]]


def test_every_public_shop_on_a_reserved_domain_has_a_code(sample: World) -> None:
    reserved = {s["id"] for s in sample["shops"] if s["visibility"] == "public" and RESERVED.search(s["domain"])}
    assert len(reserved) == 10
    assert reserved <= {coupon["shop_id"] for coupon in sample["coupons"]}


def test_one_shop_is_with_every_network(sample: World, by_id: Mapping[str, Line]) -> None:
    networks = defaultdict(set)
    for program in sample["affiliate_programs"]:
        networks[by_id[program["shop_id"]]["domain"]].add(program["network"])
        assert program["url_template"].count("{url}") == 1
        assert urlsplit(program["url_template"]).hostname in program["network_hosts"]
    assert networks[EDGE_CASES] == {"linkmeadow", "pfennigpfad", "tollbrook"}


@pytest.mark.parametrize(("domain", "country"), FEATURED.items())
def test_a_featured_shop_has_all_that_a_shop_may_have_and_offers_and_codes_that_look_real(
    sample: World, domain: str, country: str
) -> None:
    (shop,) = [one for one in sample["shops"] if one["domain"] == domain]
    own = {name: [record for record in sample[name] if record.get("shop_id") == shop["id"]] for name in sample}
    assert (shop["visibility"], shop["popularity"] > 0.5, shop["countries"][0]) == ("public", True, country)
    assert [bool(row["value"] and row["source"] and row["checked_at"]) for row in own["trust"]] == [True] * 7
    assert own["shipping"][0]["delivery_time"] is not None
    assert {row["kind"] for row in own["policies"] if row["country"] is None} == set(POLICY_FIELDS)
    assert {row["kind"] for row in own["policies"] if row["country"]} == {"returns", "payment_methods"}
    assert [program["network"] for program in own["affiliate_programs"]][:1] == ["linkmeadow"]
    titles, urls, prices = zip(
        *((one["title"], one["url"], one["price"]["amount"]) for one in own["offers"]), strict=True
    )
    assert (len(titles) >= 4, len({*titles}), len({*urls}), len({*prices}) > 2) == (True, *[len(titles)] * 2, True)
    assert {urlsplit(url)[:2] + urlsplit(url)[3:] for url in urls} == {("https", domain, "", "")}
    coupons = own["coupons"]
    assert [one["code"] for one in coupons if not re.fullmatch("[A-Z]{4,12}[0-9]{0,3}", one["code"])] == []
    assert not any(one["blocked_channels"] or one["blocked_countries"] for one in coupons)
    assert sum((one["valid_until"] or "").startswith("2024") for one in coupons) == 1
    assert any(one["verification_status"] == "verified_applied" for one in coupons)
    assert len(coupons) >= 3
