"""The contract to the letter: mappings, settings, columns, and what the text pipeline makes of fixed examples.

A service refuses a generation of another schema version, so each change here needs a new one (G4).
"""

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Any, Final

import pytest

from index_mappings.documents import DOCUMENTS, SCHEMA_VERSION, Form, declared_fields
from index_mappings.embedded import BAND_COLUMN, columns
from index_mappings.forms import shop_forms
from index_mappings.generations import STAMP
from index_mappings.opensearch import mapping, settings
from index_mappings.text import fold
from index_mappings.tiers import rank_key
from tests.golden.golden import DIRECTORY, assert_golden

KINDS: Final = (*DOCUMENTS, STAMP)
REMINDER: Final = "A generation built before the change would answer wrongly: raise SCHEMA_VERSION as well."
TEXTS: Final = (
    "Marks & Spencer", "McDonald's", "Straße", "Œuvre Øre", "İstanbul", "パン屋", "ร้านดาว", "दीपक", "한빛", "Ёлка",
    "متجر الياسمين", "???", "½ Ⅳ ﬁne", "co\u00adop", "K+K", "みどり", "쿠팡", "값", "کتاب مؤسسة", "❤\ufe0f", "שָׁלוֹם",
)  # fmt: skip
SHOPS: Final = (
    ("Marks & Spencer", ("M&S",), "marksandspencer.com"),
    ("Müller+Söhne", (), "xn--mller-kva.co.uk"),
    ("緑の店", (), "midori-mise.myshopify.com"),
    ("Солнце", ("Sonne",), "shop.solntse.internal"),
    ("???", (), "q.internal"),
    ("The Smörgås House", ("L'Or",), "smorgas.internal"),
    ("コーヒーしまむら", ("커피",), "coffee.internal"),
)


def _columns(kind: str) -> list[dict[str, Any]]:
    fields = [(one.name, one.form is Form.WHOLE, one.sortable, one.ordered) for one in columns(kind)]
    names = ("name", "whole", "sortable", "ordered")
    return [dict(zip(names, field, strict=True)) for field in (*fields, (BAND_COLUMN, True, True, False))]


@pytest.mark.rule("X4", "G4.schema")
@pytest.mark.parametrize("kind", KINDS)
def test_the_mapping_of_each_index_is_the_golden_one(kind: str) -> None:
    assert_golden(f"mapping_{kind}.json", mapping(kind), reminder=REMINDER)


@pytest.mark.rule("G1")
def test_the_settings_of_each_index_are_the_golden_ones() -> None:
    derived = {kind: settings(kind, shards=3, replicas=1) for kind in KINDS}
    assert_golden("settings.json", derived, reminder=REMINDER)


@pytest.mark.rule("X4", "G4.schema")
def test_the_columns_of_the_embedded_engine_are_the_golden_ones() -> None:
    derived = {kind: _columns(kind) for kind in DOCUMENTS}
    assert_golden("embedded_columns.json", derived, reminder=REMINDER)


@pytest.mark.rule("X1", "X2", "G4.schema")
def test_the_text_pipeline_makes_of_the_examples_what_it_made_of_them_before() -> None:
    derived = {
        "folded": {text: fold(text) for text in TEXTS},
        "forms": {name: asdict(shop_forms(name, aliases, domain)) for name, aliases, domain in SHOPS},
    }
    assert_golden("text.json", derived, reminder=REMINDER)


@pytest.mark.rule("G4.schema")
def test_the_schema_version_belongs_to_this_fingerprint_of_the_contract() -> None:
    contract = {
        "roles": {kind: [str(field) for field in declared_fields(document)] for kind, document in DOCUMENTS.items()},
        "mappings": {kind: mapping(kind) for kind in KINDS},
        "columns": {kind: _columns(kind) for kind in DOCUMENTS},
        "folded": [fold(text) for text in TEXTS],
        "forms": [asdict(shop_forms(*shop)) for shop in SHOPS],
        "rank": [rank_key(popularity, "s") for popularity in (None, 0.5, 7.0)],
    }
    fingerprint = sha256(json.dumps(contract, sort_keys=True).encode()).hexdigest()
    derived = {"schema_version": SCHEMA_VERSION, "fingerprint": fingerprint}
    known = json.loads((DIRECTORY / "schema.json").read_text(encoding="utf-8"))
    # One version is one contract: unlike other golden files, its fingerprint can't be renewed.
    assert known == derived or known["schema_version"] < SCHEMA_VERSION, REMINDER
    assert_golden("schema.json", derived, reminder=REMINDER)
