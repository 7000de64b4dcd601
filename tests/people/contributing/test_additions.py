"""What CONTRIBUTING.md says of additions: each tool is one file, and every tool and every index has its parts."""

from pathlib import Path

import pytest

from index_mappings.documents import DOCUMENTS
from indexer.projection import Projector
from indexer.state.state import States
from service.tools.registry import REGISTRY
from tests.support.generated_calls import GeneratedCalls
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE


def test_generated_calls_use_every_tool() -> None:
    count = len(REGISTRY)
    assert {tool for tool, _ in GeneratedCalls(SAMPLE, 1).take(count)} == {tool.name for tool in REGISTRY}


def test_each_tool_is_a_file_of_its_name_and_no_file_of_a_tool_is_left_out() -> None:
    folder = REPOSITORY / "service" / "tools"
    declaring = {path.stem for path in folder.glob("*.py") if " = Tool(" in path.read_text(encoding="utf-8")}
    assert declaring == {tool.name for tool in REGISTRY}
    assert [tool.name for tool in REGISTRY if tool.run.__module__ != f"service.tools.{tool.name}"] == []


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
