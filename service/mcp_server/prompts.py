"""Prompts: instructions that lead an agent through the tools; their arguments are checked like those of the tools.

A prompt reads no data and states no fact; the facts come from the tools (R1, R4, I7).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Generic

from mcp.types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)
from pydantic import PlainValidator

from index_mappings.text import is_blank
from service.errors import FieldError, InvalidInputError
from service.mcp_server.handling import Context, OwnError
from service.mcp_server.messages import UNKNOWN_PROMPT, failed_method
from service.mcp_server.prompt_texts import CHECK_SHOP, COMPARE_SHOPS, FIND_A_CODE, prompt_text
from service.tools.fields import MAX_QUERY, CountryCode, QueryText, fault, text
from service.tools.request import RequestT, ShopRequest, ToolRequest, invalid, shown_name, validated

_FORMER_NAME: Final = "shop_id_or_domain"


class CompletionKind(StrEnum):
    """What an argument can be completed to."""

    SHOPS = "domains of shops"
    CATEGORIES = "slugs of categories"
    COUNTRIES = "codes of countries"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a prompt."""

    name: str
    description: str
    completes: CompletionKind
    required: bool = False


@dataclass(frozen=True, slots=True)
class ToolPrompt(Generic[RequestT]):
    """A prompt.

    Attributes:
        name: of the prompt.
        title: a few words by which people choose it.
        description: what its result will be.
        arguments: its parameters.
        request: validates them.
        write: makes the text; raises InvalidInputError if the combination of arguments is wrong.
    """

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    request: type[RequestT]
    write: Callable[[RequestT], str]


class CheckShop(ShopRequest):
    """Which shop, and where to."""

    country: CountryCode | None = None


class FindACode(ShopRequest):
    """Which shop."""


def _slug(value: object) -> str:
    """Any text of a slug's length; find_shop checks whether the category exists."""
    slug = text(value)
    if len(slug) > MAX_QUERY:
        raise fault(f"may have at most {MAX_QUERY} characters")
    return slug


class CompareShops(ToolRequest):
    """Which shops."""

    query: QueryText | None = None
    category: Annotated[str, PlainValidator(_slug)] | None = None
    country: CountryCode | None = None


def _compare_shops(request: CompareShops) -> str:
    query = None if request.query is None or is_blank(request.query) else request.query
    if query is None and request.category is None:
        raise invalid((FieldError("query", "or category is required: which shops are to be compared"),))
    return prompt_text(COMPARE_SHOPS, query=query, category=request.category, country=request.country)


_SHOP: Final = Argument(
    "shop_domain",
    "The shop's domain in any form (example.com, https://www.example.com/sale) or its id.",
    CompletionKind.SHOPS,
    required=True,
)
_COUNTRY: Final = Argument(
    "country", "ISO 3166-1 alpha-2 code of the country to deliver to, such as DE.", CompletionKind.COUNTRIES
)

PROMPTS: Final[tuple[ToolPrompt[Any], ...]] = (
    ToolPrompt(
        name="check_shop",
        title="Check this shop before I buy",
        description=(
            "What the directory knows of one shop before you buy there: its entry, its shipping terms, measured trust "
            "signals with source and time, and its codes. What is not known is said to be not known; there is no score."
        ),
        arguments=(_SHOP, _COUNTRY),
        request=CheckShop,
        write=lambda request: prompt_text(CHECK_SHOP, shop_domain=request.reference, country=request.country),
    ),
    ToolPrompt(
        name="find_a_code",
        title="Find a discount code that works",
        description="The usable discount codes of one shop, those that worked in a real checkout first.",
        arguments=(_SHOP,),
        request=FindACode,
        write=lambda request: prompt_text(FIND_A_CODE, shop_domain=request.reference),
    ),
    ToolPrompt(
        name="compare_shops",
        title="Compare shops side by side",
        description=(
            "Up to five shops that fit a query or a category, side by side by what is known of each: shipping, codes "
            "and trust signals, without a score. Give query, category or both."
        ),
        arguments=(
            Argument("query", "A part of the shops' names or domains, or words of a category.", CompletionKind.NOTHING),
            Argument("category", "The slug of a category, as list_categories has it.", CompletionKind.CATEGORIES),
            _COUNTRY,
        ),
        request=CompareShops,
        write=_compare_shops,
    ),
)
_BY_NAME: Final = {prompt.name: prompt for prompt in PROMPTS}


def argument_of(prompt: str, argument: str) -> Argument | None:
    """An argument of a prompt by name; None if there is no such prompt or argument."""
    found = _BY_NAME.get(prompt)
    return None if found is None else next((one for one in found.arguments if one.name == argument), None)


def mcp_prompt(prompt: ToolPrompt[Any]) -> Prompt:
    """A prompt as prompts/list shows it."""
    return Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            PromptArgument(name=argument.name, description=argument.description, required=argument.required)
            for argument in prompt.arguments
        ],
    )


async def list_prompts(_: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
    """All prompts."""
    return ListPromptsResult(prompts=[mcp_prompt(prompt) for prompt in PROMPTS])


async def get_prompt(_: Context, params: GetPromptRequestParams) -> GetPromptResult:
    """A prompt with its arguments filled in.

    Raises:
        OwnError: there is no such prompt, or its arguments are wrong.
    """
    prompt = _BY_NAME.get(params.name)
    if prompt is None:
        raise OwnError(code=INVALID_PARAMS, message=UNKNOWN_PROMPT)
    try:
        filled = fill(prompt, params.arguments or {})
    except InvalidInputError as error:
        raise OwnError.of(failed_method(error)) from None
    message = PromptMessage(role="user", content=TextContent(type="text", text=filled))
    return GetPromptResult(description=prompt.description, messages=[message])


def fill(prompt: ToolPrompt[Any], arguments: dict[str, str]) -> str:
    """The text of a prompt with its arguments.

    Raises:
        InvalidInputError: naming every argument that is wrong.
    """
    names = [argument.name for argument in prompt.arguments]
    accepted = {*names, _FORMER_NAME} if _SHOP in prompt.arguments else set(names)
    unknown = f"is not an argument of this prompt; it takes {', '.join(names)}"
    errors = [FieldError(shown_name(name), unknown) for name in arguments if name not in accepted]
    try:
        request = validated(prompt.request, {name: value for name, value in arguments.items() if name in accepted})
    except InvalidInputError as error:
        errors += error.errors
    if errors:
        raise invalid(tuple(errors))
    return prompt.write(request)
