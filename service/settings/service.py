"""All settings of the service, from the environment (SHOP_DIRECTORY_...); a wrong one stops the start."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, SecretStr

from service.auth.protocol import Issuer
from service.limits.policy import ANONYMOUS, DEFAULT_CLASS, WITH_TOKEN, NamedNetwork, NamedNetworks, QuotaClass
from service.runtime.caller import ForwardingHeader, Proxies
from service.settings.site import SiteSettings
from service.settings.stores import StoreSettings
from shop_directory.build_stamp import is_time
from shop_directory.runtime.request_context import REQUEST_SECONDS
from shop_directory.settings.locations import LocationSettings
from shop_directory.settings.reading import COMMA_SEPARATED, CommaSeparated, variable

DEFAULT_MAX_CONNECTIONS: Final = 10_000
# Connections of one address (IPv6: of one /64).
DEFAULT_MAX_CONNECTIONS_PER_ADDRESS: Final = 1_000

_LOOPBACK: Final = ("127.0.0.1:*", "localhost:*", "[::1]:*")
# Neither `*`, which admits every page, nor `null`, the origin of any page in a sandbox (C3).
# An origin that no browser sends would never match, without an error.
_HOST: Final = r"(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?"
_ORIGIN: Final = rf"[a-z][a-z0-9+.-]*://{_HOST}"
# Keys, and tokens on the way to them, must not be changed on their way: TLS, or this machine.
_SAFE_URL: Final = (
    r"^(?:https://[^\s\"#/?@\\]+|http://(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]+)?)(?:/[^\s\"#\\]*)?$"
)
_PUBLIC_URL: Final = rf"^https?://{_HOST}(?:/[A-Za-z0-9._~-]+)*$"

Origins = Annotated[tuple[Annotated[str, Field(pattern=f"^{_ORIGIN}$")], ...], *COMMA_SEPARATED]
OAuthAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # fmt: skip
# A label of metrics.
NetworkName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
OriginPatterns = Annotated[tuple[Annotated[str, Field(pattern=rf"^{_ORIGIN}(?::\*)?$")], ...], *COMMA_SEPARATED]


def _time(text: str) -> str:
    if not is_time(text):
        raise ValueError("is no time")
    return text


def _accepted_by(make: Callable[[Any], object]) -> AfterValidator:
    """A validator for what `make` takes, which raises ValueError for anything else."""

    def check(value: Any) -> Any:  # noqa: ANN401 - any setting
        make(value)
        return value

    return AfterValidator(check)


class Settings(StoreSettings, SiteSettings, LocationSettings):
    """All settings of the service."""

    host: str = Field("127.0.0.1", title="The address to listen on.", min_length=1)
    port: int = Field(
        8080, title="The port to listen on.", ge=0, le=65_535, description="a port from 0 (any free one) to 65535"
    )
    request_timeout: float = Field(
        REQUEST_SECONDS,
        title="How long a whole answer may take.",
        gt=0,
        le=60,
        allow_inf_nan=False,
        description="seconds, over 0 and up to 60",
    )
    workers: int = Field(1, title="How many processes serve on the one port.", ge=1, le=256)
    max_concurrency: int = Field(
        32, title="How many requests a worker processes at a time; more are refused with 503.", ge=1, le=10_000
    )
    max_connections: int = Field(
        DEFAULT_MAX_CONNECTIONS,
        title="How many connections a worker has open at a time, but at most its limit of file descriptors less 256.",
        ge=2,
        le=1_000_000,
    )
    max_connections_per_address: int = Field(
        DEFAULT_MAX_CONNECTIONS_PER_ADDRESS,
        title="How many connections of one address (IPv6: of one /64) a worker has open at a time, but at most "
        "half of all; trusted proxies have no such bound.",
        ge=1,
        le=1_000_000,
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
    public_url: str | None = Field(
        None,
        title="The public URL of the page of the service: MCP hosts show it and its icon.",
        pattern=_PUBLIC_URL,
        description="a URL such as https://shops.example, without a slash at its end",
    )
    mcp_allowed_hosts: CommaSeparated = Field(
        (),
        title="Host headers that /mcp accepts besides those of this machine; requests with others are refused.",
        description="more Host headers that /mcp serves, separated by commas; name:* is any port",
    )
    mcp_allowed_origins: OriginPatterns = Field(
        tuple(f"http://{host}" for host in _LOOPBACK),
        title="Origins whose pages may call /mcp.",
        description="origins that /mcp serves, as http://name:port, separated by commas; http://name:* is any port",
    )
    mcp_anonymous_tools: Literal["all", "usable"] = Field(
        "all", title="Which tools MCP lists for callers without a token: all, or those that need none."
    )
    trusted_proxies: Annotated[CommaSeparated, _accepted_by(Proxies)] = Field(
        (),
        title="Trusted proxies; forwarding headers of other addresses are ignored.",
        description="addresses or networks of proxies, or unix, separated by commas",
    )
    forwarding_header: ForwardingHeader = Field(
        ForwardingHeader.X_FORWARDED_FOR, title="The header in which trusted proxies send the caller's address."
    )
    country_header: str | None = Field(
        None,
        title="The header in which a trusted edge sends the caller's country, for display policies of coupons.",
        description="the name of the header of a trusted edge",
    )
    suggest_cache_mb: int = Field(
        64,
        title="Memory of each worker for cached responses of /suggest.",
        ge=0,
        le=65_536,
        description="mebibytes from 0 (no cache) to 65536",
    )
    typeahead_dir: Path | None = Field(
        None,
        title="Where the processes of a machine store typeahead files that they fetch from OpenSearch; by default "
        "below the system's folder for temporary files.",
        description="a directory that only the service writes",
    )
    typeahead_mb: int = Field(
        65_536,
        title="The maximum size of one typeahead's files; a larger typeahead is refused.",
        ge=1,
        le=1_048_576,
        description="mebibytes from 1 to 1048576",
    )
    limiter: Literal["memory", "redis"] = Field(
        "memory", title="Where quotas are counted: in each process, or in Redis for all."
    )
    oauth_issuer: str | None = Field(
        None,
        title="The OAuth authorization server whose tokens /mcp/oauth accepts; without one nothing is at that path.",
        pattern=_SAFE_URL,
        description="the https:// URL that its tokens name as iss, given with oauth_jwks_uri, oauth_source_key and "
        "public_url",
    )
    oauth_jwks_uri: str | None = Field(
        None,
        title="Where the issuer's keys are fetched.",
        pattern=_SAFE_URL,
        description="an https:// URL of a JSON Web Key Set",
    )
    oauth_audience: str | None = Field(
        None,
        title="What the issuer's tokens name as aud; by default the public URL of /mcp/oauth.",
        min_length=1,
        description="a text that the issuer puts into tokens for this service",
    )
    oauth_algorithms: Annotated[tuple[OAuthAlgorithm, ...], *COMMA_SEPARATED] = Field(
        ("RS256", "PS256", "ES256", "EdDSA"),
        title="The algorithms of signatures that are accepted.",
        min_length=1,
        description="of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA, separated by commas",
    )
    oauth_token_types: CommaSeparated = Field(
        ("at+jwt",),
        title="The values of a token's header typ that are accepted; an issuer that does not follow RFC 9068 may send "
        "jwt.",
        min_length=1,
        description="types such as at+jwt, in lower case, separated by commas",
    )
    oauth_scope_classes: dict[str, str] = Field(
        {},
        title="The quota class of tokens by scope; the first one that a token has counts, without any the class "
        "default.",
        description='JSON such as {"shops:partner": "partner"}, with classes of quota_classes',
    )
    oauth_source_key: SecretStr | None = Field(
        None,
        title="The key of the HMAC that stands for a subject in quotas and reports; a new key makes all subjects new.",
        min_length=32,
        description="at least 32 characters",
    )
    quota_anonymous: QuotaClass = Field(
        ANONYMOUS,
        title="Quotas of an address without a token: reads and suggest requests per minute, reports per hour.",
        description='JSON such as {"reads": 120, "suggest": 1200, "reports": 0}',
    )
    quota_classes: dict[str, QuotaClass] = Field(
        {DEFAULT_CLASS: WITH_TOKEN},
        title="Quotas of tokens, by the class that `token new --class` names.",
        description="JSON: the class default and others, each with reads, suggest and reports",
    )
    quota_networks: Annotated[dict[NetworkName, NamedNetwork], _accepted_by(NamedNetworks)] = Field(
        {},
        title="Networks whose callers without a token are counted together, by its name, with the quotas of a class. "
        "The longest range counts.",
        description='JSON such as {"hosted-client": {"ranges": ["192.0.2.0/24", "2001:db8::/48"], '
        '"quota_class": "default"}}, no range twice',
    )
    api_token: SecretStr | None = Field(
        None,
        title="The token of the caller over stdio (`shop-directory mcp`).",
        description="the token of the local caller over stdio",
    )
    most_coupons_rest: int | None = Field(
        None,
        title="The maximum number of coupons, of all shops together, in an answer over REST.",
        ge=1,
        description="how many coupons of all shops REST lists at most; empty for any number",
    )
    most_coupons_mcp: int | None = Field(
        200,
        title="The maximum number of coupons, of all shops together, in an answer over MCP.",
        ge=1,
        description="how many coupons of all shops MCP lists at most",
    )
    category_cap: int = Field(
        50, title="The maximum number of categories that a word of a query may match.", ge=1, le=10_000
    )
    commit: str | None = Field(
        None,
        title="The commit that /version reports, together with the build time.",
        pattern="^[0-9a-f]{40}$",
        description="the build's commit, 40 hexadecimal digits in lower case",
    )
    built_at: Annotated[str, AfterValidator(_time)] | None = Field(
        None,
        title="The build time that /version reports, together with the commit.",
        description="the build's time, RFC 3339 in UTC",
    )
    ops_key: SecretStr | None = Field(
        None,
        title="The value of x-ops-key that the operations endpoints require; without it they are open.",
        min_length=16,
        description="the operations key, at least 16 characters; empty for none",
    )
    open_operations: bool = Field(
        False, title="Whether it may listen beyond this machine while the operations endpoints require no key."
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto",
        title="The format of the log.",
        description="auto, json or console; auto is console on a terminal and json elsewhere",
    )
    log_exception_text: bool = Field(
        False, title="Whether the log has messages of exceptions and libraries, which may quote what callers sent."
    )
    traces: Literal["off", "otlp"] = Field(
        "off",
        title="Whether calls are traced, and where the traces are sent.",
        description="off, or otlp to send them to OTEL_EXPORTER_OTLP_ENDPOINT",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", title="The lowest level that is logged.")

    @property
    def mcp_hosts(self) -> tuple[str, ...]:
        """All Host headers that /mcp accepts."""
        return (*_LOOPBACK, *self.mcp_allowed_hosts)

    @property
    def oauth_url(self) -> str:
        """The public URL of /mcp/oauth."""
        return f"{self.public_url}/mcp/oauth"

    @property
    def issuer(self) -> Issuer | None:
        """The authorization server, if one is configured."""
        if self.oauth_issuer is None or self.oauth_jwks_uri is None or self.oauth_source_key is None:
            return None
        return Issuer(
            url=self.oauth_issuer,
            keys_url=self.oauth_jwks_uri,
            audience=self.oauth_audience or self.oauth_url,
            algorithms=self.oauth_algorithms,
            token_types=tuple(kind.lower().removeprefix("application/") for kind in self.oauth_token_types),
            scope_classes=self.oauth_scope_classes,
            default_class=DEFAULT_CLASS,
            source_key=self.oauth_source_key.get_secret_value(),
        )

    def contradictions(self) -> Iterator[str]:
        """Settings that several processes can't share, and classes of quotas that do not exist."""
        yield from super().contradictions()
        if not {network.quota_class for network in self.quota_networks.values()} <= self.quota_classes.keys():
            yield f"{variable('quota_networks')} names a class that {variable('quota_classes')} does not have."
        if not set(self.oauth_scope_classes.values()) <= self.quota_classes.keys():
            yield f"{variable('oauth_scope_classes')} names a class that {variable('quota_classes')} does not have."
        if self.oauth_issuer is not None:
            for name in ("oauth_jwks_uri", "oauth_source_key", "public_url"):
                if getattr(self, name) is None:
                    yield f"{variable('oauth_issuer')} is set, so {variable(name)} must be, too."
        if self.site_sitemap and self.public_url is None:
            yield f"{variable('site_sitemap')} is true, so {variable('public_url')} must be set, too."
        if self.workers > 1 and self.limiter == "memory":
            yield (
                f"{variable('workers')} is over 1, so {variable('limiter')} must be redis: "
                "each process would count quotas for itself."
            )
        if self.workers > 1 and self.reports == "embedded":
            yield (
                f"{variable('workers')} is over 1, so {variable('reports')} must be redis: "
                "processes would block each other in one file."
            )
