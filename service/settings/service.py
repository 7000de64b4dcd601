"""The service's settings, from the environment (SHOP_DIRECTORY_...). A wrong one stops the start and is named."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, SecretStr

from service.limits.policy import ANONYMOUS, DEFAULT_CLASS, WITH_TOKEN, QuotaClass
from service.runtime.addresses import ForwardingHeader
from service.runtime.build_stamp import is_commit, is_time
from service.settings.connections import MOST_CONNECTIONS, MOST_OF_AN_ADDRESS
from service.settings.origins import OriginPatterns, Origins, PublicUrl
from service.settings.stores import StoreSettings
from shop_directory.settings.locations import LocationSettings
from shop_directory.settings.reading import PREFIX, CommaSeparated, SettingsError, variable

__all__ = ["PREFIX", "Settings", "SettingsError", "load_settings"]

_LOOPBACK: Final = ("127.0.0.1:*", "localhost:*", "[::1]:*")


def _when(well_formed: Callable[[str], bool]) -> AfterValidator:
    """Refuses a text that is not well-formed; what it must be is the description of its setting."""

    def check(text: str) -> str:
        if not well_formed(text):
            raise ValueError("is not well-formed")
        return text

    return AfterValidator(check)


class Settings(StoreSettings, LocationSettings):
    """All settings. Titles say what they are for; descriptions go on after "must be"."""

    host: Annotated[
        str, Field(title="The address to listen on.", min_length=1, description="the address to listen on")
    ] = "127.0.0.1"
    port: Annotated[
        int, Field(title="The port to listen on.", ge=0, le=65_535, description="a port from 0 (any free one) to 65535")
    ] = 8080
    request_timeout: Annotated[
        float,
        Field(
            title="How long all of one answer may take.",
            gt=0,
            le=60,
            allow_inf_nan=False,
            description="seconds, over 0 and up to 60",
        ),
    ] = 1.8
    workers: Annotated[
        int,
        Field(
            title="How many processes serve on the one port.",
            ge=1,
            le=256,
            description="how many processes serve, from 1 to 256",
        ),
    ] = 1
    max_concurrency: Annotated[
        int,
        Field(
            title="How many requests a worker works on at once; what comes above that is told to come back.",
            ge=1,
            le=10_000,
            description="how many requests a worker works on at once, from 1 to 10000",
        ),
    ] = 32
    max_connections: Annotated[
        int,
        Field(
            title="How many connections a worker keeps at once. Fewer where the system allows it fewer file "
            "descriptors: as many as those, less 256.",
            ge=2,
            le=1_000_000,
            description="how many connections a worker keeps, from 2 to 1000000",
        ),
    ] = MOST_CONNECTIONS
    max_connections_per_address: Annotated[
        int,
        Field(
            title="How many connections of one address (IPv6: of one /64) a worker keeps at once, and no more than "
            "half of all; trusted proxies have no such bound.",
            ge=1,
            le=1_000_000,
            description="how many connections of one address a worker keeps, from 1 to 1000000",
        ),
    ] = MOST_OF_AN_ADDRESS
    suggest_cache_mb: Annotated[
        int,
        Field(
            title="Memory for answers of /suggest that are ready to be sent, in each worker.",
            ge=0,
            le=65_536,
            description="mebibytes from 0 (nothing is kept) to 65536",
        ),
    ] = 64
    typeahead_dir: Annotated[
        Path | None,
        Field(
            title="Where the processes of a machine put the files of the typeahead that they fetch from OpenSearch. "
            "Without it, below the system's folder for temporary files.",
            description="a directory that only the service writes",
        ),
    ] = None
    typeahead_mb: Annotated[
        int,
        Field(
            title="What these files of one typeahead may take together; a larger one is refused.",
            ge=1,
            le=1_048_576,
            description="mebibytes from 1 to 1048576",
        ),
    ] = 8_192
    drain_seconds: Annotated[
        float,
        Field(
            title="How long it still serves after SIGTERM while load balancers take note.",
            ge=0,
            le=300,
            allow_inf_nan=False,
            description="seconds that it serves on, not ready, after SIGTERM",
        ),
    ] = 2.0
    cors_origins: Annotated[
        Origins,
        Field(
            title="Origins whose pages may read answers; `/suggest` is for any origin.",
            description="origins such as https://shops.example, separated by commas; neither * nor null",
        ),
    ] = ()
    hsts_seconds: Annotated[
        int,
        Field(
            title="How long browsers shall come by TLS only; for a service whose callers all do.",
            ge=0,
            le=63_072_000,
            description="seconds, up to two years; 0 says nothing of it",
        ),
    ] = 0
    public_url: Annotated[
        PublicUrl | None,
        Field(
            title="Where the page of the service is reached from outside: MCP hosts show it and its icon.",
            description="a URL such as https://shops.example, without a slash at its end",
        ),
    ] = None
    mcp_allowed_hosts: Annotated[
        CommaSeparated,
        Field(
            title="The hosts that /mcp goes by; a request with another Host header is refused.",
            description="Host headers that /mcp serves, separated by commas; name:* is any port",
        ),
    ] = _LOOPBACK
    mcp_allowed_origins: Annotated[
        OriginPatterns,
        Field(
            title="Origins whose pages may call /mcp.",
            description="origins that /mcp serves, as http://name:port, separated by commas; http://name:* is any port",
        ),
    ] = tuple(f"http://{host}" for host in _LOOPBACK)
    limiter: Annotated[
        Literal["memory", "redis"],
        Field(title="Where quotas are counted: in each process, or together.", description="memory or redis"),
    ] = "memory"
    quota_anonymous: Annotated[
        QuotaClass,
        Field(
            title="Quotas of an address without a token: reads and suggestions a minute, reports an hour.",
            description='JSON such as {"reads": 120, "suggest": 1200, "reports": 0}',
        ),
    ] = ANONYMOUS
    quota_classes: Annotated[
        dict[str, QuotaClass],
        Field(
            title="Quotas of tokens, by the class that `token new --class` names.",
            description="JSON: the class default and others, each with reads, suggest and reports",
        ),
    ] = {DEFAULT_CLASS: WITH_TOKEN}  # noqa: RUF012 - pydantic copies it
    trusted_proxies: Annotated[
        CommaSeparated,
        Field(
            title="Proxies whose forwarding header is believed; anybody else's is ignored.",
            description="addresses or networks of proxies, or unix, separated by commas",
        ),
    ] = ()
    forwarding_header: Annotated[
        ForwardingHeader,
        Field(
            title="The header in which trusted proxies tell the caller's address.",
            description="x-forwarded-for or forwarded",
        ),
    ] = ForwardingHeader.X_FORWARDED_FOR
    country_header: Annotated[
        str | None,
        Field(
            title="The header in which a trusted edge tells the caller's country, for display policies of coupons.",
            description="the name of the header of a trusted edge",
        ),
    ] = None
    api_token: Annotated[
        SecretStr | None,
        Field(
            title="The token of the caller over stdio (`shop-directory mcp`).",
            description="the token of the local caller over stdio",
        ),
    ] = None
    most_coupons_rest: Annotated[
        int | None,
        Field(
            title="How many coupons of all shops together REST answers at most.",
            ge=1,
            description="how many coupons of all shops REST lists at most; empty for any number",
        ),
    ] = None
    most_coupons_mcp: Annotated[
        int | None,
        Field(
            title="How many coupons of all shops together MCP answers at most.",
            ge=1,
            description="how many coupons of all shops MCP lists at most",
        ),
    ] = 200
    category_cap: Annotated[
        int,
        Field(
            title="How many categories a word of a query may stand for.",
            ge=1,
            le=10_000,
            description="a whole number from 1 to 10000",
        ),
    ] = 50
    commit: Annotated[
        Annotated[str, _when(is_commit)] | None,
        Field(
            title="The commit that /version tells, together with the build time.",
            description="the build's commit, 40 hexadecimal digits in lower case",
        ),
    ] = None
    built_at: Annotated[
        Annotated[str, _when(is_time)] | None,
        Field(
            title="The build time that /version tells, together with the commit.",
            description="the build's time, RFC 3339 in UTC",
        ),
    ] = None
    ops_key: Annotated[
        SecretStr | None,
        Field(
            title="What x-ops-key must hold for the operations endpoints; without it they are open.",
            min_length=16,
            description="the operations key, at least 16 characters; empty for none",
        ),
    ] = None
    open_operations: Annotated[
        bool,
        Field(
            title="Whether it may listen beyond this machine while the operations endpoints ask for no key.",
            description="true or false",
        ),
    ] = False
    log_format: Annotated[
        Literal["auto", "json", "console"],
        Field(
            title="How a line of the log is written.",
            description="auto, json or console; auto is console on a terminal and json elsewhere",
        ),
    ] = "auto"
    log_exception_text: Annotated[
        bool,
        Field(
            title="Whether the log repeats the words of exceptions and libraries, which may quote what callers sent.",
            description="true or false",
        ),
    ] = False
    traces: Annotated[
        Literal["off", "otlp"],
        Field(
            title="Whether traces are made of the calls, and where they go.",
            description="off, or otlp to send them where OTEL_EXPORTER_OTLP_ENDPOINT says",
        ),
    ] = "off"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Field(title="The lowest level of what is logged.", description="debug, info, warning or error"),
    ] = "info"

    def contradictions(self) -> Iterator[str]:
        """What several processes can't share."""
        yield from super().contradictions()
        if self.workers > 1 and self.limiter == "memory":
            yield (
                f"{variable('workers')} is over 1, so {variable('limiter')} must be redis: "
                "each process would count quotas by itself."
            )
        if self.workers > 1 and self.reports == "embedded":
            yield (
                f"{variable('workers')} is over 1, so {variable('reports')} must be redis: "
                "processes would hold each other up in one file."
            )


def load_settings(**given: Any) -> Settings:  # noqa: ANN401 - any setting
    """Read the settings.

    Args:
        given: settings from the command line; they come before the environment. None is not given.

    Raises:
        SettingsError: naming what is wrong.
    """
    return Settings.load(**given)
