"""The operations document of a generation: accounts with outside providers, and the follower's status.

It is one small document in the stamp's index (embedded: a file next to the stamp) for operators, without data of shops.
It is optional; if it is missing, accounts and follower are unknown.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypeVar, get_type_hints

OPERATIONS_ID: Final = "operations"
OPERATIONS_FILE: Final = "operations.json"

Part = TypeVar("Part", "ResourceAccount", "FollowerStatus")


@dataclass(frozen=True, slots=True)
class ResourceAccount:
    """An account of the operator with an outside provider, as in the catalogue; None for values that it does not state.

    Attributes:
        provider: the provider's name.
        account: the account's name.
        unit: the unit of `used` and `limit`.
        used: the number of used units.
        limit: the number of available units.
        resets_at: when `used` is reset, RFC 3339 UTC.
        status: the status as text.
        observed_at: when these values were observed, RFC 3339 UTC.
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
    """The status that the follower of changes last reported.

    Attributes:
        source: the kind of source of the changes: `file`, `stdin`, `sql`.
        position: its position in the source, in the source's own terms, never a record's key or value.
        waiting: the number of changes that are known to be waiting; None if the source does not know it.
        caught_up_at: when no changes were waiting last, RFC 3339 UTC; None before the first time. The lag is now minus
            this, even after the follower has died.
        told_at: when this was reported, RFC 3339 UTC.
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
        follower: None if no follower has reported for this generation yet.
    """

    accounts: tuple[ResourceAccount, ...]
    follower: FollowerStatus | None

    def as_wire(self) -> dict[str, Any]:
        """The stored document."""
        return asdict(self)

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> "Operations":
        """Read a stored document; unknown fields, which a later version may have added, are ignored.

        Raises:
            ValueError: it is not an operations document.
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
        # An integer is accepted as a float, but a bool is not accepted as a number.
        whole_number = type(value) is int and isinstance(0.0, hints[name])
        if not whole_number and (isinstance(value, bool) or not isinstance(value, hints[name])):
            raise TypeError(f"{name} is of another type")
    return part(**values)
