"""What MCP lists in addition to the tools, as files: a change of a name or an argument is a decision."""

from typing import Any

import pytest

from service.mcp_server.prompts import PROMPTS, mcp_prompt
from service.mcp_server.resources import CATEGORIES, SHOP
from tests.golden.golden import assert_golden
from tests.golden.test_transports import REMINDER


@pytest.mark.rule("I3")
def test_the_resources_and_prompts_are_what_they_were() -> None:
    lists: dict[str, list[Any]] = {
        "resources": [CATEGORIES],
        "resource_templates": [SHOP],
        "prompts": [mcp_prompt(prompt) for prompt in PROMPTS],
    }
    for name, listed in lists.items():
        shown = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in listed]
        assert_golden(f"{name}_list.json", shown, reminder=REMINDER)
