"""Tool calls over REST: the names of the tools, their description, invalid input, and what is not found."""

from typing import Any, Final

from shop_directory.conformance.exchange import fields_of
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import ServiceUnderTest, expect_equal

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
# Not part of the interface: a service may have it.
BEYOND: Final = ("get_shops",)
_PREFIX: Final = "/tool/"
_NOT_THERE: Final = frozenset({404, 405, 501})


@rule("I1", "There are the eleven tools of the interface, and no other tool except get_shops.")
async def _eleven_tools(service: ServiceUnderTest) -> None:
    described = await service.get("/openapi.json")
    paths = described.json()["paths"].keys()
    named = sorted(path.removeprefix(_PREFIX) for path in paths if path.startswith(_PREFIX))
    if [name for name in named if name not in BEYOND] != sorted(TOOLS):
        raise described.broken(f"the tools {', '.join(sorted(TOOLS))}", f"the tools {', '.join(named)}")
    for tool in TOOLS:
        # Without a token and without arguments: nothing can be written by it.
        response = await service.with_token(None).tool(tool, {})
        if response.status in _NOT_THERE:
            raise response.broken("a tool of this name")
    (await service.tool("no_such_tool", {})).expect_status(404)


@rule("I2", "A tool is called by POST /tool/<name> with a JSON object, and answers in JSON.")
async def _json_both_ways(service: ServiceUnderTest) -> None:
    (await service.tool("list_categories", {})).json()
    (await service.tool("find_shop", {"query": "", "limit": 100})).json()
    (await service.tool("list_categories", b"[]")).problem(400)


@rule("I13", "Slugs come from the catalogue: the OpenAPI document enumerates none.")
async def _slugs_are_not_enumerated(service: ServiceUnderTest) -> None:
    described = await service.get("/openapi.json")
    for key, properties in fields_of(described.json().value):
        for name, schema in properties.items() if key == "properties" and isinstance(properties, dict) else ():
            if name in {"category", "slug"} and isinstance(schema, dict) and schema.keys() & {"enum", "const"}:
                raise described.broken(f"a schema of {name} without an enumeration", str(schema))


@rule("I42", "The OpenAPI document describes the statuses 200, 400 and 404 of each tool.")
async def _statuses_are_described(service: ServiceUnderTest) -> None:
    paths = (await service.get("/openapi.json")).json()["paths"]
    for tool in TOOLS:
        responses = paths[_PREFIX + tool]["post"]["responses"]
        for status in ("200", "400", "404"):
            responses[status].keys()


@rule("I43", "Every tool takes shop_id_or_domain as another name of shop_domain.")
async def _alias_of_shop_domain(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    for tool in _with_token(service, ("get_shop", "list_coupons", "get_shipping_policy"), ("get_trust",)):
        by_shop_domain = await service.tool(tool, {"shop_domain": shop.domain})
        by_alias = await service.tool(tool, {"shop_id_or_domain": shop.domain})
        by_alias.expect_status(200)
        expect_equal(by_shop_domain, by_alias, f"the same answer of {tool} for either name of the field")
    without_shop: dict[str, dict[str, Any]] = {"find_shop": {"query": "", "limit": 100}, "list_categories": {}}
    for tool, arguments in without_shop.items():
        response = await service.tool(tool, {**arguments, "shop_id_or_domain": shop.domain})
        expect_equal(await service.tool(tool, arguments), response, f"that {tool} takes the field and ignores it")


@rule("I82", "Invalid input, such as a required field left out or an unknown category, is 400.")
async def _invalid_is_400(service: ServiceUnderTest) -> None:
    free = ("find_shop", "get_shop", "get_shipping_policy", "resolve_checkout_url")
    for tool in _with_token(service, free, ("get_trust", "monetize_offer", "resolve_conflict")):
        (await service.tool(tool, {})).problem(400, "invalid_input")
    (await service.tool("find_shop", {"query": "", "limit": "many"})).problem(400, "invalid_input")
    (await service.tool("find_shop", {"query": "", "category": service.unknown_id})).problem(400, "unknown_category")


@rule("I83", "An unknown shop, offer or path is 404.")
async def _not_found_is_404(service: ServiceUnderTest) -> None:
    for tool in ("get_shop", "list_coupons", "get_shipping_policy"):
        (await service.tool(tool, {"shop_domain": service.unknown_id})).problem(404, "shop_not_found")
    (await service.tool("resolve_checkout_url", {"offer_id": service.unknown_id})).problem(404, "offer_not_found")
    (await service.get(f"/{service.unknown_id}")).expect_status(404)


def _with_token(service: ServiceUnderTest, free: tuple[str, ...], guarded: tuple[str, ...]) -> tuple[str, ...]:
    """The tools that may be called with these credentials."""
    return (*free, *guarded) if service.token else free
