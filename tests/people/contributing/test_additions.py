"""Each addition that CONTRIBUTING.md describes, planted in a copy: the tests named there fail until it is done."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS, SCHEMA_VERSION
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
CLASSES: Final = "index_mappings/documents.py"
CONTRACT: Final = "tests/golden/test_contract.py"
FINGERPRINT: Final = f"{CONTRACT}::test_the_schema_version_belongs_to_this_fingerprint_of_the_contract"
KEYWORD: Final = {"doc_values": False, "index": True, "type": "keyword"}
COLUMN: Final = {"name": "founded", "ordered": False, "sortable": False, "whole": False}
LABELS: Final = '''@dataclass(frozen=True, slots=True)
class LabelDocument:
    """A label that shops carry.

    Attributes:
        id: the label.
        rank: the label, too.
    """

    id: Annotated[str, Role.STORED | Role.EXACT | Role.WALK]
    rank: Annotated[str, Role.SORT]


'''
OPENING: Final = "service/auth/opening.py"
STORE: Final = '''"""A token store over lines of text."""


class LinesTokenStore:
    """Keeps nothing."""

    async def close(self) -> None:
        """Nothing is open."""
'''
MANIFEST: Final = "tests/rules/manifest.toml"
PROOF: Final = '''"""The colour of the service."""

import pytest


@pytest.mark.rule("O2")
def test_the_service_has_a_colour() -> None:
    colour = "green"
    assert colour == "green"
'''


def plant_tool(copy: Copy) -> None:
    """A tool that says how many shops there are: its file, and its line (with the import that the line needs)."""
    copy.write(f"service/tools/{TOOL}.py", Path(__file__).with_name(f"{TOOL}.py").read_text(encoding="utf-8"))
    registry = "service/tools/registry.py"
    copy.put_behind(registry, "from typing import Any, Final\n", f"\nfrom service.tools.{TOOL} import COUNT_SHOPS")
    copy.put_behind(registry, "    RESOLVE_CONFLICT,\n", "    COUNT_SHOPS,\n")


def plant_field(copy: Copy) -> None:
    """A shop has one more field."""
    declared = "    markets: Annotated[tuple[str, ...], Role.EXACT]\n"
    copy.put_behind(CLASSES, declared, "    founded: Annotated[str, Role.STORED | Role.EXACT]\n")


def plant_index(copy: Copy) -> None:
    """There is an index of labels."""
    copy.replace(CLASSES, "DOCUMENTS: Final[", f"{LABELS}DOCUMENTS: Final[")
    copy.put_behind(CLASSES, '    "facts": FactsDocument,\n', '    "labels": LabelDocument,\n')


def plant_backend(copy: Copy) -> None:
    """Every kind has one more choice; that of the token store is opened."""
    copy.write("service/auth/lines.py", STORE)
    locations, settings = "shop_directory/settings/locations.py", "service/settings/service.py"
    copy.replace(locations, '"embedded", "opensearch"]', '"embedded", "opensearch", "lines"]')
    copy.replace(settings, '["memory", "redis"]', '["memory", "redis", "lines"]')
    for file in ("service/settings/stores.py", "service/reports/opening.py"):
        copy.replace(file, '["embedded", "redis"]', '["embedded", "redis", "lines"]')
    copy.put_behind(OPENING, '    REDIS = "redis"\n', '    LINES = "lines"\n')
    protocol = "from service.auth.protocol import TokenStore\n"
    copy.put_behind(OPENING, protocol, "from service.auth.lines import LinesTokenStore\n")
    asked = "    if kind is TokenStoreKind.SQLITE:\n"
    copy.replace(OPENING, asked, f"    if kind is TokenStoreKind.LINES:\n        return LinesTokenStore()\n{asked}")


def plant_rule(copy: Copy) -> None:
    """The manifest has one more rule."""
    lines = (copy.root / MANIFEST).read_text(encoding="utf-8").splitlines(keepends=True)
    (last,) = (line for line in lines if line.startswith('  { id = "O1.degraded", scope = 2,'))
    copy.put_behind(MANIFEST, last, '  { id = "O2", scope = 1, statement = "The service has a colour." },\n')


PLANTED: Final[Mapping[str, Callable[[Copy], None]]] = {
    "A new tool": plant_tool,
    "A new field": plant_field,
    "A new index": plant_index,
    "A new backend": plant_backend,
    "A new rule": plant_rule,
}


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """The project as it is now."""
    return copy_of_the_project(tmp_path / "copy")


def test_every_addition_of_the_page_is_planted() -> None:
    assert additions().keys() == PLANTED.keys()


@pytest.mark.parametrize("title", PLANTED)
def test_every_test_that_the_page_names_fails_until_its_part_is_done(copy: Copy, title: str) -> None:
    PLANTED[title](copy)
    tests = {guard.test for guard in additions()[title]}
    assert tests
    assert copy.failing(tests) == tests
    if title == "A new rule":
        copy.replace("tests/rules/test_rules_are_tested.py", '"O": 1}', '"O": 2}')
        copy.write("tests/rules/test_colour.py", PROOF)
        assert copy.failing(tests) == set()


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


@pytest.mark.rule("G4.schema")
def test_a_field_changes_both_engines_and_the_fingerprint_is_renewed_with_a_new_version_only(copy: Copy) -> None:
    plant_field(copy)
    known = copy.golden("schema.json")
    assert copy.failing([CONTRACT], renew=True) == {FINGERPRINT}
    assert copy.golden("schema.json") == known
    assert copy.golden("mapping_shops.json")["properties"]["founded"] == KEYWORD
    assert COLUMN in copy.golden("embedded_columns.json")["shops"]
    raised = SCHEMA_VERSION + 1
    copy.replace(CLASSES, f"SCHEMA_VERSION: Final = {SCHEMA_VERSION}\n", f"SCHEMA_VERSION: Final = {raised}\n")
    assert copy.failing([CONTRACT], renew=True) == set()
    renewed = copy.golden("schema.json")
    assert renewed["schema_version"] == raised
    assert renewed["fingerprint"] != known["fingerprint"]


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
