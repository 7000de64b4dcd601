"""What a rule has: the door to the service, what is known of its catalogue, and names that are certainly unknown."""

import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from shop_directory.conformance.client import Client
from shop_directory.conformance.exchange import MAX_BYTES, Ask, Reply, as_json
from shop_directory.conformance.findings import Finding, RuleBrokenError
from shop_directory.conformance.subjects import Seen

JSON: Final = "application/json"
# The list of all coupons is long by its nature.
_LONG: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit to a service.

    Attributes:
        client: sends.
        seen: the subjects that were found in the catalogue.
        token: sent with each call of a tool and over MCP, if there is one.
        ops_key: for the operations endpoints, sent only where a rule says so.
        under_review: ids or domains of shops that the operator knows to be under review.
        unknown_id: an id that no shop has.
        unknown_domain: a domain that no shop has.
    """

    client: Client
    seen: Seen
    token: str | None = None
    ops_key: str | None = None
    under_review: tuple[str, ...] = ()
    unknown_id: str = field(default_factory=lambda: f"none_{secrets.token_hex(6)}")
    unknown_domain: str = field(default_factory=lambda: f"none-{secrets.token_hex(6)}.example")

    def with_token(self, token: str | None) -> "Visit":
        """The same visit with another token, or with none."""
        return replace(self, token=token)

    async def tool(
        self, name: str, arguments: Mapping[str, Any] | bytes, *, fresh: bool = False, max_bytes: int = MAX_BYTES
    ) -> Reply:
        """Call a tool over REST; arguments as bytes are sent as they are."""
        body = arguments if isinstance(arguments, bytes) else as_json(arguments)
        headers = (("content-type", JSON), ("accept", JSON), *self.token_header)
        return await self.client.ask(Ask("POST", f"/tool/{name}", body, headers, max_bytes), fresh=fresh)

    async def all_coupons(self) -> Reply:
        """list_coupons without a shop."""
        return await self.tool("list_coupons", {}, max_bytes=_LONG)

    async def get(self, path: str, *headers: tuple[str, str], fresh: bool = False) -> Reply:
        """GET a path below the base address, without credentials unless they are among the headers."""
        return await self.client.ask(Ask("GET", path, b"", headers), fresh=fresh)

    async def ask(self, ask: Ask, *, fresh: bool = False) -> Reply:
        """Any other request."""
        return await self.client.ask(ask, fresh=fresh)

    @property
    def token_header(self) -> tuple[tuple[str, str], ...]:
        """The token's header, if there is a token."""
        return (("x-api-token", self.token),) if self.token else ()

    @property
    def ops_key_header(self) -> tuple[tuple[str, str], ...]:
        """The operations key's header, if there is a key."""
        return (("x-ops-key", self.ops_key),) if self.ops_key else ()


def expect_equal(one: Reply, other: Reply, expected: str) -> None:
    """Raise unless two answers have the same status, media type and body."""
    if _told(one) != _told(other):
        asked = f"{one.ask.shown} and {other.ask.shown}"
        raise RuleBrokenError(Finding(asked, expected, f"{one.shown} and {other.shown}"))


def _told(reply: Reply) -> tuple[int, str | None, bytes]:
    return reply.status, reply.header("content-type"), reply.body


class Comparison(Protocol):
    """Asks, compares and raises."""

    def __call__(self, *, fresh: bool) -> Awaitable[None]:
        """Compare answers that this run may have had before, or fresh ones only."""


async def steadily(compare: Comparison) -> None:
    """Compare; where that breaks the rule, once more with fresh answers, so that a publication between two is no fault.

    Raises:
        RuleBrokenError: the answers differ the second time too.
    """
    try:
        await compare(fresh=False)
    except RuleBrokenError:
        await compare(fresh=True)
