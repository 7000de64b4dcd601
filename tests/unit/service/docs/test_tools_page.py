"""docs/tools.md is what the tools are made of, the OpenAPI document allows what is taken, no metric is discarded."""

import re
import sys
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from service.docs.tools_page import tools_page
from service.observability.prometheus import PrometheusMetrics
from service.tools.registry import REGISTRY
from service.tools.resolve_conflict import ConflictVerdict, Kind
from service.tools.tool import COMMON, CREDENTIALS, TokenRule
from shop_directory.runtime.metrics import Metrics

PAGE: Final = Path(__file__).parents[4] / "docs" / "tools.md"
OWN: Final = {
    "find_shop": ["page_too_deep", "unknown_category"],
    "list_categories": [],
    "get_shop": ["shop_not_found"],
    "get_shops": [],
    "list_coupons": ["shop_not_found", "too_many_coupons"],
    "get_shipping_policy": ["shop_not_found"],
    "get_shop_policies": ["shop_not_found"],
    "get_trust": [],
    "report_code": ["shop_not_found"],
    "report_issue": ["shop_not_found"],
    "monetize_offer": ["no_valid_checkout_url", "offer_not_found"],
    "resolve_checkout_url": ["no_valid_checkout_url", "offer_not_found"],
    "resolve_conflict": ["shop_not_found"],
}


def test_the_page_is_what_the_registry_makes_of_it() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == tools_page(), (
        "docs/tools.md is stale; renew it by `python -m service.docs.tools_page > docs/tools.md`"
    )


def test_the_errors_of_a_tool_are_those_that_its_rules_raise() -> None:
    assert {tool.name: [error.code for error in tool.errors] for tool in REGISTRY} == OWN


@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_a_tool_declares_the_errors_that_its_module_and_those_that_it_calls_raise(tool: Any) -> None:  # noqa: ANN401 - as below
    modules, found = [tool.run.__module__], set[str]()
    for name in modules:
        module = sys.modules[name]
        called = {str(getattr(thing, "__module__", "")) for thing in vars(module).values() if callable(thing)}
        modules += [other for other in called if other.startswith("service.tools.") and other not in modules]
        found |= set(re.findall(r"raise (\w+Error)\b", Path(str(module.__file__)).read_text(encoding="utf-8")))
    common = {error.__name__ for error in (*COMMON, *CREDENTIALS)}
    assert found - common == {error.__name__ for error in tool.errors}


@pytest.mark.rule("I1")
@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_a_tool_has_a_section_with_its_parameters_its_fields_its_token_rule_and_a_call(tool: Any) -> None:  # noqa: ANN401 - a Tool of any request
    page = tools_page()
    section = page.partition(f"\n## {tool.name}\n")[2].partition("\n## ")[0]
    assert tool.description in section
    assert f"Token: {tool.token.value}." in section
    names = [*tool.request.field_names()]
    for model in tool.responses:
        names += model.model_json_schema(mode="serialization")["properties"]
    assert [name for name in names if f"| `{name}` |" not in section] == []
    assert f"curl localhost:8080/tool/{tool.name} -H 'content-type: application/json'" in section
    assert ("x-api-token: $TOKEN" in section) == (tool.token is TokenRule.REQUIRED)


@pytest.mark.rule("A12")
def test_each_kind_of_evidence_and_each_verdict_of_a_merge_audit_is_documented() -> None:
    rules = tools_page().partition("### Evidence and verdict")[2]
    assert [name for name in (*get_args(Kind), *get_args(ConflictVerdict)) if f"| `{name}` | " not in rules] == []


def test_prometheus_records_every_metric_that_parts_report() -> None:
    reported = {name for name in vars(Metrics) if not name.startswith("_")}
    assert "answered" in reported
    assert reported - vars(PrometheusMetrics).keys() == set()
