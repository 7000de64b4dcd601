"""A new field of a document: one line in its class, one in the projection, and no way past a new schema version."""

from typing import Final

import pytest

from index_mappings.documents import SCHEMA_VERSION
from tests.people.contributing.page import guards
from tests.people.contributing.planting import Copy

TITLE: Final = "A new field"
CLASSES: Final = "index_mappings/documents.py"
DECLARED: Final = "    markets: Annotated[tuple[str, ...], Role.EXACT]\n"
FIELD: Final = "    founded: Annotated[str, Role.STORED | Role.EXACT]\n"
PROJECTED: Final = "        markets=markets_of(shop.countries, shop.domain),\n"
CONTRACT: Final = "tests/golden/test_contract.py"
FINGERPRINT: Final = f"{CONTRACT}::test_the_schema_version_belongs_to_this_fingerprint_of_the_contract"
KEYWORD: Final = {"doc_values": False, "index": True, "type": "keyword"}
COLUMN: Final = {"name": "founded", "ordered": False, "sortable": False, "whole": False}


@pytest.fixture
def planted(copy: Copy) -> Copy:
    """A shop has one more field."""
    copy.put_behind(CLASSES, DECLARED, FIELD)
    return copy


def test_every_test_that_the_page_names_fails_until_its_part_is_done(planted: Copy) -> None:
    tests = {guard.test for guard in guards(TITLE)}
    assert planted.failing(tests) == tests


@pytest.mark.rule("G4.schema")
def test_one_line_changes_both_engines_and_the_fingerprint_is_renewed_with_a_new_version_only(planted: Copy) -> None:
    known = planted.golden("schema.json")
    assert planted.failing([CONTRACT], renew=True) == {FINGERPRINT}
    assert planted.golden("schema.json") == known
    assert planted.golden("mapping_shops.json")["properties"]["founded"] == KEYWORD
    assert COLUMN in planted.golden("embedded_columns.json")["shops"]
    raised = SCHEMA_VERSION + 1
    planted.replace(CLASSES, f"SCHEMA_VERSION: Final = {SCHEMA_VERSION}\n", f"SCHEMA_VERSION: Final = {raised}\n")
    assert planted.failing([CONTRACT], renew=True) == set()
    renewed = planted.golden("schema.json")
    assert renewed["schema_version"] == raised
    assert renewed["fingerprint"] != known["fingerprint"]


def test_a_field_that_no_projection_makes_is_refused_by_the_checker_of_types(planted: Copy) -> None:
    printed = planted.checked("indexer/projection/shops.py")
    assert 'error: Missing positional argument "founded" in call to "ShopDocument"' in printed
    planted.put_behind("indexer/projection/shops.py", PROJECTED, '        founded="",\n')
    assert planted.checked("indexer/projection/shops.py").startswith("Success")
