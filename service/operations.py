"""The state of the service for operators: how its parts are asked, and the answer to GET /api/ops/state.

A part that is unavailable says so, with a reason and in bounded time, and an unknown value is null, never an empty list
or 0 (A13). An age is never below zero, even where two clocks disagree. Of the settings only numbers, switches and
choices are shown: the others are left out by their type, so that a setting added later can't leak by mistake.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic_core import to_jsonable_python

from index_mappings.generations import FollowerStatus, Operations, ResourceAccount, Stamp
from service.insights.protocol import InsightStore, InsightsUnavailable, QueryCount, first_day, first_of
from service.limits.policy import QuotaClass
from service.reports.protocol import RECHECK_GROUP, ReportStore, ReportsUnavailable, Waiting
from shop_directory.search.failures import BackendUnavailable, NothingPublished
from shop_directory.search.protocol import Generations, SearchBackend

INSIGHT_DAYS: Final = 7
SCHEMA_ID: Final = "urn:shop-directory:schema:ops-state"

UnavailableReason = Literal[
    "engine_unavailable", "nothing_published", "queue_unavailable", "timed_out", "not_reported", "switched_off",
    "store_unavailable", "fault",
]  # fmt: skip
T = TypeVar("T")
UtcTime = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
FlagValue = bool | int | float | str | None | dict[str, Count] | dict[str, dict[str, Count]]
_NUMBERS: Final = (bool, int, float)
# It does not change how the service behaves.
_NO_FLAGS: Final = frozenset({"port"})
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why the state of a part is unknown."""

    reason: UnavailableReason


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """The generations that the search engine holds, and the state of the re-check queue."""

    generations: Generations | Unavailable
    queue: Waiting | Unavailable
    insights: tuple[QueryCount, ...] | Unavailable = Unavailable("switched_off")


class HealthProbe:
    """Asks the parts for their state."""

    def __init__(
        self, search: SearchBackend, reports: ReportStore, timeout: float, insights: InsightStore | None = None
    ) -> None:
        """Probe parts, which the caller closes; one that does not answer for `timeout` seconds is unavailable."""
        self._search = search
        self._reports = reports
        self._timeout = timeout
        self._insights = insights

    async def snapshot(self) -> HealthSnapshot:
        """Ask all parts, concurrently."""
        waiting = self._ask(lambda: self._reports.waiting(1))
        return HealthSnapshot(*await asyncio.gather(self.generations(), waiting, self.insights()))

    async def insights(self) -> tuple[QueryCount, ...] | Unavailable:
        """Ask the store of the counts of queries alone, for those of the last days."""
        store = self._insights
        if store is None:
            return Unavailable("switched_off")
        return await self._ask(lambda: store.counts(first_day(INSIGHT_DAYS)))

    async def generations(self) -> Generations | Unavailable:
        """Ask the search engine alone."""
        return await self._ask(lambda: self._search.generations())  # noqa: PLW0108 - looked up where faults are caught

    async def _ask(self, call: Callable[[], Awaitable[T]]) -> T | Unavailable:
        try:
            async with asyncio.timeout(self._timeout):
                return await call()
        except NothingPublished:
            return Unavailable("nothing_published")
        except BackendUnavailable:
            return Unavailable("engine_unavailable")
        except ReportsUnavailable:
            return Unavailable("queue_unavailable")
        except InsightsUnavailable:
            return Unavailable("store_unavailable")
        except TimeoutError:
            return Unavailable("timed_out")
        except Exception:  # noqa: BLE001 - one broken part must not hide the others
            _LOG.exception("the state of a part could not be read")
            return Unavailable("fault")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Part(_Model):
    """A part that may be unavailable: then it has a reason, and its other fields are null."""

    available: bool = Field(description="Whether this part answered just now.")
    reason: UnavailableReason | None = Field(
        None,
        description=(
            "Why it is not available; null when it is. engine_unavailable: the search engine did not answer. "
            "nothing_published: it has no generation. queue_unavailable: the report queue did not answer. timed_out: "
            "no answer in time. not_reported: the live generation has nothing on it. switched_off: a setting has it "
            "off. store_unavailable: its store did not answer. fault: the log has the cause."
        ),
    )

    @model_validator(mode="after")
    def _reason_only_if_unavailable(self) -> "_Part":
        if self.available != (self.reason is None):
            raise ValueError("a part has a reason if, and only if, it is unavailable")
        return self


class ServiceState(_Model):
    """This process."""

    name: str
    version: str = Field(description="Of the interface.")
    commit: str | None = Field(description="Of the build; null when unknown.")
    built_at: UtcTime | None = Field(description="When the build was made; null when unknown.")
    started_at: UtcTime = Field(description="When this process started.")
    pid: Count = Field(description="Of the worker that answered; each has its own caches and circuits.")


