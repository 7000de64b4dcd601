"""The settings of the HTTP server: addresses, bounds, origins and proxies."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from service.runtime.caller import ForwardingHeader
from shop_directory.settings.reading import CommaSeparated, EnvironmentSettings

DEFAULT_MAX_CONNECTIONS: Final = 10_000
# Connections of one address (IPv6: of one /64).
DEFAULT_MAX_CONNECTIONS_PER_ADDRESS: Final = 1_000

_LOOPBACK: Final = ("127.0.0.1:*", "localhost:*", "[::1]:*")
# Neither `*`, which admits every page, nor `null`, the origin of any page in a sandbox (C3).
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?")
_ANY_PORT: Final = ":*"
_PUBLIC_URL: Final = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?(?:/[A-Za-z0-9._~-]+)*")


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    # An origin that no browser sends would never match, without an error.
    if not all(map(_ORIGIN.fullmatch, values)):
        # The description of the setting says what it must be.
        raise ValueError("not all are origins")
    return values


def _origin_patterns(values: tuple[str, ...]) -> tuple[str, ...]:
    _origins(tuple(value.removesuffix(_ANY_PORT) for value in values))
    return values


def _public_url(value: str) -> str:
    if _PUBLIC_URL.fullmatch(value) is None:
        raise ValueError("is not such a URL")
    return value


Origins = Annotated[CommaSeparated, AfterValidator(_origins)]
OriginPatterns = Annotated[CommaSeparated, AfterValidator(_origin_patterns)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]


class ServerSettings(EnvironmentSettings):
    """How the service is reached over HTTP, and how much it does at a time."""

    host: str = Field(
        "127.0.0.1", title="The address to listen on.", min_length=1, description="the address to listen on"
    )
    port: int = Field(
        8080, title="The port to listen on.", ge=0, le=65_535, description="a port from 0 (any free one) to 65535"
    )
    request_timeout: float = Field(
        1.8,
        title="How long a whole answer may take.",
        gt=0,
        le=60,
        allow_inf_nan=False,
        description="seconds, over 0 and up to 60",
    )
    workers: int = Field(
        1,
        title="How many processes serve on the one port.",
        ge=1,
        le=256,
        description="how many processes serve, from 1 to 256",
    )
    max_concurrency: int = Field(
        32,
        title="How many requests a worker processes at a time; more are refused with 503.",
        ge=1,
        le=10_000,
        description="how many requests a worker processes at a time, from 1 to 10000",
    )
    max_connections: int = Field(
        DEFAULT_MAX_CONNECTIONS,
        title="How many connections a worker has open at a time, but at most its limit of file descriptors less 256.",
        ge=2,
        le=1_000_000,
        description="how many connections a worker has open, from 2 to 1000000",
    )
    max_connections_per_address: int = Field(
        DEFAULT_MAX_CONNECTIONS_PER_ADDRESS,
        title="How many connections of one address (IPv6: of one /64) a worker has open at a time, but at most "
        "half of all; trusted proxies have no such bound.",
        ge=1,
        le=1_000_000,
        description="how many connections of one address a worker has open, from 1 to 1000000",
    )
    drain_seconds: float = Field(
        2.0,
        title="How long it still serves after SIGTERM, so that load balancers notice.",
        ge=0,
        le=300,
        allow_inf_nan=False,
        description="seconds from 0 to 300 that it still serves after SIGTERM, not ready",
    )
    cors_origins: Origins = Field(
        (),
        title="Origins whose pages may read answers; any origin may read those of `/suggest`.",
        description="origins such as https://shops.example, separated by commas; neither * nor null",
    )
    hsts_seconds: int = Field(
        0,
        title="How long browsers may use TLS only; for a service that all callers reach by TLS.",
        ge=0,
        le=63_072_000,
        description="seconds, up to two years; 0 sends no such header",
    )
    public_url: PublicUrl | None = Field(
        None,
        title="The public URL of the page of the service: MCP hosts show it and its icon.",
        description="a URL such as https://shops.example, without a slash at its end",
    )
    mcp_allowed_hosts: CommaSeparated = Field(
        _LOOPBACK,
        title="The Host headers that /mcp accepts; other requests are refused.",
        description="Host headers that /mcp serves, separated by commas; name:* is any port",
    )
    mcp_allowed_origins: OriginPatterns = Field(
        tuple(f"http://{host}" for host in _LOOPBACK),
        title="Origins whose pages may call /mcp.",
        description="origins that /mcp serves, as http://name:port, separated by commas; http://name:* is any port",
    )
    trusted_proxies: CommaSeparated = Field(
        (),
        title="Trusted proxies; forwarding headers of other addresses are ignored.",
        description="addresses or networks of proxies, or unix, separated by commas",
    )
    forwarding_header: ForwardingHeader = Field(
        ForwardingHeader.X_FORWARDED_FOR,
        title="The header in which trusted proxies send the caller's address.",
        description="x-forwarded-for or forwarded",
    )
    country_header: str | None = Field(
        None,
        title="The header in which a trusted edge sends the caller's country, for display policies of coupons.",
        description="the name of the header of a trusted edge",
    )
