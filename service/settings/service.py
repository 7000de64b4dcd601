"""All settings of the service, from the environment (SHOP_DIRECTORY_...); a wrong one stops the start."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr

from service.limits.policy import ANONYMOUS, DEFAULT_CLASS, WITH_TOKEN, QuotaClass
from service.settings.server import ServerSettings
from service.settings.stores import StoreSettings
from shop_directory.build_stamp import is_commit, is_time
from shop_directory.settings.locations import LocationSettings
from shop_directory.settings.reading import PREFIX, SettingsError, variable

__all__ = ["PREFIX", "Settings", "SettingsError", "load_settings"]


def _well_formed(is_valid: Callable[[str], bool]) -> AfterValidator:
    """A validator for texts; the description of the setting says what it must be."""

    def check(text: str) -> str:
        if not is_valid(text):
            raise ValueError("is not well-formed")
        return text

    return AfterValidator(check)


class Settings(ServerSettings, StoreSettings, LocationSettings):
    """All settings of the service."""

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
        8_192,
        title="The maximum size of one typeahead's files; a larger typeahead is refused.",
        ge=1,
        le=1_048_576,
        description="mebibytes from 1 to 1048576",
    )
    limiter: Literal["memory", "redis"] = Field(
        "memory", title="Where quotas are counted: in each process, or in Redis for all.", description="memory or redis"
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
        50,
        title="The maximum number of categories that a word of a query may match.",
        ge=1,
        le=10_000,
        description="a whole number from 1 to 10000",
    )
    commit: Annotated[str, _well_formed(is_commit)] | None = Field(
        None,
        title="The commit that /version reports, together with the build time.",
        description="the build's commit, 40 hexadecimal digits in lower case",
    )
    built_at: Annotated[str, _well_formed(is_time)] | None = Field(
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
        False,
        title="Whether it may listen beyond this machine while the operations endpoints require no key.",
        description="true or false",
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto",
        title="The format of the log.",
        description="auto, json or console; auto is console on a terminal and json elsewhere",
    )
    log_exception_text: bool = Field(
        False,
        title="Whether the log has messages of exceptions and libraries, which may quote what callers sent.",
        description="true or false",
    )
    traces: Literal["off", "otlp"] = Field(
        "off",
        title="Whether calls are traced, and where the traces are sent.",
        description="off, or otlp to send them to OTEL_EXPORTER_OTLP_ENDPOINT",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", title="The lowest level that is logged.", description="debug, info, warning or error"
    )

    def contradictions(self) -> Iterator[str]:
        """Settings that several processes can't share."""
        yield from super().contradictions()
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


def load_settings(**values: Any) -> Settings:  # noqa: ANN401 - any setting
    """Read the settings.

    Args:
        values: settings from the command line, which take precedence over the environment; None is ignored.

    Raises:
        SettingsError: one or more settings are wrong; the text names all of them.
    """
    return Settings.load(**values)
