"""The settings of the stores of tokens and reports, and of the Redis that may hold them and the quotas.

The service and the operator's commands share them, so that a token is issued where it is looked up.
"""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from service.auth.opening import TokenStoreKind
from service.insights.opening import InsightsKind, open_insights
from service.insights.protocol import InsightStore
from service.redis.access import DEFAULT_REDIS_URL, RedisAccess, RedisAccessError
from service.reports.opening import DAY_SECONDS, QueueSettings
from shop_directory.settings.reading import CommaSeparated, EnvironmentSettings, variable


class StoreSettings(EnvironmentSettings):
    """Where tokens, reports and re-checks are stored, and how Redis is reached."""

    token_store: TokenStoreKind = Field(TokenStoreKind.SQLITE, title="Where API tokens are stored.")
    token_file: Path = Field(Path("var/tokens.sqlite"), title="The file of the SQLite token store.")
    reports: Literal["embedded", "redis"] = Field("embedded", title="Where reports and re-checks are stored.")
    reports_file: Path = Field(Path("var/reports.sqlite"), title="The file of the embedded report queue.")
    report_window: float = Field(
        DAY_SECONDS,
        title="How long repetitions of a report by the same token are ignored.",
        gt=0,
        le=31_536_000,
        description="seconds in which the same report counts once, up to a year",
    )
    insights: InsightsKind = Field(
        "off", title="Where queries are counted that many people ask, and that find nothing; off: they are not counted."
    )
    insights_file: Path = Field(Path("var/insights.sqlite"), title="The file of the embedded counts of queries.")
    redis_url: SecretStr = Field(
        SecretStr(DEFAULT_REDIS_URL),
        title="The Redis of the token store, the report queue and the limiter, if one of them uses it. With "
        "sentinels or a cluster only its scheme, user, password and database matter.",
        description="a redis://, rediss:// (TLS) or unix:// URL, without options other than db",
    )
    redis_prefix: str = Field(
        "shopdir",
        title="The prefix of all keys in Redis.",
        pattern=r"^[a-z0-9][a-z0-9-]{0,60}$",
        description="lower-case letters, digits and hyphens, up to 61",
    )
    redis_user: str | None = Field(
        None, title="The ACL user, if the URL names none.", description="the name of an ACL user"
    )
    redis_password: SecretStr | None = Field(
        None, title="The password, if the URL holds none.", description="the password of the user"
    )
    redis_ca_file: Path | None = Field(
        None,
        title="The authorities that are trusted for Redis and its sentinels; by default those of the machine.",
        description="a readable file of PEM certificates, given with a rediss:// URL",
    )
    redis_certificate_file: Path | None = Field(
        None,
        title="The client certificate, for a Redis that requires one.",
        description="a readable PEM certificate, given with its key",
    )
    redis_key_file: Path | None = Field(
        None, title="The key of the client certificate.", description="the PEM key of redis_certificate_file"
    )
    redis_sentinels: CommaSeparated = Field(
        (),
        title="The sentinels that know the master.",
        description="addresses such as redis-1.example:26379, separated by commas",
    )
    redis_sentinel_name: str | None = Field(
        None, title="The name of the master at the sentinels.", description="a name, given with the sentinels"
    )
    redis_sentinel_user: str | None = Field(
        None, title="The ACL user of the sentinels.", description="the name of an ACL user of the sentinels"
    )
    redis_sentinel_password: SecretStr | None = Field(
        None, title="The password of the sentinels, if they have one.", description="the password of the sentinels"
    )
    redis_cluster_nodes: CommaSeparated = Field(
        (),
        title="Some nodes of a Redis Cluster; the others are discovered.",
        description="addresses such as redis-1.example:6379, separated by commas",
    )

    @property
    def redis_access(self) -> RedisAccess:
        """How Redis is reached; RedisAccessError as of `RedisAccess`."""
        stated = {field.name: getattr(self, f"redis_{field.name}") for field in fields(RedisAccess)}
        secrets = {name: value.get_secret_value() for name, value in stated.items() if isinstance(value, SecretStr)}
        return RedisAccess(**{**stated, **secrets})

    @property
    def queue_settings(self) -> QueueSettings:
        """Where and how reports are stored."""
        return QueueSettings(
            kind=self.reports,
            path=self.reports_file,
            redis=self.redis_access,
            prefix=self.redis_prefix,
            window_seconds=self.report_window,
        )

    def open_insights(self) -> InsightStore | None:
        """Open the store of the counts of queries, which the caller closes; None where they are off."""
        return open_insights(self.insights, self.insights_file, self.redis_access, self.redis_prefix)

    def contradictions(self) -> Iterator[str]:
        """The setting that makes the access to Redis wrong, by name."""
        yield from super().contradictions()
        try:
            _ = self.redis_access
        except RedisAccessError as error:
            yield f"{variable(error.setting)} is wrong: it must be {error.must}."
