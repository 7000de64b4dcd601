"""A new tool: one file and one line bring it to every transport, and named tests fail until the rest is done."""

import json
from pathlib import Path
from typing import Final

import pytest

from service.tools.registry import REGISTRY
from tests.people.contributing.page import guards
from tests.people.contributing.planting import Copy
from tests.support.generated_calls import GeneratedCalls
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE

TITLE: Final = "A new tool"
NAME: Final = "count_shops"
TOOL: Final = Path(__file__).with_name(f"{NAME}.py").read_text(encoding="utf-8")
EXAMPLES: Final = ("make examples",)
DESCRIBED: Final = (
    "tests/golden/test_transports.py::test_each_tool_is_described_with_its_statuses_and_examples_that_fit"
)
# Of the world that `everywhere` serves: three of its four shops are public.
COUNTED: Final = {"count": 3}


@pytest.fixture
def planted(copy: Copy) -> Copy:
    """A tool that says how many shops there are: its file, and its line (with the import that the line needs)."""
    copy.write(f"service/tools/{NAME}.py", TOOL)
    registry = "service/tools/registry.py"
    copy.put_behind(registry, "from typing import Any, Final\n", f"\nfrom service.tools.{NAME} import COUNT_SHOPS")
    copy.put_behind(registry, "    RESOLVE_CONFLICT,\n", "    COUNT_SHOPS,\n")
    return copy


def test_one_file_and_one_line_bring_a_tool_to_every_transport(planted: Copy) -> None:
    assert json.loads(planted.printed("tests.people.contributing.everywhere", NAME)) == {
        "REST": COUNTED,
        "http 2026-07-28": COUNTED,
        "http legacy": COUNTED,
        "stdio 2026-07-28": COUNTED,
        "stdio legacy": COUNTED,
        "OpenAPI": True,
        "tools.md": True,
        "llms.txt": True,
    }


def test_every_test_that_the_page_names_fails_until_its_part_is_done(planted: Copy) -> None:
    tests = {guard.test for guard in guards(TITLE)}
    assert planted.failing(tests) == tests


def test_what_a_command_makes_is_right_after_it(planted: Copy) -> None:
    # The examples come first, by serving the sample in many states: without them one test of the document stays red.
    by_command = {guard.test: guard.commands for guard in guards(TITLE) if guard.commands not in {(), EXAMPLES}}
    commands = {command for commands in by_command.values() for command in commands}
    assert {command: planted.make(command) for command in commands} == {
        "make golden": {DESCRIBED},
        "python -m service.docs.tools_page > docs/tools.md": set(),
        "python -m service.docs.mcp_page > docs/mcp.md": set(),
    }
    assert planted.failing(by_command) == set()


def test_generated_calls_use_every_tool() -> None:
    count = len(REGISTRY)
    assert {tool for tool, _ in GeneratedCalls(SAMPLE, 1).take(count)} == {tool.name for tool in REGISTRY}


def test_each_tool_is_a_file_of_its_name_and_no_file_of_a_tool_is_left_out() -> None:
    folder = REPOSITORY / "service" / "tools"
    declaring = {path.stem for path in folder.glob("*.py") if " = Tool(" in path.read_text(encoding="utf-8")}
    assert declaring == {tool.name for tool in REGISTRY}
    assert [tool.name for tool in REGISTRY if tool.run.__module__ != f"service.tools.{tool.name}"] == []
