"""The service as a rule sees it: requests to it, subjects of its catalogue, and references that it cannot know."""

import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from shop_directory.conformance.client import Client
from shop_directory.conformance.exchange import MAX_BYTES, Request, Response, as_json
from shop_directory.conformance.findings import Finding, RuleBrokenError
from shop_directory.conformance.subjects import Subjects

JSON: Final = "application/json"
# The list of all coupons may be long.
_LONG: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServiceUnderTest:
    """The service that a run checks.

    Attributes:
        client: sends the requests.
        subjects: the subjects that were found in the catalogue.
        token: sent with each tool call and over MCP, if there is one.
        ops_key: for the operations endpoints, sent only where a rule says so.
        under_review: ids or domains of shops that the operator knows to be under review.
        unknown_id: an id that no shop has.
        unknown_domain: a domain that no shop has.
    """

    client: Client
    subjects: Subjects
    token: str | None = None
    ops_key: str | None = None
    under_review: tuple[str, ...] = ()
    unknown_id: str = field(default_factory=lambda: f"none_{secrets.token_hex(6)}")
    unknown_domain: str = field(default_factory=lambda: f"none-{secrets.token_hex(6)}.example")

    def with_token(self, token: str | None) -> "ServiceUnderTest":
        """The same service, called with another token or with none."""
        return replace(self, token=token)

    def unknown_like(self, reference: str, more: str = "") -> str:
        """A reference of the same form that no shop has: an error may depend on the form (R1), and on nothing else.

        Args:
            reference: an id or a domain.
            more: makes it another one.
        """
        label = self.unknown_domain.partition(".")[0]
        _, dot, rest = reference.partition(".")
        return f"{label}{more}.{rest}" if dot else f"{self.unknown_id}{more}"

    async def tool(
        self, name: str, arguments: Mapping[str, Any] | bytes, *, fresh: bool = False, max_bytes: int = MAX_BYTES
    ) -> Response:
        """Call a tool over REST; arguments as bytes are sent as they are."""
        body = arguments if isinstance(arguments, bytes) else as_json(arguments)
        headers = (("content-type", JSON), ("accept", JSON), *self.token_header)
        return await self.client.send(Request("POST", f"/tool/{name}", body, headers, max_bytes), fresh=fresh)

    async def all_coupons(self) -> Response:
        """Call list_coupons without a shop."""
        return await self.tool("list_coupons", {}, max_bytes=_LONG)

    async def get(self, path: str, *headers: tuple[str, str], fresh: bool = False) -> Response:
        """GET a path below the base address, without credentials unless they are among the headers."""
        return await self.client.send(Request("GET", path, b"", headers), fresh=fresh)

    async def send(self, request: Request, *, fresh: bool = False) -> Response:
        """Send any other request."""
        return await self.client.send(request, fresh=fresh)

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


class Comparison(Protocol):
    """Sends requests and compares the responses."""

    def __call__(self, *, fresh: bool) -> Awaitable[None]:
        """Compare responses; with `fresh` only those of requests that are sent now."""


async def compare_with_retry(compare: Comparison) -> None:
    """Compare; on a difference compare fresh responses, as a generation may have been published in between.

    Raises:
        RuleBrokenError: the fresh responses differ too.
    """
    try:
        await compare(fresh=False)
    except RuleBrokenError:
        await compare(fresh=True)
