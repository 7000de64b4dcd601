"""The patterns of the OpenAPI document allow what the service accepts (R1, E6)."""

import pytest
from jsonschema import Draft202012Validator

from service.errors import InvalidInputError
from service.rest.openapi.document import input_schema
from service.tools.registry import REGISTRY
from service.tools.request import validated

TOOLS = {tool.name: tool for tool in REGISTRY}


HOLD_A_CONTROL_CHARACTER = ("lumen.internal\x1c", "lumen\t.internal", "lumen.internal\x00")


def calls_with(reference: str) -> list[tuple[str, dict[str, object]]]:
    """The tool and the arguments of a call that names one shop, and of one that names several."""
    return [("get_shop", {"shop_domain": reference}), ("get_shops", {"shop_domains": [reference]})]


@pytest.mark.rule("R1", "E6")
@pytest.mark.parametrize(("tool", "arguments"), calls_with(" \t\r\nlumen.internal\f\v\x85\u00a0\u3000"))
def test_white_space_around_a_reference_is_valid(tool: str, arguments: dict[str, object]) -> None:
    assert Draft202012Validator(input_schema(TOOLS[tool])).is_valid(arguments)
    assert validated(TOOLS[tool].request, arguments)


@pytest.mark.rule("R1", "E6")
@pytest.mark.parametrize("reference", HOLD_A_CONTROL_CHARACTER)
def test_a_control_character_in_a_reference_is_invalid(reference: str) -> None:
    for tool, arguments in calls_with(reference):
        assert not Draft202012Validator(input_schema(TOOLS[tool])).is_valid(arguments)
        with pytest.raises(InvalidInputError) as raised:
            validated(TOOLS[tool].request, arguments)
        assert [error.message for error in raised.value.errors] == ["holds a control character"]
