"""How tools are called over REST: which there are, how they are described, and what is invalid or not there."""

from collections.abc import Iterator
from typing import Any, Final

from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import Visit, expect_equal

TOOLS: Final = (
    "find_shop",
    "list_categories",
    "get_shop",
    "list_coupons",
    "get_shipping_policy",
    "get_trust",
    "report_code",
    "report_issue",
    "monetize_offer",
    "resolve_checkout_url",
    "resolve_conflict",
)
# Beyond the interface: a service may have it or not.
BEYOND: Final = ("get_shops",)
_PREFIX: Final = "/tool/"
_NOT_THERE: Final = frozenset({404, 405, 501})


@rule("I1", "The eleven tools are there under their names, and of others at most get_shops.")
async def _eleven_tools(visit: Visit) -> None:
    described = await visit.get("/openapi.json")
    paths = described.answer()["paths"].keys()
    named = sorted(path.removeprefix(_PREFIX) for path in paths if path.startswith(_PREFIX))
    if [name for name in named if name not in BEYOND] != sorted(TOOLS):
        raise described.broken(f"the tools {', '.join(sorted(TOOLS))}", f"the tools {', '.join(named)}")
    for tool in TOOLS:
        # Without a token and without arguments: nothing can be written by it.
        reply = await visit.with_token(None).tool(tool, {})
        if reply.status in _NOT_THERE:
            raise reply.broken("a tool of this name")
    (await visit.tool("no_such_tool", {})).expect_status(404)


@rule("I2", "A tool is called by POST /tool/<name> with a JSON object, and answers in JSON.")
async def _json_both_ways(visit: Visit) -> None:
    (await visit.tool("list_categories", {})).answer()
    (await visit.tool("find_shop", {"query": "", "limit": 100})).answer()
    (await visit.tool("list_categories", b"[]")).problem(400)


@rule("I13", "Slugs come from the catalogue: the description enumerates none.")
async def _slugs_are_not_enumerated(visit: Visit) -> None:
    described = await visit.get("/openapi.json")
    for name, schema in _named_schemas(described.answer().value):
        if name in {"category", "slug"} and ("enum" in schema or "const" in schema):
            raise described.broken(f"a schema of {name} without an enumeration", str(schema))


@rule("I42", "Each tool's route is described with the statuses 200, 400 and 404.")
async def _statuses_are_described(visit: Visit) -> None:
    paths = (await visit.get("/openapi.json")).answer()["paths"]
    for tool in TOOLS:
        responses = paths[_PREFIX + tool]["post"]["responses"]
        for status in ("200", "400", "404"):
            responses[status].keys()


@rule("I43", "Every tool takes shop_id_or_domain as another name of shop_domain.")
async def _the_older_name(visit: Visit) -> None:
    shop = visit.seen.shop()
    for tool in _with_token(visit, ("get_shop", "list_coupons", "get_shipping_policy"), ("get_trust",)):
        by_name = await visit.tool(tool, {"shop_domain": shop.domain})
        by_older = await visit.tool(tool, {"shop_id_or_domain": shop.domain})
        by_older.expect_status(200)
        expect_equal(by_name, by_older, f"the same answer of {tool} by either name of the field")
    without_shop: dict[str, dict[str, Any]] = {"find_shop": {"query": "", "limit": 100}, "list_categories": {}}
    for tool, arguments in without_shop.items():
        reply = await visit.tool(tool, {**arguments, "shop_id_or_domain": shop.domain})
        expect_equal(await visit.tool(tool, arguments), reply, f"that {tool} takes the field and ignores it")


@rule("I82", "Invalid input, such as a required field left out or an unknown category, is 400.")
async def _invalid_is_400(visit: Visit) -> None:
    free = ("find_shop", "get_shop", "get_shipping_policy", "resolve_checkout_url")
    for tool in _with_token(visit, free, ("get_trust", "monetize_offer", "resolve_conflict")):
        (await visit.tool(tool, {})).problem(400, "invalid_input")
    (await visit.tool("find_shop", {"query": "", "limit": "many"})).problem(400, "invalid_input")
    (await visit.tool("find_shop", {"query": "", "category": visit.unknown_id})).problem(400, "unknown_category")


@rule("I83", "What is not found is 404.")
async def _not_found_is_404(visit: Visit) -> None:
    for tool in ("get_shop", "list_coupons", "get_shipping_policy"):
        (await visit.tool(tool, {"shop_domain": visit.unknown_id})).problem(404, "shop_not_found")
    (await visit.tool("resolve_checkout_url", {"offer_id": visit.unknown_id})).problem(404, "offer_not_found")
    (await visit.get(f"/{visit.unknown_id}")).expect_status(404)


def _with_token(visit: Visit, free: tuple[str, ...], guarded: tuple[str, ...]) -> tuple[str, ...]:
    """The tools that this visit may call."""
    return (*free, *guarded) if visit.token else free


def _named_schemas(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - any JSON value
    """All schemas that stand under a name in some `properties`."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                properties = found.get("properties")
                for name, schema in properties.items() if isinstance(properties, dict) else ():
                    if isinstance(schema, dict):
                        yield name, schema
                waiting += found.values()
            case list() as found:
                waiting += found