class GenerationState(_Model):
    """One generation of the indices."""

    generation: str
    schema_version: Count
    readable: bool = Field(description="Whether this service reads that schema version.")
    sequence: Count = Field(description="Rises with each change of the data.")
    built_at: UtcTime = Field(description="When its data was last changed.")
    age_seconds: Seconds | None = Field(
        description="Since built_at, by this machine's clock; null when built_at can't be read."
    )
    shops: Count | None = Field(description="Public shops in it; null when unknown.")
    counts: dict[str, Count] = Field(description="Documents by kind.")


class ShopsState(_Part):
    """Shop counts and freshness by generation."""

    live: GenerationState | None = None
    previous: GenerationState | None = Field(None, description="Stored for rollback; null when there is none.")


class CatalogueState(_Part):
    """How much the live generation holds."""

    sizes: dict[str, Count] | None = Field(None, description="Documents by kind.")


class RecheckConsumer(_Model):
    """A worker that holds re-checks."""

    name: str
    pending: Count
    idle_seconds: Seconds = Field(description="Since its last claim.")


class RechecksState(_Part):
    """The consumer group of the re-check queue."""

    group: str = Field(description="The group's name.")
    depth: Count | None = Field(None, description="Re-checks that are not acknowledged: lag and pending together.")
    lag: Count | None = Field(None, description="Those that no worker has claimed yet.")
    pending: Count | None = Field(None, description="Those that a worker holds.")
    dead_letters: Count | None = Field(None, description="Those given up after too many deliveries.")
    consumers: tuple[RecheckConsumer, ...] | None = Field(None, description="The workers that hold any.")


class FollowerState(_Part):
    """The follower of the catalogue's changes, as it last reported."""

    source: str | None = Field(None, description="What kind of changes it reads.")
    position: str | None = Field(None, description="How far it has read them, in the source's terms.")
    waiting: Count | None = Field(None, description="Changes known to wait; null where the source can't tell.")
    caught_up_at: UtcTime | None = Field(
        None, description="When no change was waiting last; null before the first time."
    )
    lag_seconds: Seconds | None = Field(
        None, description="Since caught_up_at; it also grows when the follower has died."
    )
    reported_at: UtcTime | None = Field(None, description="When the follower reported this.")


class ConsumersState(_Model):
    """What processes changes and reports."""

    rechecks: RechecksState
    follower: FollowerState


class AccountState(_Model):
    """An account of the operator with an outside provider; null is not stated."""

    provider: str
    account: str
    unit: str | None = Field(description="What is counted.")
    used: float | None
    limit: float | None
    remaining: float | None = Field(
        description="limit - used; below 0 when more is used than there is; null unless both are stated."
    )
    resets_at: UtcTime | None = Field(description="When the count restarts.")
    status: str | None = Field(description="As the catalogue states it.")
    observed_at: UtcTime | None = Field(description="When all this was observed.")


class AccountsState(_Part):
    """The resource accounts of the catalogue."""

    accounts: tuple[AccountState, ...] | None = None


class QueryCountState(_Model):
    """A query that at least five address groups asked on one day, folded as it is compared."""

    query: str
    count: Count


class InsightsState(_Part):
    """What people looked for in the last days, and did not find."""

    days: Count = Field(INSIGHT_DAYS, description="The days, today included, that are counted together.")
    asked: tuple[QueryCountState, ...] | None = Field(None, description="The queries that were asked most.")
    not_found: tuple[QueryCountState, ...] | None = Field(None, description="Those that found nothing most often.")


class OpsState(_Model):
    """The state of the service, for operators."""

    asked_at: UtcTime
    service: ServiceState
    shops: ShopsState
    catalogue: CatalogueState
    flags: dict[str, FlagValue] = Field(
        description=(
            "The effective settings that change behaviour: numbers, switches and choices, by name. No secret, address "
            "or path is among them."
        )
    )
    consumers: ConsumersState
    resource_accounts: AccountsState
    insights: InsightsState


def ops_state_components() -> dict[str, Any]:
    """The JSON Schema of the state as OpenAPI components, by name."""
    schema = OpsState.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    parts: dict[str, Any] = schema.pop("$defs")
    return {"OpsState": schema, **parts}


