"""The service as a rule sees it: requests to it, the subjects found in its catalogue, and references unknown to it."""

import asyncio
import secrets
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson

from shop_directory.conformance.exchange import (
    MAX_BYTES,
    Client,
    Finding,
    Part,
    Request,
    Response,
    RuleBrokenError,
    require,
)

JSON: Final = "application/json"
# As many shops are looked at one by one.
PROBED: Final = 8
# The largest page of find_shop.
FULL: Final = 100
WORLDWIDE: Final = "WORLDWIDE"
OPEN: Final = (
    "find_shop", "list_categories", "get_shop", "list_coupons", "get_shipping_policy", "resolve_checkout_url",
)  # fmt: skip
NEED_A_TOKEN: Final = ("get_trust", "report_code", "report_issue", "monetize_offer", "resolve_conflict")
TOOLS: Final = (*OPEN, *NEED_A_TOKEN)
# Statuses of a tool that does not exist.
NO_TOOL: Final = frozenset({404, 405, 501})
# The list of all coupons may be long.
LONG: Final = 32 * 1024 * 1024

Arguments = Mapping[str, Any]
NO_ARGUMENTS: Final[Arguments] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KnownShop:
    """A shop of the results of find_shop: its slugs, the primary one first, its markets if stated, some offer ids.

    The name is untrusted text, shown with a bound only.
    """

    id: str
    name: str
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...] | None
    offers: tuple[str, ...]

    def sells_in(self, country: str) -> bool:
        """Whether a country filter includes the shop: it states the market, or all markets, or none."""
        return self.countries is None or country in self.countries or WORLDWIDE in self.countries


@dataclass(frozen=True, slots=True)
class KnownCategory:
    """A category of the results of list_categories."""

    slug: str
    count: int


@dataclass(frozen=True, slots=True)
class Subjects:
    """What a run has found in a catalogue, so that rules have shops, categories and coupons to ask for.

    `answered` says whether at least one response was that of a Shop Directory. The shops are the first hundred of the
    blank query, in its order; the categories all that have shops. `codes` has a usable coupon's code by the ids of
    shops.
    """

    answered: bool = False
    shops: tuple[KnownShop, ...] = ()
    categories: tuple[KnownCategory, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)

    @property
    def shop(self) -> KnownShop:
        """Any shop."""
        return require(self.shops, "a shop in the catalogue")[0]

    def category(self, at_least: int = 1) -> KnownCategory:
        """The smallest category of at least this many shops: its pages are the shortest."""
        large = [category for category in self.categories if category.count >= at_least]
        require(large, f"a category of {at_least} shops or more")
        return min(large, key=lambda category: (category.count, category.slug))


@dataclass(frozen=True, slots=True)
class ServiceUnderTest:
    """The service that a run checks, with an id and a domain that no shop has.

    The token is sent with each tool call and over MCP, the operations key only where a rule says so.
    """

    client: Client
    subjects: Subjects
    token: str | None = None
    ops_key: str | None = None
    under_review: tuple[str, ...] = ()
    unknown_id: str = field(default_factory=lambda: f"none_{secrets.token_hex(6)}")
    unknown_domain: str = field(default_factory=lambda: f"none-{secrets.token_hex(6)}.example")
    responses: dict[Request, asyncio.Task[Response]] = field(default_factory=dict)

    @property
    def fresh(self) -> "ServiceUnderTest":
        """The same service, of which no earlier response is used again."""
        return replace(self, responses={})

    @property
    def anonymous(self) -> "ServiceUnderTest":
        """The same service, called without a token."""
        return replace(self, token=None)

    @property
    def with_unknown_token(self) -> "ServiceUnderTest":
        """The same service, called with a token that it cannot know."""
        return replace(self, token=self.unknown_id)

    @property
    def unmatched(self) -> str:
        """A word that matches nothing."""
        return self.unknown_id.replace("_", "")

    def unknown_like(self, reference: str, more: str = "") -> str:
        """A reference of the same form (R1) that no shop has; `more` makes it another one."""
        label = self.unknown_domain.partition(".")[0]
        _, dot, rest = reference.partition(".")
        return f"{label}{more}.{rest}" if dot else f"{self.unknown_id}{more}"

    def allowed(self, *tools: str) -> list[str]:
        """Those of these tools that may be called with these credentials."""
        return [tool for tool in tools if self.token or tool not in NEED_A_TOKEN]

    async def tool(self, name: str, arguments: Arguments | bytes, *, max_bytes: int = MAX_BYTES) -> Response:
        """Call a tool over REST; arguments as bytes are sent as they are."""
        body = arguments if isinstance(arguments, bytes) else orjson.dumps(arguments)
        headers = (("content-type", JSON), ("accept", JSON), *self.token_header)
        return await self.send(Request("POST", f"/tool/{name}", body, headers, max_bytes))

    async def read(self, tool: str, arguments: Arguments = NO_ARGUMENTS) -> Part:
        """The JSON object of a tool's response with status 200."""
        return (await self.tool(tool, dict(arguments))).json()

    async def about_shop(self, tool: str, reference: str) -> Response:
        """Call a tool that takes a shop."""
        return await self.tool(tool, {"shop_domain": reference})

    async def suggest(self, q: str, *, limit: int | None = None, country: str | None = None) -> Response:
        """Send a suggest request."""
        given = {"q": q, "limit": limit, "country": country}
        stated = {name: value for name, value in given.items() if value is not None}
        return await self.get(f"/suggest?{urlencode(stated, quote_via=quote)}")

    async def get(self, path: str, *headers: tuple[str, str]) -> Response:
        """GET a path below the base address, without credentials unless they are among the headers."""
        return await self.send(Request("GET", path, b"", headers))

    async def openapi(self) -> Part:
        """The OpenAPI document."""
        return (await self.get("/openapi.json")).json()

    async def described_tools(self) -> list[str]:
        """The names of the tools in the OpenAPI document."""
        prefix = "/tool/"
        paths = (await self.openapi())["paths"].names()
        return [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]

    async def send(self, request: Request) -> Response:
        """The response to any other request; that to an earlier equal request where there is one."""
        if request not in self.responses:
            self.responses[request] = asyncio.create_task(self.client.send(request))
        return await self.responses[request]

    async def of_first_shops(self, tool: str) -> list[Part]:
        """The responses of a tool for some of the most popular shops, which have to be there."""
        return [(await self.about_shop(tool, shop.domain)).json() for shop in self.subjects.shops[:PROBED]]

    @property
    def token_header(self) -> tuple[tuple[str, str], ...]:
        """The token's header, if there is a token."""
        return (("x-api-token", self.token),) if self.token else ()

    @property
    def ops_key_header(self) -> tuple[tuple[str, str], ...]:
        """The operations key's header, if there is a key."""
        return (("x-ops-key", self.ops_key),) if self.ops_key else ()


