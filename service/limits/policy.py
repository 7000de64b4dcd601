"""The quota that applies to a call, and the key that it is counted under (Q2).

A call with a token is counted by the token, whatever its address, and any other by its address; an IPv6 /64 counts as
one address.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from types import MappingProxyType
from typing import Final

from service.auth.protocol import Token

DEFAULT_CLASS: Final = "default"

_MINUTE: Final = 60
_HOUR: Final = 3600
_NETWORK_BITS: Final = 64
_HOST_BITS: Final = 128 - _NETWORK_BITS
# Parsing an address costs more than counting it. A full cache takes some megabytes.
_CACHED_ADDRESSES: Final = 16_384


class Bucket(StrEnum):
    """The calls that are counted together; the value is also the policy's name in the RateLimit headers."""

    READS = "reads"
    SUGGEST = "suggest"
    REPORTS = "reports"


@dataclass(frozen=True, slots=True)
class Quota:
    """How many units are allowed in any window of so many whole seconds."""

    bucket: Bucket
    limit: int
    window: int


@dataclass(frozen=True, slots=True)
class QuotaClass:
    """The quotas of one class of callers: calls of read-only tools and of /suggest per minute, and reports per hour."""

    reads: int
    suggest: int
    reports: int

    def quota(self, bucket: Bucket) -> Quota:
        """The quota of a bucket."""
        if bucket is Bucket.SUGGEST:
            return _quota(bucket, self.suggest, _MINUTE)
        if bucket is Bucket.READS:
            return _quota(bucket, self.reads, _MINUTE)
        return _quota(bucket, self.reports, _HOUR)


@lru_cache(maxsize=256)
def _quota(bucket: Bucket, limit: int, window: int) -> Quota:
    """The same object for the same quota, as every suggest request needs one."""
    return Quota(bucket, limit, window)


# Readiness counts under this key, as only a write shows that a Redis which answers also takes writes.
READINESS_KEY: Final = "readiness"
READINESS_QUOTA: Final = Quota(Bucket.READS, 1_000_000, _MINUTE)

# No reports: dispatch refuses reports without a token before it counts (R5).
ANONYMOUS: Final = QuotaClass(reads=120, suggest=1_200, reports=0)
WITH_TOKEN: Final = QuotaClass(reads=1_200, suggest=12_000, reports=60)


@dataclass(frozen=True, slots=True)
class QuotaPolicy:
    """All quotas: those of an address, and those of tokens by class name, of which DEFAULT_CLASS is one."""

    anonymous: QuotaClass = ANONYMOUS
    classes: Mapping[str, QuotaClass] = field(default_factory=lambda: MappingProxyType({DEFAULT_CLASS: WITH_TOKEN}))

    def __post_init__(self) -> None:
        if DEFAULT_CLASS not in self.classes:
            raise ValueError(f"one of the quota classes must be named {DEFAULT_CLASS}")

    def quota(self, bucket: Bucket, token: Token | None) -> Quota:
        """The quota that applies to a call; a token whose class is no longer configured has the default class."""
        if token is None:
            return self.anonymous.quota(bucket)
        return self.classes.get(token.quota_class, self.classes[DEFAULT_CLASS]).quota(bucket)


def quota_key(bucket: Bucket, token: Token | None, address: str) -> str:
    """The key that a call is counted under: its bucket, and the confirmed token or else the caller's address."""
    return f"{bucket}:token:{token.id}" if token is not None else f"{bucket}:address:{address_group(address)}"


@lru_cache(maxsize=_CACHED_ADDRESSES)
def address_group(address: str) -> str:
    """The address or network that counts as one caller: an IPv4 address (mapped into IPv6 or not), or an IPv6 /64.

    A text that is not an address is returned unchanged.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> _HOST_BITS << _HOST_BITS)}/{_NETWORK_BITS}"
