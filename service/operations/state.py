"""What GET /api/ops/state answers: one set of models, from which the documented JSON Schema is derived.

What can't be told is said to be so, with a reason, or is null; it is never an empty list or a number (A13).
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA_ID: Final = "urn:shop-directory:schema:ops-state"

Reason = Literal[
    "engine_unavailable", "nothing_published", "queue_unavailable", "timed_out", "not_told", "fault"
]  # fmt: skip
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
FlagValue = bool | int | float | str | None | dict[str, Count] | dict[str, dict[str, Count]]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Part(_Told):
    """A part that may be away: then it says why, and everything else of it is null."""

    available: bool = Field(description="Whether this part could be asked just now.")
    reason: Reason | None = Field(
        None,
        description=(
            "Why it is not available; null when it is. engine_unavailable: the search engine did not answer. "
            "nothing_published: it has no generation. queue_unavailable: the report queue did not answer. timed_out: "
            "no answer in time. not_told: the live generation says nothing of it. fault: the log has the cause."
        ),
    )

    @model_validator(mode="after")
    def _has_a_reason_or_is_there(self) -> "_Part":
        if self.available != (self.reason is None):
            raise ValueError("what is not available has a reason")
        return self


class ServiceState(_Told):
    """This process."""

    name: str
    version: str = Field(description="Of the interface.")
    commit: str | None = Field(description="Of the build; null when it does not know.")
    built_at: Timestamp | None = Field(description="When the build was made; null when it does not know.")
    started_at: Timestamp = Field(description="When this process opened its parts.")
    pid: Count = Field(description="Of the worker that answered; each has its own caches and circuits.")


class GenerationState(_Told):
    """One generation of the indices."""

    generation: str
    schema_version: Count
    readable: bool = Field(description="Whether this service reads that schema version.")
    sequence: Count = Field(description="Rises with each change of the data.")
    built_at: Timestamp = Field(description="When its data was last changed.")
    age_seconds: Seconds | None = Field(description="Since then, by this machine's clock; null when it can't be read.")
    shops: Count | None = Field(description="Public shops in it; null when it does not say.")
    counts: dict[str, Count] = Field(description="Documents by kind.")


class ShopsState(_Part):
    """Shop counts and freshness by generation."""

    live: GenerationState | None = None
    previous: GenerationState | None = Field(None, description="Kept for rollback; null when there is none.")


class CatalogueState(_Part):
    """How much the live generation holds."""

    sizes: dict[str, Count] | None = Field(None, description="Documents by kind.")


class RecheckConsumer(_Told):
    """A worker that holds re-checks."""

    name: str
    pending: Count
    idle_seconds: Seconds = Field(description="Since it was last heard of.")


class RechecksState(_Part):
    """The consumer group of the re-check queue."""

    group: str = Field(description="The group's name.")
    depth: Count | None = Field(None, description="Re-checks that nobody has acknowledged: lag and pending together.")
    lag: Count | None = Field(None, description="Those that nobody has claimed yet.")
    pending: Count | None = Field(None, description="Those that a worker holds.")
    dead_letters: Count | None = Field(None, description="Those given up after too many deliveries.")
    consumers: tuple[RecheckConsumer, ...] | None = Field(None, description="Who holds any.")


class FollowerState(_Part):
    """The follower of the catalogue's changes, as it last told."""

    source: str | None = Field(None, description="What kind of changes it reads.")
    position: str | None = Field(None, description="How far into them it is, in the source's terms.")
    waiting: Count | None = Field(None, description="Changes known to wait; null where the source can't tell.")
    caught_up_at: Timestamp | None = Field(
        None, description="When nothing more waited last; null before the first time."
    )
    lag_seconds: Seconds | None = Field(None, description="Since then; it grows too when the follower has died.")
    told_at: Timestamp | None = Field(None, description="When the follower said all this.")


class ConsumersState(_Told):
    """What takes changes and reports onward."""

    rechecks: RechecksState
    follower: FollowerState


class AccountState(_Told):
    """An account of the operator with an outside provider; null is not stated."""

    provider: str
    account: str
    unit: str | None = Field(description="What is counted.")
    used: float | None
    limit: float | None
    remaining: float | None = Field(
        description="limit - used; below 0 when more is used than there is; null unless both are stated."
    )
    resets_at: Timestamp | None = Field(description="When the count begins anew.")
    status: str | None = Field(description="In the catalogue's words.")
    observed_at: Timestamp | None = Field(description="When all this was seen.")


class AccountsState(_Part):
    """The resource accounts of the catalogue."""

    accounts: tuple[AccountState, ...] | None = None


class OpsState(_Told):
    """The state of the service for those who run it."""

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
