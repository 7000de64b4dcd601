"""Generations, the results of full builds: the names of their parts, the stamp, the operations document (G1).

Only the alias (embedded: the pointer file) decides which generation is live: the stamp is read through it, all other
indices by the stamp's generation. The operations document, next to the stamp, has the accounts with outside providers
and the follower's status, for operators; without it both are unknown.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_type_hints

from index_mappings.documents import SCHEMA_VERSION

STAMP: Final = "stamp"
STAMP_ID: Final = "stamp"
# The document in the stamp's index with the time since which its generation is no longer live.
RETIRED_ID: Final = "retired"
OPERATIONS_ID: Final = "operations"

_Part = TypeVar("_Part", "ResourceAccount", "FollowerStatus", "MissingChanges")
_GENERATION: Final = re.compile(r"^\d{8}t\d{12}-[0-9a-f]{6}$")


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of a generation, of a schema version, which was last changed at `built_at`, RFC 3339 UTC.

    `sequence` grows with each refreshed change of its data (C1). The position in the source's changes is None if the
    source has no positions. `counts` are documents by kind. `typeahead` and `files` name the manifests of the typeahead
    and of the indices' files; they are empty before it is sealed, the latter always with OpenSearch.
    """

    schema_version: int
    generation: str
    sequence: int
    built_at: str
    source_position: str | None
    counts: Mapping[str, int]
    typeahead: str = ""
    files: str = ""

    @property
    def readable(self) -> bool:
        """Whether this code can read the generation (G4)."""
        return self.schema_version == SCHEMA_VERSION

    @property
    def key(self) -> tuple[str, int]:
        """The key for caches; data with the same key is the same (C1)."""
        return self.generation, self.sequence

    def counted(self, counts: Mapping[str, int]) -> "Stamp":
        """The stamp with these counts."""
        return replace(self, counts=MappingProxyType(dict(counts)))

    def as_wire(self) -> dict[str, Any]:
        """The stamp document."""
        return {**asdict(replace(self, counts={})), "counts": dict(self.counts)}

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> "Stamp":
        """Read a stamp document; ValueError if it is none."""
        try:
            stamp = cls(
                schema_version=int(document["schema_version"]),
                generation=str(document["generation"]),
                sequence=int(document["sequence"]),
                built_at=str(document["built_at"]),
                source_position=document["source_position"],
                counts=MappingProxyType({str(kind): int(count) for kind, count in document["counts"].items()}),
                typeahead=_named(document, "typeahead"),
                files=_named(document, "files"),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("not a stamp document") from error
        if not is_generation(stamp.generation):
            raise ValueError("the stamp names no generation")
        return stamp


def _named(document: Mapping[str, Any], field: str) -> str:
    """The name of a manifest; stamps of older schema versions may lack it, but must be readable."""
    if document["schema_version"] == SCHEMA_VERSION:
        return str(document[field])
    return str(document.get(field, ""))


def new_generation(now: datetime) -> str:
    """A new generation name; names sort by the time of their creation."""
    return f"{now.astimezone(UTC):%Y%m%dt%H%M%S%f}-{secrets.token_hex(3)}"


def is_generation(text: str) -> bool:
    """Whether the text has the form of a generation name."""
    return _GENERATION.fullmatch(text) is not None


def first_stamp(generation: str, now: datetime, source_position: str | None = None) -> Stamp:
    """The stamp of a generation that is being built, without counts."""
    return Stamp(
        schema_version=SCHEMA_VERSION,
        generation=generation,
        sequence=1,
        built_at=f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        source_position=source_position,
        counts=MappingProxyType({}),
    )


def index_name(prefix: str, kind: str, generation: str) -> str:
    """The concrete name of one index of a generation."""
    return f"{prefix}-{kind}-{generation}"


def previous_alias(prefix: str) -> str:
    """The alias of the stamp's index of the previously live generation."""
    return f"{prefix}-{STAMP}-previous"


def alias_name(prefix: str, kind: str) -> str:
    """The alias of the live index of a kind."""
    return f"{prefix}-{kind}"


@dataclass(frozen=True, slots=True)
class ResourceAccount:
    """An account with an outside provider, as in the catalogue: None is not stated, times are RFC 3339 UTC."""

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

    The source is `file`, `stdin` or `sql`, the position one in its own terms, never a record's key or value. `waiting`
    is the number of changes that are known to be waiting; None if the source does not know it. Times are RFC 3339 UTC;
    `caught_up_at`, when no changes were waiting last, is None before the first time. The lag is now minus this, even
    after the follower has died.
    """

    source: str
    position: str | None
    waiting: int | None
    caught_up_at: str | None
    told_at: str


@dataclass(frozen=True, slots=True)
class MissingChanges:
    """Changes that can't be read any more, as rotation has removed their file before it was read.

    `bytes` is None if their number is unknown. They were written at `before` or earlier, RFC 3339 UTC.
    """

    bytes: int | None
    before: str

    def joined(self, other: "MissingChanges | None") -> "MissingChanges":
        """These and others together."""
        if other is None or other == self:
            return self
        size = None if self.bytes is None or other.bytes is None else self.bytes + other.bytes
        return MissingChanges(size, max(self.before, other.before))

    def __str__(self) -> str:
        """A sentence for operators, and what to do."""
        size = "an unknown number of" if self.bytes is None else f"{self.bytes:,}"
        return (
            f"changes are missing: {size} bytes, written until {self.before}, were rotated away before they were read;"
            " build from a catalogue that was written since"
        )


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations document; `follower` is None if none has reported for this generation yet.

    `missing` are changes that neither a follower nor a build could read; documents of earlier versions lack the field.
    """

    accounts: tuple[ResourceAccount, ...]
    follower: FollowerStatus | None
    missing: MissingChanges | None = None

    def as_wire(self) -> dict[str, Any]:
        """The stored document."""
        return asdict(self)

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> "Operations":
        """Read a stored document; ValueError if it is none. Fields that a later version may have added are ignored."""
        try:
            follower, missing = document["follower"], document.get("missing")
            return cls(
                tuple(_read(ResourceAccount, account) for account in document["accounts"]),
                None if follower is None else _read(FollowerStatus, follower),
                None if missing is None else _read(MissingChanges, missing),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("not an operations document") from error


def _read(part: type[_Part], stored: Mapping[str, Any]) -> _Part:
    hints = get_type_hints(part)
    values = {field.name: stored[field.name] for field in fields(part)}
    for name, value in values.items():
        # An integer is accepted as a float, but a bool is not accepted as a number.
        whole_number = type(value) is int and isinstance(0.0, hints[name])
        if not whole_number and (isinstance(value, bool) or not isinstance(value, hints[name])):
            raise TypeError(f"{name} is of another type")
    return part(**values)
