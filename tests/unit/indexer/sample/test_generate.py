"""The shipped sample is what its generator writes, has the catalogue's format and hides what it must."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import idna
import pycountry
import pytest

import indexer.sample
from indexer.sample.categories import HIDDEN_ONLY
from indexer.sample.generate import write

Line = dict[str, Any]
World = Mapping[str, Sequence[Line]]

SHIPPED: Final = Path(indexer.sample.__file__).parent
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
IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
CODE: Final = re.compile(r"[A-Za-z0-9._+*%!#&$/@-]{1,64}")


@pytest.fixture(scope="module")
def sample() -> World:
    return {
        name: [json.loads(line) for line in (SHIPPED / f"{name}.ndjson").read_text("utf-8").splitlines()]
        for name in KEYS
    }


@pytest.fixture(scope="module")
def by_id(sample: World) -> Mapping[str, Line]:
    return {shop["id"]: shop for shop in sample["shops"]}


def test_the_shipped_files_are_what_the_generator_writes_byte_for_byte(tmp_path: Path) -> None:
    write(tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in SHIPPED.glob("*.ndjson")}
    assert set(written) == {f"{name}.ndjson" for name in KEYS}


def test_another_process_with_another_hash_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    target = tmp_path / "made" / "again"
    command = [sys.executable, "-m", "indexer.sample.generate", str(target)]
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": str(SHIPPED.parent.parent)}
    said = subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout
    assert [line.split()[0] for line in said.splitlines()] == [f"{name}.ndjson" for name in KEYS]
    assert all((target / f"{name}.ndjson").read_bytes() == (SHIPPED / f"{name}.ndjson").read_bytes() for name in KEYS)


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


def test_ids_slugs_codes_and_countries_have_the_format(sample: World) -> None:
    ids = [record["id"] for name in ("shops", "coupons", "offers") for record in sample[name]]
    categories = [category for shop in sample["shops"] for category in shop["categories"]]
    codes = [coupon["code"] for coupon in sample["coupons"]]
    named = {code for shop in sample["shops"] for code in shop["countries"]} - {"WORLDWIDE"}
    named |= {code for c in sample["coupons"] for code in c["countries"] + c["blocked_countries"]}
    named |= {code for statement in sample["shipping"] for code in statement["destinations"] or []}
    named |= {code for statement in sample["shipping"] for code in statement["excluded"]}
    assert [text for text in ids if not IDENTIFIER.fullmatch(text)] == []
    assert [category for category in categories if not re.fullmatch("[a-z0-9-]+", category["slug"])] == []
    assert [code for code in codes if not CODE.fullmatch(code)] == []
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
