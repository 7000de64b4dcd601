"""Resources: a shop by its URI, and the taxonomy; each is the answer of a tool, by that tool's own way (V2, C2)."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from mcp.types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from service.calls.dispatch import Dispatcher, Outcome
from service.mcp_server.handling import Call, Context, OwnError, Working, told_of
from service.mcp_server.messages import failed_method, missing_resource
from service.runtime.request_context import current
from service.tools.get_shop import GET_SHOP
from service.tools.list_categories import LIST_CATEGORIES

CATEGORIES: Final = Resource(
    uri="taxonomy://categories",
    name="categories",
    title="The categories",
    description=(
        "Every category that a shop of the directory carries, with its slug and its number of shops: what the tool "
        "list_categories answers. find_shop takes only these slugs as category."
    ),
    mime_type="application/json",
)
SHOP: Final = ResourceTemplate(
    uri_template="shop://{domain}",
    name="shop",
    title="A shop",
    description=(
        "One shop by its domain, in any form, or its id: what the tool get_shop answers. A shop that is not in the "
        "directory is no resource; that is no verdict on it."
    ),
    mime_type="application/json",
)
DOMAIN: Final = "domain"

_SCHEME: Final = "shop"
_JSON: Final = "application/json"
_FIRST_FAULT: Final = 500


@dataclass(frozen=True, slots=True)
class Reading:
    """The call of a tool whose answer is a resource."""

    tool: str
    arguments: dict[str, str] = field(default_factory=dict)


class Resources:
    """Lists and reads them."""

    def __init__(self, dispatcher: Dispatcher, working: Working) -> None:
        self._dispatcher = dispatcher
        self._working = working

    async def listed(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        """What there is whatever the data are: shops are countless, and found by the tools."""
        return ListResourcesResult(resources=[CATEGORIES])

    async def templates(self, _: Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """The kinds of resource that there are many of."""
        return ListResourceTemplatesResult(resource_templates=[SHOP])

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Read one.

        Raises:
            OwnError: there is none, or it can't be read now.
        """
        reading = reading_of(params.uri)

        async def work(call: Call) -> ReadResourceResult:
            admitted = await self._working.admitted(call)
            if reading is None:
                raise OwnError.of(missing_resource(params.uri, context.protocol_version))
            if (request := current()) is not None:
                request.tool = reading.tool

            async def arguments() -> object:
                return reading.arguments

            outcome = await self._dispatcher.call(reading.tool, arguments, call.caller, admitted)
            return _contents(params.uri, outcome, context.protocol_version)

        return await self._working.on(context, work)


def reading_of(uri: str) -> Reading | None:
    """The call that a URI stands for; None where it can be no resource of ours.

    What follows `shop://` is whatever the tool takes for a shop, percent-encoded or not.
    """
    if uri == CATEGORIES.uri:
        return Reading(LIST_CATEGORIES.name)
    scheme, mark, rest = uri.partition("://")
    if not mark or scheme.lower() != _SCHEME:
        return None
    try:
        return Reading(GET_SHOP.name, {"shop_domain": unquote(rest, errors="strict")})
    except UnicodeDecodeError:
        return None


def _contents(uri: str, outcome: Outcome, version: str) -> ReadResourceResult:
    error = outcome.error
    if error is not None:
        # A reference that the tool refuses, as a blank one, names no resource either.
        missing = error.status < _FIRST_FAULT
        raise OwnError.of(missing_resource(uri, version) if missing else failed_method(error))
    text = TextResourceContents(uri=uri, mime_type=_JSON, text=outcome.body.decode())
    return ReadResourceResult(contents=[text], _meta=told_of(outcome.request_id, outcome.stamp))