def expect_equal(one: Response, other: Response, expected: str) -> None:
    """Raise RuleBrokenError unless two responses have the same status, media type and body."""
    if _comparable(one) != _comparable(other):
        requests = f"{one.request.shown} and {other.request.shown}"
        raise RuleBrokenError(Finding(requests, expected, f"{one.shown} and {other.shown}"))


def _comparable(response: Response) -> tuple[int, str | None, bytes]:
    return response.status, response.header("content-type"), response.body


async def explore(service: ServiceUnderTest) -> Subjects:
    """Find the subjects, and judge nothing. Rules send the same requests again, so that these cost no more requests."""
    page = await _results(service.tool("find_shop", {"query": "", "limit": FULL}))
    categories = await _results(service.tool("list_categories", {}))
    shops = tuple(known_shops(page or ()))
    codes = await _codes(service, shops)
    answered = page is not None or categories is not None
    if not answered:
        match await _document(service.get("/openapi.json")):
            case {"paths": {"/tool/find_shop": dict()}}:
                answered = True
    return Subjects(answered, shops, tuple(_categories(categories or ())), codes)


async def _codes(service: ServiceUnderTest, shops: Sequence[KnownShop]) -> dict[str, str]:
    """A usable code of each shop that has one; of the first shops only where the list of all is too long."""
    coupons = await _results(service.tool("list_coupons", {}, max_bytes=LONG))
    if coupons is None:
        lists = [await _results(service.about_shop("list_coupons", shop.id)) for shop in shops[:PROBED]]
        coupons = [coupon for found in lists for coupon in found or ()]
    codes: dict[str, str] = {}
    for coupon in coupons:
        match coupon:
            case {"code": str(code), "shop": {"id": str(shop_id)}}:
                codes.setdefault(shop_id, code)
    return codes


async def _results(response: Awaitable[Response]) -> list[Any] | None:
    """The results of a tool; None where the response has no readable list of results."""
    match await _document(response):
        case {"results": list(results)}:
            return results
    return None


async def _document(response: Awaitable[Response]) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON of a response; None where it cannot be read."""
    with suppress(RuleBrokenError):
        return (await response).document().value
    return None


def known_shops(results: Iterable[Any]) -> Iterable[KnownShop]:
    """The shops of the results of find_shop; a result of another shape is passed over."""
    for result in results:
        match result:
            case {"id": str(shop_id), "name": str(name), "domain": str(domain), "category": str(category)}:
                slugs = _texts(result.get("categories")) or (category,)
                countries = _texts(result.get("countries")) or None
                offers = [offer.get("offer_id") for offer in _objects(result.get("offers"))]
                yield KnownShop(shop_id, name, domain, slugs, countries, _texts(offers))


def _categories(results: Iterable[Any]) -> Iterable[KnownCategory]:
    for result in results:
        match result:
            case {"slug": str(slug), "category": str(), "count": int(count)} if count > 0:
                yield KnownCategory(slug, count)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
