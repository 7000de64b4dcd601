"""docs/opensearch-security.md: its roles grant what its tables name, and the service's role nothing but reading."""

import fnmatch
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP
from index_mappings.typeahead.chunks import TYPEAHEAD
from shop_directory.settings.locations import LocationSettings
from tests.people.settings.security_page import SIDES, actions, role

PREFIX: Final[str] = LocationSettings.model_fields["index_prefix"].default


@pytest.mark.parametrize("side", SIDES)
def test_a_role_grants_every_action_of_its_table_and_names_none_for_nothing(side: str) -> None:
    granted = {*role(side)["cluster_permissions"], *role(side)["index_permissions"][0]["allowed_actions"]}
    assert [action for action in actions(side) if not any(fnmatch.fnmatch(action, one) for one in granted)] == []


def test_the_services_role_reads_and_does_nothing_else() -> None:
    granted = role("service")
    (of_indices,) = granted["index_permissions"]
    assert all(one.startswith("indices:data/read/") for one in granted["cluster_permissions"])
    assert all(one.startswith("indices:data/read/") for one in of_indices["allowed_actions"])
    assert of_indices["index_patterns"] == [f"{PREFIX}-{kind}-*" for kind in (*DOCUMENTS, STAMP, TYPEAHEAD)]


def test_the_indexers_role_is_bound_to_its_prefix() -> None:
    assert role("indexer")["index_permissions"][0]["index_patterns"] == [f"{PREFIX}-*"]
