"""The records of the shipped sample are ordered, refer to each other, and hide what they must."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import idna
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


@pytest.mark.parametrize("name", KEYS)
def test_the_records_of_a_file_are_ordered_by_their_key(sample: World, name: str) -> None:
    keys = [tuple(record[field] for field in KEYS[name]) for record in sample[name]]
    assert keys == sorted(keys)


def test_domains_are_unique_hosts_in_a_label_that_cannot_be_registered(sample: World) -> None:
    domains = [shop["domain"] for shop in sample["shops"]]
    assert len(set(domains)) == len(domains)
    assert domains == [idna.encode(domain, uts46=True).decode() for domain in domains]
    assert [domain for domain in domains if not domain.endswith(".internal") and not RESERVED.search(domain)] == []


def test_every_category_has_a_name_in_five_languages_and_synonyms(sample: World) -> None:
    carried = {category["slug"]: category["name"] for shop in sample["shops"] for category in shop["categories"]}
    assert {record["slug"]: record["name"] for record in sample["categories"]} == carried
    assert {tuple(record["names"]) for record in sample["categories"]} == {("de", "fr", "es", "ja", "ar")}
    assert [record["slug"] for record in sample["categories"] if not all(record["synonyms"])] == []


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
