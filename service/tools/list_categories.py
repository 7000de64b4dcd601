"""list_categories: every category that a public shop carries, with its number of public shops (A3)."""

from pydantic import Field

from service.tools.request import NoShopRequest, Text
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse


class ListCategoriesRequest(NoShopRequest):
    """In which language."""

    language: Text | None = Field(None, description="BCP 47: names in it, where stated.", examples=["de"])


class CategoryView(ToolResponse):
    """A category with its size."""

    category: str = Field(description="Display name, in language where one is stated.")
    slug: str = Field(description="Value for find_shop's category.")
    count: int = Field(description="Number of shops in it.")


class ListCategoriesResponse(ToolResponse):
    """All categories."""

    results: tuple[CategoryView, ...] = Field(description="The categories, by number of shops, then slug.")
    total_count: int = Field(description="Number of categories.")


async def run(request: ListCategoriesRequest, context: ToolContext) -> ListCategoriesResponse:
    """List the categories."""
    categories = await context.search.categories()
    return ListCategoriesResponse(
        results=tuple(
            CategoryView(
                category=found.name if request.language is None else found.name_in(request.language),
                slug=found.slug,
                count=found.count,
            )
            for found in categories
        ),
        total_count=len(categories),
    )


LIST_CATEGORIES = Tool(
    name="list_categories",
    title="List categories",
    description=(
        "List all categories, each with slug and number of shops, largest first. Call it before find_shop with a "
        "category: only these slugs are accepted. A shop can be in several."
    ),
    request=ListCategoriesRequest,
    response=ListCategoriesResponse,
    token=TokenRule.OPTIONAL,
    run=run,
    examples=(Example("All categories", {}), Example("Their names in German", {"language": "de"})),
)
