"""What the indexer tells those who run the service, beside each generation: outside accounts, and how following does.

One small document in the stamp's index (embedded: one file beside the stamp). It says nothing of shops; a generation
without it is as good, and then nothing is known of these things, which is not the same as that there are none.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypeVar, get_type_hints

OPERATIONS_ID: Final = "operations"
OPERATIONS_FILE: Final = "operations.json"

Part = TypeVar("Part", "ResourceAccount", "FollowerStatus")


@dataclass(frozen=True, slots=True)
class ResourceAccount:
    """An account of the operator with an outside provider, as the catalogue states it; None is not stated.

    Attributes:
        provider: whose.
        account: which.
        unit: what is counted.
        used: units that are used up.
        limit: units that there are.
        resets_at: when the count begins anew, RFC 3339 UTC.
        status: in the catalogue's words.
        observed_at: when all this was seen, RFC 3339 UTC.
    """

    provider: str
    account: str
    unit: str | None
    used: float | None
    limit: float | None
    resets_at: str | None
    status: str | None
    observed_at: str | None


@dataclass(frozen=True, slots=True)
class FollowerStatus:
    """How following does, as the follower last told it.

    Attributes:
        source: what kind of changes it reads: `file`, `stdin`, `sql`.
        position: how far into them it is, in the source's own terms, never a record's key or value.
        waiting: changes that are known to wait, or None where the source can't tell.
        caught_up_at: when nothing more was waiting last, RFC 3339 UTC; None before the first time. What lags is now
            minus this, also of a follower that died.
        told_at: when this was written, RFC 3339 UTC.
    """

    source: str
    position: str | None
    waiting: int | None
    caught_up_at: str | None
    told_at: str


@dataclass(frozen=True, slots=True)
class Operations:
    """The document.

    Attributes:
        accounts: by provider, then account.
        follower: None when nobody has followed this generation yet.
    """

    accounts: tuple[ResourceAccount, ...]
    follower: FollowerStatus | None

    def as_wire(self) -> dict[str, Any]:
        """The stored document."""
        return asdict(self)

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> "Operations":
        """Read a stored document; fields that a later version may have added are passed over.

        Raises:
            ValueError: it is not one.
        """
        try:
            follower = document["follower"]
            return cls(
                tuple(_read(ResourceAccount, account) for account in document["accounts"]),
                None if follower is None else _read(FollowerStatus, follower),
            )
        except (KeyError, TypeError) as error:
            raise ValueError("not an operations document") from error


def _read(part: type[Part], stored: Mapping[str, Any]) -> Part:
    hints = get_type_hints(part)
    values = {field.name: stored[field.name] for field in fields(part)}
    for name, value in values.items():
        # A whole number is a number as well, but a truth value is none.
        whole_number = type(value) is int and isinstance(0.0, hints[name])
        if not whole_number and (isinstance(value, bool) or not isinstance(value, hints[name])):
            raise TypeError(f"{name} is of another type")
    return part(**values)
