"""A new index: one document class and its entry in DOCUMENTS, of which each is projected, and nothing else is."""

from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS
from indexer.projection.generation import Projector
from indexer.state.states import States
from tests.people.contributing.page import guards
from tests.people.contributing.planting import Copy

TITLE: Final = "A new index"
CLASS: Final = '''@dataclass(frozen=True, slots=True)
class LabelDocument:
    """A label that shops carry.

    Attributes:
        id: the label.
        rank: the label, too.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    rank: Annotated[str, Role.SORT]


'''


def test_every_index_is_projected_and_nothing_else(tmp_path: Path) -> None:
    state = States(tmp_path / "state", "a test").create("whole")
    try:
        projector = Projector(state)
        assert {projected.kind for projected in projector.all()} == set(DOCUMENTS)
        assert {kind: projector.document(kind, "none") for kind in DOCUMENTS} == dict.fromkeys(DOCUMENTS)
        with pytest.raises(ValueError, match="there are no documents of the kind labels"):
            projector.document("labels", "none")
    finally:
        state.close()


def test_every_test_that_the_page_names_fails_until_its_part_is_done(copy: Copy) -> None:
    classes = "index_mappings/documents.py"
    copy.replace(classes, "DOCUMENTS: Final[", f"{CLASS}DOCUMENTS: Final[")
    copy.put_behind(classes, '    "facts": FactsDocument,\n', '    "labels": LabelDocument,\n')
    tests = {guard.test for guard in guards(TITLE)}
    assert copy.failing(tests) == tests
