"""The schemas of answers: flat, and true of what is answered, gaps included (R2, A13)."""

from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import Field

from service.tools.registry import REGISTRY
from service.tools.tool import ToolResponse, response_schema

UNIONS = {"anyOf", "oneOf", "allOf", "$ref", "$defs"}


class Thing(ToolResponse):
    """Every shape that answers have."""

    word: Annotated[Literal["a", "b"] | None, Field(description="One of two words.")]
    either: Annotated[str | tuple[str, ...], Field(description="A text or several.")]


def _keys(schema: Any) -> set[str]:  # noqa: ANN401 - any part of a schema
    if isinstance(schema, dict):
        return {*schema}.union(*map(_keys, schema.values()))
    return set[str]().union(*map(_keys, schema)) if isinstance(schema, list) else set()


@pytest.mark.rule("A13")
def test_a_word_that_may_be_missing_is_null_in_its_schema_too() -> None:
    schema = response_schema(Thing)
    assert schema["properties"] == {
        "word": {"description": "One of two words.", "enum": ["a", "b", None], "type": ["string", "null"]},
        "either": {
            "description": "A text or several.", "type": ["string", "array"], "items": {"type": "string"},
        },
    }  # fmt: skip
    for word in ("a", "b", None):
        jsonschema.validate({"word": word, "either": ["x"]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"word": "c", "either": "x"}, schema)


@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_no_schema_of_an_answer_has_a_union_or_a_reference(tool: Any) -> None:  # noqa: ANN401 - any tool
    assert _keys(response_schema(tool.response)) & UNIONS == set()
