"""The models of the answer to GET /api/ops/state; the documented JSON Schema is derived from them.

A part that is unavailable says so, with a reason, and an unknown value is null, never an empty list or 0 (A13).
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA_ID: Final = "urn:shop-directory:schema:ops-state"

Reason = Literal[
    "engine_unavailable", "nothing_published", "queue_unavailable", "timed_out", "not_reported", "fault"
]  # fmt: skip
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
FlagValue = bool | int | float | str | None | dict[str, Count] | dict[str, dict[str, Count]]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Part(_Model):
    """A part that may be unavailable: then it has a reason, and its other fields are null."""

    available: bool = Field(description="Whether this part answered just now.")
    reason: Reason | None = Field(
        None,
        description=(
            "Why it is not available; null when it is. engine_unavailable: the search engine did not answer. "
            "nothing_published: it has no generation. queue_unavailable: the report queue did not answer. timed_out: "
            "no answer in time. not_reported: the live generation has nothing on it. fault: the log has the cause."
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
    built_at: Timestamp | None = Field(description="When the build was made; null when unknown.")
    started_at: Timestamp = Field(description="When this process started.")
    pid: Count = Field(description="Of the worker that answered; each has its own caches and circuits.")


class GenerationState(_Model):
    """One generation of the indices."""

    generation: str
    schema_version: Count
    readable: bool = Field(description="Whether this service reads that schema version.")
    sequence: Count = Field(description="Rises with each change of the data.")
    built_at: Timestamp = Field(description="When its data was last changed.")
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
    caught_up_at: Timestamp | None = Field(
        None, description="When no change was waiting last; null before the first time."
    )
    lag_seconds: Seconds | None = Field(
        None, description="Since caught_up_at; it also grows when the follower has died."
    )
    reported_at: Timestamp | None = Field(None, description="When the follower reported this.")


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
    resets_at: Timestamp | None = Field(description="When the count restarts.")
    status: str | None = Field(description="As the catalogue states it.")
    observed_at: Timestamp | None = Field(description="When all this was observed.")


class AccountsState(_Part):
    """The resource accounts of the catalogue."""

    accounts: tuple[AccountState, ...] | None = None


class OpsState(_Model):
    """The state of the service, for operators."""

    asked_at: Timestamp
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


def ops_state_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the state, as docs/ops-state.schema.json holds it."""
    schema = OpsState.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, **schema}


def ops_state_components() -> dict[str, Any]:
    """The same as OpenAPI components, by name."""
    schema = OpsState.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    parts: dict[str, Any] = schema.pop("$defs")
    return {"OpsState": schema, **parts}
