"""list_categories: every category that a public shop carries, with its number of public shops (A3)."""

from pydantic import Field

from service.tools.request import NoShopRequest
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse


class ListCategoriesRequest(NoShopRequest):
    """No arguments."""


class CategoryView(ToolResponse):
    """A category with its size."""

    category: str = Field(description="Display name.")
    slug: str = Field(description="Value for find_shop's category.")
    count: int = Field(description="Number of shops in it.")


class ListCategoriesResponse(ToolResponse):
    """All categories."""

    results: tuple[CategoryView, ...] = Field(description="The categories, by number of shops, then slug.")
    total_count: int = Field(description="Number of categories.")


async def run(request: ListCategoriesRequest, context: ToolContext) -> ListCategoriesResponse:  # noqa: ARG001 - it has no arguments
    """List the categories."""
    categories = await context.search.categories()
    return ListCategoriesResponse(
        results=tuple(CategoryView(category=found.name, slug=found.slug, count=found.count) for found in categories),
        total_count=len(categories),
    )


LIST_CATEGORIES = Tool(
    name="list_categories",
    title="List categories",
    description=(
        "List all categories that shops carry, each with its slug and number of shops, largest first. Call it "
        "before find_shop with a category: only these slugs are accepted, and they change with the data. A shop "
        "can be in several categories, so counts overlap."
    ),
    request=ListCategoriesRequest,
    response=ListCategoriesResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    examples=(Example("All categories", {}),),
)
