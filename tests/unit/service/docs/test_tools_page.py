"""docs/tools.md is what the tools are made of, a tool declares the errors that it raises, no metric is discarded."""

import re
import sys
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from service.docs.tools_page import tools_page
from service.observability.prometheus import PrometheusMetrics
from service.tools.registry import REGISTRY
from service.tools.resolve_conflict import ConflictVerdict, Kind
from service.tools.tool import COMMON, CREDENTIALS
from shop_directory.runtime.metrics import Metrics

PAGE: Final = Path(__file__).parents[4] / "docs" / "tools.md"


def test_the_page_is_what_the_registry_makes_of_it() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == tools_page(), (
        "docs/tools.md is stale; renew it by `python -m service.docs.tools_page > docs/tools.md`"
    )


@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_a_tool_declares_the_errors_that_its_module_and_those_that_it_calls_raise(tool: Any) -> None:  # noqa: ANN401 - a Tool of any request
    modules, found = [tool.run.__module__], set[str]()
    for name in modules:
        module = sys.modules[name]
        called = {str(getattr(thing, "__module__", "")) for thing in vars(module).values() if callable(thing)}
        modules += [other for other in called if other.startswith("service.tools.") and other not in modules]
        found |= set(re.findall(r"raise (\w+Error)\b", Path(str(module.__file__)).read_text(encoding="utf-8")))
    common = {error.__name__ for error in (*COMMON, *CREDENTIALS)}
    assert found - common == {error.__name__ for error in tool.errors}


@pytest.mark.rule("A12")
def test_each_kind_of_evidence_and_each_verdict_of_a_merge_audit_is_documented() -> None:
    rules = tools_page().partition("### Evidence and verdict")[2]
    assert [name for name in (*get_args(Kind), *get_args(ConflictVerdict)) if f"| `{name}` | " not in rules] == []


def test_prometheus_records_every_metric_that_parts_report() -> None:
    reported = {name for name in vars(Metrics) if not name.startswith("_")}
    assert "answered" in reported
    assert reported - vars(PrometheusMetrics).keys() == set()
