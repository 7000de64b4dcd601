"""CONTRIBUTING.md and CHANGELOG.md say what is there, and what they say of additions and new backends is so."""

import re
import tomllib
from collections.abc import Mapping
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args

import pytest

import tests.engines.conftest
import tests.rules.auth.conftest
import tests.rules.backends.conftest
import tests.rules.insights.conftest
import tests.rules.limits.conftest
import tests.rules.reports.conftest
from index_mappings.documents import DOCUMENTS
from indexer.commands.parts import sink_of
from indexer.projection import Projector
from indexer.settings import IndexerSettings
from indexer.state.state import States
from service.auth.opening import open_tokens
from service.parts import open_limiter, open_search
from service.reports.opening import open_queue
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from tests.people.docs.pages import BY_PATH
from tests.rules.proof import marks_of_tree
from tests.soak import ROWS
from tests.support.generated_calls import GeneratedCalls
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE

PAGE: Final = BY_PATH["CONTRIBUTING.md"]
CHANGES: Final = BY_PATH["CHANGELOG.md"].text
MOST_LINES: Final = 150
_RELEASE: Final = re.compile(r"^## \[?(Unreleased|\d+\.\d+\.\d+)\]?(?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
_KINDS: Final = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_every_test_that_is_named_is_there() -> None:
    tests = marks_of_tree(REPOSITORY / "tests").tests
    there = {(test.location.split(":")[0], test.location.split(" ")[-1]) for test in tests}
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.text))
    assert named
    assert named - there == set()


def test_the_soak_names_tests_that_are_there_and_amounts_that_they_read() -> None:
    for row in ROWS:
        paths = [REPOSITORY / "tests" / path for path in row.paths]
        files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        assert [name for name in row.variables if f'"SHOP_DIRECTORY_{name}"' not in text] == []


def test_the_page_is_short() -> None:
    assert len(PAGE.text.splitlines()) < MOST_LINES


def test_the_newest_release_is_the_version_of_the_project_and_changes_after_it_have_a_place() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    releases = _RELEASE.findall(CHANGES)
    assert [name for name, _ in releases][:2] == ["Unreleased", project["version"]]
    assert [name for name, date in releases if bool(date) == (name == "Unreleased")] == []
    assert re.findall(r"^## .*$", CHANGES, re.MULTILINE) == [found[0] for found in _RELEASE.finditer(CHANGES)]
    assert set(re.findall(r"^### (.*)$", CHANGES, re.MULTILINE)) <= _KINDS


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
        state.index()
        projector = Projector(state)
        assert {projected.kind for projected in projector.all()} == set(DOCUMENTS)
        assert {kind: projector.document(kind, "none") for kind in DOCUMENTS} == dict.fromkeys(DOCUMENTS)
        with pytest.raises(ValueError, match="there are no documents of the kind labels"):
            projector.document("labels", "none")
    finally:
        state.close()


SETTINGS: Final = ("engine", "token_store", "reports", "limiter", "insights")
# What the suite of each setting runs on, and what it calls each choice; "cluster" is Redis once more, and "index only"
# the embedded engine while it has no texts for suggest requests open.
SUITES: Final[Mapping[str, tuple[Any, str, frozenset[str]]]] = {
    "engine": (tests.rules.backends.conftest.opener, "{}", frozenset({"reference", "kernel"})),
    "engine with its sink": (tests.engines.conftest.engine, "{}_engine", frozenset()),
    "token_store": (tests.rules.auth.conftest.location, "{}", frozenset({"cluster"})),
    "reports": (tests.rules.reports.conftest.store, "{}_store", frozenset({"cluster_store"})),
    "insights": (tests.rules.insights.conftest.opener, "{}", frozenset({"cluster"})),
    "limiter": (tests.rules.limits.conftest.make_limiter, "{}", frozenset()),
}
# The embedded queue is a SQLite file, and its suite calls it so.
CALLED: Final = {("reports", "embedded"): "sqlite"}


def choices(setting: str) -> frozenset[str]:
    annotation: Any = Settings.model_fields[setting].annotation
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return frozenset(one.value for one in annotation)
    return frozenset(get_args(annotation)) - {"off"}


def run_on(fixture: Any) -> frozenset[str]:  # noqa: ANN401 - pytest has no public name for a fixture
    return frozenset(getattr(one, "values", (one,))[0] for one in fixture._fixture_function_marker.params)


async def opened_by(setting: str, choice: str, folder: Path) -> type:
    """What the service opens for a choice; nothing is asked of it."""
    settings = Settings.model_validate({setting: choice, "data_dir": folder, "token_file": folder / "tokens"})
    part: Any
    match setting:
        case "engine":
            part = open_search(settings)
        case "token_store":
            part = open_tokens(settings.token_store, settings.token_file, settings.redis_access, settings.redis_prefix)
        case "reports":
            part = open_queue(settings.queue_settings)
        case "insights":
            part = settings.open_insights()
        case _:
            part = open_limiter(settings)
    await part.close()
    return type(part)


@pytest.mark.parametrize("suite", SUITES)
def test_every_backend_that_can_be_chosen_is_held_to_the_suite_of_its_kind(suite: str) -> None:
    fixture, called, additional = SUITES[suite]
    setting = suite.split(maxsplit=1)[0]
    assert run_on(fixture) == additional | {
        called.format(CALLED.get((setting, choice), choice)) for choice in choices(setting)
    }


@pytest.mark.parametrize("setting", SETTINGS)
async def test_every_choice_opens_a_part_of_its_own(setting: str, tmp_path: Path) -> None:
    parts = {choice: await opened_by(setting, choice, tmp_path) for choice in choices(setting)}
    assert len(parts) > 1
    assert len(set(parts.values())) == len(parts), parts


@pytest.mark.opensearch
def test_every_engine_has_a_sink_of_its_own(opensearch_url: str, tmp_path: Path) -> None:
    sinks = {}
    for engine in choices("engine"):
        locations = {"data_dir": tmp_path / "index", "state_dir": tmp_path / engine, "opensearch_urls": opensearch_url}
        with closing(sink_of(IndexerSettings.model_validate({"engine": engine, **locations}))) as sink:
            sinks[engine] = type(sink)
    assert len(sinks) > 1
    assert len(set(sinks.values())) == len(sinks), sinks


@pytest.mark.parametrize("setting", SETTINGS[:3])
async def test_no_module_but_the_openings_may_name_what_is_opened(setting: str, tmp_path: Path) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    protected = {module for one in contracts for module in one.get("protected_modules", ())}
    modules = {(await opened_by(setting, choice, tmp_path)).__module__ for choice in choices(setting)}
    # A contract protects a package with all its modules.
    assert {module for module in modules if not protected & {module, *_packages_of(module)}} == set()


def _packages_of(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts))}
