"""What a model has to read: the list of the tools, and the answers that docs/calling.md gives bounds for (A1.size)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from service.mcp_server.server import mcp_tool
from service.tools.find_shop import FIND_SHOP
from service.tools.registry import REGISTRY
from tests.support.rpc import Era, request
from tests.support.sample import SampleService, sample_service
from tests.support.served import post

PAGE: Final = Path(__file__).parents[3] / "docs" / "calling.md"
# The fewest that usual tokenizers (o200k_base, cl100k_base) were measured to put into one token: 4.2 of schemas,
# 3.1 of answers, whose ids and times are no words.
CHARACTERS_OF_SCHEMAS: Final = 4
CHARACTERS_OF_ANSWERS: Final = 3
ROW: Final = re.compile(r"^\| `(\w+)` `(\{.*\})` \| ([\d,]+) \|$", re.MULTILINE)
LIST_ROW: Final = re.compile(r"^\| `tools/list` \| ([\d,]+) \|$", re.MULTILINE)
TOOLS: Final = [mcp_tool(tool) for tool in REGISTRY]


class Bound(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    tokens: int


BOUNDS: Final = [
    Bound(tool, json.loads(arguments), int(tokens.replace(",", "")))
    for tool, arguments, tokens in ROW.findall(PAGE.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleService]:
    """The sample catalogue, which the table's calls are made on."""
    with sample_service(tmp_path_factory.mktemp("sample")) as service:
        yield service


@pytest.mark.rule("R2.schema", "I5")
@pytest.mark.parametrize("era", list(Era))
def test_the_list_of_tools_takes_at_most_five_thousand_tokens(base: str, era: Era) -> None:
    (bound,) = LIST_ROW.findall(PAGE.read_text(encoding="utf-8"))
    tools = request(base, era, "tools/list").json["result"]["tools"]
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    assert bound == "5,000"
    assert len(text) / CHARACTERS_OF_SCHEMAS <= 5_000


@pytest.mark.rule("R2.schema", "R2.ignored")
def test_no_schema_of_a_tool_repeats_what_the_openapi_document_says() -> None:
    listed = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TOOLS])
    assert [word for word in ("examples", "anyOf", "oneOf", "allOf", "$ref") if f'"{word}"' in listed] == []
    assert _described(tool.output_schema for tool in TOOLS) == {"A shop as in find_shop."}


@pytest.mark.rule("A1.size")
@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: f"{bound.tool} {json.dumps(bound.arguments)}")
def test_an_answer_takes_no_more_tokens_than_the_page_says(sample: SampleService, bound: Bound) -> None:
    reply = post(sample.base, f"/tool/{bound.tool}", bound.arguments, x_api_token=sample.token)
    tokens = len(reply.body.decode()) / CHARACTERS_OF_ANSWERS
    assert (reply.status, tokens <= bound.tokens, tokens >= bound.tokens / 2) == (200, True, True)


@pytest.mark.rule("A1.size")
def test_the_table_has_every_tool_and_ten_shops_take_at_most_fifteen_hundred_tokens() -> None:
    assert {bound.tool for bound in BOUNDS} == {tool.name for tool in REGISTRY}
    (ten,) = [bound.tokens for bound in BOUNDS if bound.arguments == {"query": "", "limit": 10}]
    assert ten <= 1_500


@pytest.mark.rule("A1.size")
def test_find_shop_is_described_with_the_numbers_of_the_table() -> None:
    of_limit = {bound.arguments.get("limit"): f"{bound.tokens:,}" for bound in BOUNDS if bound.tool == FIND_SHOP.name}
    stated = f"(up to {of_limit[5]} tokens; 10: {of_limit[10]}; the default 50: {of_limit[None]})"
    assert stated in FIND_SHOP.description


def _described(schemas: Iterator[Any]) -> set[str]:
    return {found for schema in schemas for found in _descriptions(schema)}


def _descriptions(value: Any) -> Iterator[str]:  # noqa: ANN401 - any part of a schema
    if isinstance(value, dict):
        if isinstance(value.get("description"), str):
            yield value["description"]
        for part in value.values():
            yield from _descriptions(part)
