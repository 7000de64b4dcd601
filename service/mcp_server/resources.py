"""Resources: a shop by its URI, and the taxonomy; each is read by calling a tool (V2, C2)."""

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

from service.calls.dispatch import Outcome
from service.mcp_server.messages import Context, McpCall, RequestRunner, failed_method, missing_resource, result_meta
from service.tools.get_shop import GET_SHOP
from service.tools.list_categories import LIST_CATEGORIES
from shop_directory.runtime.request_context import current

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
        "directory is not a resource; that is not a verdict on it."
    ),
    mime_type="application/json",
)
DOMAIN: Final = "domain"

_SCHEME: Final = "shop"
_JSON: Final = "application/json"
_FIRST_FAULT: Final = 500


async def list_resources(_: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
    """The resources that do not depend on the data; shops are too many to list, and the tools find them."""
    return ListResourcesResult(resources=[CATEGORIES])


async def list_templates(_: Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
    """The template of shops."""
    return ListResourceTemplatesResult(resource_templates=[SHOP])


async def read_resource(
    runner: RequestRunner, context: Context, params: ReadResourceRequestParams
) -> ReadResourceResult:
    """Read a resource; raises RpcError if it does not exist, or can't be read now."""
    target = tool_call_of(params.uri)

    async def work(call: McpCall) -> ReadResourceResult:
        admitted = await runner.admit(call)
        if target is None:
            raise missing_resource(context.protocol_version)
        tool, arguments = target
        if (request := current()) is not None:
            request.tool = tool
        outcome = await runner.dispatcher.call(tool, arguments, call.caller, admitted)
        return _contents(params.uri, outcome, context.protocol_version)

    return await runner.run(context, work)


def tool_call_of(uri: str) -> tuple[str, dict[str, str]] | None:
    """The tool that reads a URI, and its arguments, percent-encoded or not; None if the URI can't name a resource."""
    if uri == CATEGORIES.uri:
        return LIST_CATEGORIES.name, {}
    scheme, mark, rest = uri.partition("://")
    if not mark or scheme.lower() != _SCHEME:
        return None
    try:
        return GET_SHOP.name, {"shop_domain": unquote(rest, errors="strict")}
    except UnicodeDecodeError:
        return None


def _contents(uri: str, outcome: Outcome, version: str) -> ReadResourceResult:
    error = outcome.error
    if error is not None:
        # A reference that the tool refuses, such as a blank one, names no resource either.
        missing = error.status < _FIRST_FAULT
        raise missing_resource(version) if missing else failed_method(error)
    text = TextResourceContents(uri=uri, mime_type=_JSON, text=outcome.body.decode())
    return ReadResourceResult(contents=[text], _meta=result_meta(outcome.request_id, outcome.stamp))