def ops_state(service: ServiceState, flags: Mapping[str, FlagValue], health: HealthSnapshot, now: datetime) -> OpsState:
    """The whole document; the first two do not change while the process runs."""
    generations = health.generations
    if isinstance(generations, Unavailable):
        operations, reason = None, generations.reason
        shops = ShopsState(available=False, reason=reason)
        catalogue = CatalogueState(available=False, reason=reason)
    else:
        operations, reason = generations.operations, "not_reported"
        previous = None if generations.previous is None else _generation(generations.previous, now)
        shops = ShopsState(available=True, live=_generation(generations.live, now), previous=previous)
        catalogue = CatalogueState(available=True, sizes=dict(generations.live.counts))
    return OpsState(
        asked_at=f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z",
        service=service,
        shops=shops,
        catalogue=catalogue,
        flags=dict(flags),
        consumers=ConsumersState(rechecks=_rechecks(health.queue), follower=_follower(operations, reason, now)),
        resource_accounts=_accounts(operations, reason),
        insights=_insights(health.insights),
    )


def parse_timestamp(text: str | None) -> datetime | None:
    """A stored timestamp, in UTC if it has no zone; None when it is missing or malformed."""
    try:
        time = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time is None or time.tzinfo is not None else time.replace(tzinfo=UTC)


def remaining(account: ResourceAccount) -> float | None:
    """The limit minus the usage, in decimal arithmetic; negative when overused, None unless both are stated."""
    if account.limit is None or account.used is None or not isfinite(account.limit - account.used):
        return None
    return float(Decimal(str(account.limit)) - Decimal(str(account.used)))


def _generation(stamp: Stamp, now: datetime) -> GenerationState:
    return GenerationState(
        generation=stamp.generation,
        schema_version=stamp.schema_version,
        readable=stamp.readable,
        sequence=stamp.sequence,
        built_at=stamp.built_at,
        age_seconds=_since(stamp.built_at, now),
        shops=stamp.counts.get("shops"),
        counts=dict(stamp.counts),
    )


def _rechecks(queue: Waiting | Unavailable) -> RechecksState:
    if isinstance(queue, Unavailable):
        return RechecksState(available=False, reason=queue.reason, group=RECHECK_GROUP)
    return RechecksState(
        available=True,
        group=RECHECK_GROUP,
        depth=queue.depth,
        lag=queue.lag,
        pending=queue.pending,
        dead_letters=queue.dead,
        consumers=tuple(
            RecheckConsumer(name=worker.name, pending=worker.pending, idle_seconds=max(0.0, worker.idle_seconds))
            for worker in queue.workers
        ),
    )


def _follower(operations: Operations | None, reason: UnavailableReason, now: datetime) -> FollowerState:
    status: FollowerStatus | None = None if operations is None else operations.follower
    if status is None:
        return FollowerState(available=False, reason=reason)
    return FollowerState(
        available=True,
        source=status.source,
        position=status.position,
        waiting=status.waiting,
        caught_up_at=status.caught_up_at,
        lag_seconds=_since(status.caught_up_at, now),
        reported_at=status.told_at,
    )


def _accounts(operations: Operations | None, reason: UnavailableReason) -> AccountsState:
    if operations is None:
        return AccountsState(available=False, reason=reason)
    accounts = (AccountState(**asdict(account), remaining=remaining(account)) for account in operations.accounts)
    return AccountsState(available=True, accounts=tuple(accounts))


def _insights(counts: tuple[QueryCount, ...] | Unavailable) -> InsightsState:
    if isinstance(counts, Unavailable):
        return InsightsState(available=False, reason=counts.reason)
    listed = {
        field: tuple(QueryCountState(query=one.query, count=getattr(one, field)) for one in first_of(counts, field, 5))
        for field in ("asked", "not_found")
    }
    return InsightsState(available=True, **listed)


def _since(text: str | None, now: datetime) -> float | None:
    time = parse_timestamp(text)
    return None if time is None else max(0.0, round((now - time).total_seconds(), 3))


def flags_of(settings: BaseModel) -> dict[str, FlagValue]:
    """The settings to show, by name."""
    fields = type(settings).model_fields
    shown = {
        name: to_jsonable_python(getattr(settings, name))
        for name, field in fields.items()
        if name not in _NO_FLAGS and _is_flag(field.annotation)
    }
    return {name: shown[name] for name in sorted(shown)}


def _is_flag(kind: Any) -> bool:  # noqa: ANN401 - any annotation
    if get_origin(kind) is Literal:
        return True
    if get_origin(kind) is dict:
        return get_args(kind) == (str, QuotaClass)
    if (members := get_args(kind)) and get_origin(kind) is not tuple:
        return all(_is_flag(member) for member in members if member is not type(None))
    return isinstance(kind, type) and kind is not SecretStr and issubclass(kind, (*_NUMBERS, Enum, QuotaClass))
