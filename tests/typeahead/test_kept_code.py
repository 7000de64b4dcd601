"""Machine code that is kept is not used after a change of what it was made of."""

import importlib.util
from types import ModuleType

import pytest

from index_mappings import tiers, typeahead
from service.search import typeahead_kernel


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (typeahead, "BLOCK"),
        (typeahead, "POSTING_BITS"),
        (typeahead, "WORD"),
        (typeahead, "LETTER_BITS"),
        (tiers, "ONE_TYPO_MIN"),
        (tiers, "OVERLAP_WORDS"),
    ],
)
def test_a_number_of_another_file_changes_with_the_kernel_or_not_at_all(
    module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert typeahead_kernel.__file__ is not None
    spec = importlib.util.spec_from_file_location("changed_typeahead_kernel", typeahead_kernel.__file__)
    assert spec is not None
    assert spec.loader is not None
    monkeypatch.setattr(module, name, getattr(module, name) + 1)

    with pytest.raises(ImportError, match="_MADE_WITH"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_all_that_the_kernel_takes_from_elsewhere_is_compared() -> None:
    own = vars(typeahead_kernel)
    taken = {
        name
        for other in (tiers, typeahead)
        for name, value in vars(other).items()
        if name.isupper() and name in own and own[name] is value
    }
    assert taken | {"SuggestTier"} == set(typeahead_kernel._MADE_WITH)
