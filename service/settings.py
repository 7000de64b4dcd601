"""The service's settings, from the environment (SHOP_DIRECTORY_...). A wrong one stops the start and is named."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service.addresses import ForwardingHeader
from service.auth.opening import TokenStoreKind
from service.limits.policy import ANONYMOUS, DEFAULT_CLASS, WITH_TOKEN, QuotaClass

PREFIX: Final = "SHOP_DIRECTORY_"

_LOOPBACK: Final = ("127.0.0.1:*", "localhost:*", "[::1]:*")


class SettingsError(Exception):
    """A setting is wrong; the text names the variable and says what it must be."""


def _parts(value: object) -> object:
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


CommaSeparated = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_parts)]


class Settings(BaseSettings):
    """All settings; descriptions go on after "must be"."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    engine: Annotated[Literal["embedded", "opensearch"], Field(description="embedded or opensearch")] = "embedded"
    data_dir: Annotated[Path, Field(description="the directory that the indexer writes")] = Path("var/index")
    opensearch_urls: Annotated[
        CommaSeparated, Field(min_length=1, description="the nodes' URLs, separated by commas")
    ] = ("http://127.0.0.1:9200",)
    index_prefix: Annotated[
        str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$", description="lower-case letters, digits and hyphens, up to 61")
    ] = "shop-directory"
    host: Annotated[str, Field(min_length=1, description="the address to listen on")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535, description="a port from 0 (any free one) to 65535")] = 8080
    request_timeout: Annotated[
        float, Field(gt=0, le=60, allow_inf_nan=False, description="seconds, over 0 and up to 60")
    ] = 1.8
    cors_origins: Annotated[
        CommaSeparated, Field(description="origins that may read other answers than /suggest, separated by commas")
    ] = ()
    mcp_allowed_hosts: Annotated[
        CommaSeparated, Field(description="Host headers that /mcp serves, separated by commas; name:* is any port")
    ] = _LOOPBACK
    mcp_allowed_origins: Annotated[
        CommaSeparated, Field(description="origins that /mcp serves, separated by commas; http://name:* is any port")
    ] = tuple(f"http://{host}" for host in _LOOPBACK)
    token_store: Annotated[TokenStoreKind, Field(description="sqlite or redis")] = TokenStoreKind.SQLITE
    token_file: Annotated[Path, Field(description="the file of the SQLite token store")] = Path("var/tokens.sqlite")
    reports: Annotated[Literal["embedded", "redis"], Field(description="embedded or redis")] = "embedded"
    reports_file: Annotated[Path, Field(description="the file of the embedded report queue")] = Path(
        "var/reports.sqlite"
    )
    report_window: Annotated[
        float, Field(gt=0, le=31_536_000, description="seconds in which the same report counts once, up to a year")
    ] = 86_400.0
    redis_url: Annotated[SecretStr, Field(description="a redis://, rediss:// or unix:// URL")] = SecretStr(
        "redis://127.0.0.1:6379/0"
    )
    redis_prefix: Annotated[
        str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$", description="lower-case letters, digits and hyphens, up to 61")
    ] = "shopdir"
    limiter: Annotated[Literal["memory", "redis"], Field(description="memory or redis")] = "memory"
    quota_anonymous: Annotated[
        QuotaClass, Field(description='JSON such as {"reads": 120, "suggest": 1200, "reports": 0}')
    ] = ANONYMOUS
    quota_classes: Annotated[
        dict[str, QuotaClass],
        Field(description="JSON: the class default and others, each with reads, suggest and reports"),
    ] = {DEFAULT_CLASS: WITH_TOKEN}
    trusted_proxies: Annotated[
        CommaSeparated, Field(description="addresses or networks of proxies, or unix, separated by commas")
    ] = ()
    forwarding_header: Annotated[ForwardingHeader, Field(description="x-forwarded-for or forwarded")] = (
        ForwardingHeader.X_FORWARDED_FOR
    )
    country_header: Annotated[str | None, Field(description="the name of the header of a trusted edge")] = None
    api_token: Annotated[SecretStr | None, Field(description="the token of the local caller over stdio")] = None
    most_coupons_rest: Annotated[
        int | None, Field(ge=1, description="how many coupons of all shops REST lists at most; empty for any number")
    ] = None
    most_coupons_mcp: Annotated[
        int | None, Field(ge=1, description="how many coupons of all shops MCP lists at most")
    ] = 2_000
    category_cap: Annotated[int, Field(ge=1, le=10_000, description="a whole number from 1 to 10000")] = 50
    commit: Annotated[str | None, Field(description="the build's commit, 40 hexadecimal digits")] = None
    built_at: Annotated[str | None, Field(description="the build's time, RFC 3339 in UTC")] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="debug, info, warning or error")
    ] = "info"


def load_settings(**given: Any) -> Settings:  # noqa: ANN401 - any setting
    """Read the settings.

    Args:
        given: settings from the command line; they come before the environment. None is not given.

    Raises:
        SettingsError: naming what is wrong.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        names = sorted({str(found["loc"][0]) for found in error.errors(include_input=False, include_url=False)})
    described = Settings.model_fields
    raise SettingsError(
        " ".join(f"{PREFIX}{name.upper()} is wrong: it must be {described[name].description}." for name in names)
    )
