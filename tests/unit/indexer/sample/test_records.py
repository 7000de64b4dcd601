"""The records of the shipped sample are ordered, refer to each other, and hide what they must."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import idna
import pycountry
import pytest

Line = dict[str, Any]
World = Mapping[str, Sequence[Line]]

HIDDEN_ONLY: Final = "night-market"
KEYS: Final = {
    "shops": ("id",),
    "coupons": ("id",),
    "offers": ("id",),
    "shipping": ("shop_id",),
    "trust": ("shop_id", "kind"),
    "affiliate_programs": ("shop_id", "network"),
    "redirects": ("from_domain", "to_domain"),
    "resource_accounts": ("provider", "account"),
    "categories": ("slug",),
}
RESERVED: Final = re.compile(r"(^|\.)(test|example|invalid|localhost|example\.(com|net|org))$")
COUNTRIES: Final = {country.alpha_2 for country in pycountry.countries} | {"XK"}


@pytest.mark.parametrize("name", KEYS)
def test_the_records_of_a_file_are_ordered_by_a_key_that_is_unique(sample: World, name: str) -> None:
    keys = [tuple(record[field] for field in KEYS[name]) for record in sample[name]]
    assert keys == sorted(set(keys))


def test_every_record_refers_to_a_shop_of_the_sample(sample: World, by_id: Mapping[str, Line]) -> None:
    owners = {record["shop_id"] for name in KEYS for record in sample[name] if "shop_id" in record}
    ends = {record[end] for record in sample["redirects"] for end in ("from_domain", "to_domain")}
    assert owners <= by_id.keys()
    assert ends <= {shop["domain"] for shop in sample["shops"]}


def test_domains_are_unique_hosts_in_a_label_that_cannot_be_registered(sample: World) -> None:
    domains = [shop["domain"] for shop in sample["shops"]]
    assert len(set(domains)) == len(domains)
    assert domains == [idna.encode(domain, uts46=True).decode() for domain in domains]
    assert [domain for domain in domains if not domain.endswith(".internal") and not RESERVED.search(domain)] == []


def test_categories_and_countries_are_of_the_kinds_that_tools_have_rules_for(sample: World) -> None:
    categories = [category for shop in sample["shops"] for category in shop["categories"]]
    named = {code for shop in sample["shops"] for code in shop["countries"]} - {"WORLDWIDE"}
    named |= {code for c in sample["coupons"] for code in c["countries"] + c["blocked_countries"]}
    named |= {code for statement in sample["shipping"] for code in statement["destinations"] or []}
    named |= {code for statement in sample["shipping"] for code in statement["excluded"]}
    assert named - COUNTRIES == {"EU", "EEA", "DACH", "WORLDWIDE"}
    assert len({tuple(category.values()) for category in categories}) == len({c["slug"] for c in categories}) == 28
    assert all(1 <= len(shop["categories"]) <= 4 for shop in sample["shops"])


def test_every_category_has_a_name_in_five_languages_and_synonyms(sample: World) -> None:
    carried = {category["slug"]: category["name"] for shop in sample["shops"] for category in shop["categories"]}
    assert {record["slug"]: record["name"] for record in sample["categories"]} == carried
    assert {tuple(record["names"]) for record in sample["categories"]} == {("de", "fr", "es", "ja", "ar")}
    assert [record["slug"] for record in sample["categories"] if not all(record["synonyms"])] == []


def test_a_verified_coupon_always_says_when(sample: World) -> None:
    seen = Counter((c["verification_status"], c["last_verified_at"] is not None) for c in sample["coupons"])
    assert set(seen) == {
        ("verified_applied", True),
        ("verified_rejected", True),
        ("unverified", True),
        ("unverified", False),
    }


def test_hidden_shops_have_records_of_every_kind_and_share_no_word_with_public_ones(
    sample: World, by_id: Mapping[str, Line]
) -> None:
    hidden = {shop_id: shop for shop_id, shop in by_id.items() if shop["visibility"] != "public"}
    names = ("coupons", "offers", "shipping", "trust", "affiliate_programs")
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
