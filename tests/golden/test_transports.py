"""What callers are promised, as files: the OpenAPI document and what MCP lists. A change of any is a decision."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from service.mcp_server.prompts import PROMPTS
from service.mcp_server.resources import CATEGORIES, SHOP
from service.mcp_server.server import mcp_tool
from service.rest.openapi.document import openapi_document
from service.tools.registry import REGISTRY
from service.tools.tool import TokenRule
from tests.golden.golden import assert_golden

REMINDER: Final = "Callers go by it: anything but an addition breaks somebody."
TOOLS: Final = [mcp_tool(tool) for tool in REGISTRY]


@pytest.mark.rule("I84", "O1", "I42", "I85")
def test_the_openapi_document_is_what_it_was() -> None:
    document = openapi_document(REGISTRY)
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "0.1.1")
    assert_golden("openapi.json", document, reminder=REMINDER)


@pytest.mark.rule("O1", "I78", "I67")
@pytest.mark.parametrize("needs_ops_key", [False, True])
def test_a_credential_is_stated_where_a_call_needs_it_or_may_have_it(*, needs_ops_key: bool) -> None:
    document = openapi_document(REGISTRY, needs_ops_key=needs_ops_key)
    stated = {
        operation["operationId"]: operation["security"]
        for path in document["paths"].values()
        for operation in path.values()
        if "security" in operation
    }
    required = {tool.name: tool.token is TokenRule.REQUIRED for tool in REGISTRY} | {"suggest": False}
    tools: dict[str, Any] = {
        name: [{"token": []}] if needed else [{}, {"token": []}] for name, needed in required.items()
    }
    keyed: dict[str, Any] = {name: [{"opsKey": []}] for name in ("ops_state", "metrics", "metrics_resources")}
    assert stated == tools | (keyed if needs_ops_key else {})
    assert set(document["components"]["securitySchemes"]) == {"token"} | ({"opsKey"} if needs_ops_key else set())


@pytest.mark.rule("R2.schema")
def test_the_list_of_tools_is_what_it_was() -> None:
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TOOLS]
    assert_golden("tools_list.json", listed, reminder=REMINDER)


@pytest.mark.rule("I3")
def test_the_resources_and_prompts_are_what_they_were() -> None:
    lists: dict[str, list[Any]] = {"resources": [CATEGORIES], "resource_templates": [SHOP], "prompts": list(PROMPTS)}
    for name, listed in lists.items():
        shown = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in listed]
        assert_golden(f"{name}_list.json", shown, reminder=REMINDER)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_schemas_are_valid_and_every_field_of_an_input_is_described(tool: Any) -> None:  # noqa: ANN401 - the SDK's Tool
    for schema in (tool.input_schema, tool.output_schema):
        Draft202012Validator.check_schema(schema)
    bare = [name for name, part in tool.input_schema["properties"].items() if not part.get("description")]
    # The former name of shop_domain is described in the first tool that has it (F17).
    assert set(bare) <= {"shop_id_or_domain"} - ({"shop_id_or_domain"} if tool.name == "get_shop" else set())


@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_every_field_of_an_answer_is_described_in_the_openapi_document(tool: Any) -> None:  # noqa: ANN401 - a Tool of any request
    answer = openapi_document(REGISTRY)["paths"][f"/tool/{tool.name}"]["post"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    answers = schema.get("oneOf", [schema])
    parts = [(name, part) for answer in answers for name, part in answer["properties"].items()]
    assert [name for name, part in parts if not part.get("description")] == []


@pytest.mark.rule("R2.schema", "R2.ignored")
@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_a_client_that_validates_may_send_what_the_tool_accepts(tool: Any) -> None:  # noqa: ANN401 - a Tool of any request
    validator = Draft202012Validator(mcp_tool(tool).input_schema)
    names = ("shop_domain", "shop_id_or_domain")
    for example in tool.examples:
        for name in names:
            validator.validate({**example.arguments, name: "example.com"})


@pytest.mark.rule("R2.schema")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_an_input_schema_has_plain_types_and_no_unions(tool: Any) -> None:  # noqa: ANN401 - the SDK's Tool
    parts = list(_parts(tool.input_schema))
    assert len(parts) > len(tool.input_schema["properties"])
    assert [part for part in parts if not isinstance(part.get("type"), str)] == []
    assert [part for part in parts if part.keys() & {"anyOf", "oneOf", "allOf", "not"}] == []
    assert [part for part in parts if None in part.get("enum", ())] == []


def _parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all schemas within it."""
    yield schema
    for part in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        yield from _parts(part)
