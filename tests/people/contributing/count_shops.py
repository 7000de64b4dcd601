"""count_shops: how many shops the directory shows. An invented tool, which a test plants in a copy of the project."""

from typing import Annotated

from pydantic import Field

from service.tools.request import NoShopRequest
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse


class CountShopsRequest(NoShopRequest):
    """Nothing is asked."""


class CountShopsResponse(ToolResponse):
    """The number."""

    count: Annotated[int, Field(description="How many shops the directory shows.")]


async def run(request: CountShopsRequest, context: ToolContext) -> CountShopsResponse:
    """Read it from the stamp."""
    return CountShopsResponse(count=context.search.stamp.counts["shops"])


COUNT_SHOPS = Tool(
    name="count_shops",
    title="Count the shops",
    description="Count the shops that the directory shows. The number changes with the data.",
    request=CountShopsRequest,
    response=CountShopsResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    examples=(Example("All of them", {}),),
)
