"""Builds the state document from a health snapshot and the time, without I/O.

An age is never below zero, even where two clocks disagree.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from typing import Final

from index_mappings.generations import Stamp
from index_mappings.operations import FollowerStatus, Operations, ResourceAccount
from service.operations.health import HealthSnapshot, Unavailable
from service.operations.state import (
    AccountsState,
    AccountState,
    CatalogueState,
    ConsumersState,
    FlagValue,
    FollowerState,
    GenerationState,
    OpsState,
    Reason,
    RecheckConsumer,
    RechecksState,
    ServiceState,
    ShopsState,
)
from service.reports.protocol import Waiting
from service.search.protocol import Generations

RECHECK_GROUP: Final = "workers"


@dataclass(frozen=True, slots=True)
class About:
    """The part of the state that does not change while the process runs."""

    service: ServiceState
    flags: Mapping[str, FlagValue]


def ops_state(about: About, health: HealthSnapshot, now: datetime) -> OpsState:
    """The whole document."""
    generations = health.generations
    reason = generations.reason if isinstance(generations, Unavailable) else None
    operations = None if isinstance(generations, Unavailable) else generations.operations
    return OpsState(
        asked_at=_text(now),
        service=about.service,
        shops=ShopsState(available=False, reason=generations.reason)
        if isinstance(generations, Unavailable)
        else _shops(generations, now),
        catalogue=(
            CatalogueState(available=False, reason=generations.reason)
            if isinstance(generations, Unavailable)
            else CatalogueState(available=True, sizes=dict(generations.live.counts))
        ),
        flags=dict(about.flags),
        consumers=ConsumersState(
            rechecks=_rechecks(health.queue), follower=_follower(operations, reason or "not_reported", now)
        ),
        resource_accounts=_accounts(operations, reason or "not_reported"),
    )


def parse_timestamp(text: str | None) -> datetime | None:
    """A stored timestamp, in UTC if it has no zone; None when it is missing or malformed."""
    try:
        time = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time is None or time.tzinfo is not None else time.replace(tzinfo=UTC)


def remaining(account: ResourceAccount) -> float | None:
    """The limit minus what is used, in decimal arithmetic; negative when overused, None unless both are stated."""
    if account.limit is None or account.used is None or not isfinite(account.limit - account.used):
        return None
    return float(Decimal(str(account.limit)) - Decimal(str(account.used)))


def _shops(generations: Generations, now: datetime) -> ShopsState:
    return ShopsState(
        available=True,
        live=_generation(generations.live, now),
        previous=None if generations.previous is None else _generation(generations.previous, now),
    )


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


def _follower(operations: Operations | None, reason: Reason, now: datetime) -> FollowerState:
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


def _accounts(operations: Operations | None, reason: Reason) -> AccountsState:
    if operations is None:
        return AccountsState(available=False, reason=reason)
    accounts = (AccountState(**asdict(account), remaining=remaining(account)) for account in operations.accounts)
    return AccountsState(available=True, accounts=tuple(accounts))


def _since(text: str | None, now: datetime) -> float | None:
    time = parse_timestamp(text)
    return None if time is None else max(0.0, round((now - time).total_seconds(), 3))


def _text(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
