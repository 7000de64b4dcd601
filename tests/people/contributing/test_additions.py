"""Each addition that CONTRIBUTING.md describes, planted in a copy: the tests named there fail until it is done."""

import json
from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS
from indexer.projection import Projector
from indexer.state.state import States
from service.tools.registry import REGISTRY
from tests.people.contributing.page import additions
from tests.people.contributing.planting import Copy, copy_of_the_project
from tests.support.generated_calls import GeneratedCalls
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE

TOOL: Final = "count_shops"
EXAMPLES: Final = ("make examples",)
# Of the world that `everywhere` serves: three of its four shops are public.
COUNTED: Final = {"count": 3}


def plant_tool(copy: Copy) -> None:
    """A tool that says how many shops there are: its file, and its line (with the import that the line needs)."""
    copy.write(f"service/tools/{TOOL}.py", Path(__file__).with_name(f"{TOOL}.py").read_text(encoding="utf-8"))
    registry = "service/tools/registry.py"
    copy.put_behind(registry, "from typing import Any, Final\n", f"\nfrom service.tools.{TOOL} import COUNT_SHOPS")
    copy.put_behind(registry, "    RESOLVE_CONFLICT,\n", "    COUNT_SHOPS,\n")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """The project as it is now."""
    return copy_of_the_project(tmp_path / "copy")


def test_every_test_that_the_page_names_for_a_tool_fails_until_its_part_is_done(copy: Copy) -> None:
    plant_tool(copy)
    tests = {guard.test for guard in additions()["A new tool"]}
    assert tests
    assert copy.failing(tests) == tests


def test_one_file_and_one_line_bring_a_tool_to_every_transport(copy: Copy) -> None:
    plant_tool(copy)
    assert json.loads(copy.printed("tests.people.contributing.everywhere", TOOL)) == {
        "REST": COUNTED,
        "http 2026-07-28": COUNTED,
        "http legacy": COUNTED,
        "stdio 2026-07-28": COUNTED,
        "stdio legacy": COUNTED,
        "OpenAPI": True,
        "tools.md": True,
        "llms.txt": True,
    }


def test_what_a_command_makes_of_a_tool_is_right_after_it(copy: Copy) -> None:
    plant_tool(copy)
    # The examples come first, by serving the sample.
    guards = {guard.test: guard.commands for guard in additions()["A new tool"] if guard.commands not in {(), EXAMPLES}}
    assert {command: copy.make(command) for commands in guards.values() for command in commands} == {
        "make golden": set(),
        "python -m service.docs.tools_page > docs/tools.md": set(),
        "python -m service.docs.mcp_page > docs/mcp.md": set(),
    }
    assert copy.failing(guards) == set()


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
