"""Which quota a call falls under, and whose it is (Q2).

A caller with a token is counted by the token, whatever the address; any other by the address, where an IPv6 customer's
whole /64 is one.
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
_CUSTOMER_BITS: Final = 64
_HOST_BITS: Final = 128 - _CUSTOMER_BITS
# Telling the group of an address costs more than to count it; some megabytes when full.
_KNOWN_ADDRESSES: Final = 16_384


class Bucket(StrEnum):
    """What is counted together; the name is also the policy's in the RateLimit headers."""

    READS = "reads"
    SUGGEST = "suggest"
    REPORTS = "reports"


@dataclass(frozen=True, slots=True)
class Quota:
    """How much is allowed.

    Attributes:
        bucket: of what.
        limit: how many units in any window.
        window: seconds, whole.
    """

    bucket: Bucket
    limit: int
    window: int


@dataclass(frozen=True, slots=True)
class QuotaClass:
    """The quotas of one kind of caller.

    Attributes:
        reads: calls of tools that only read, a minute.
        suggest: calls of /suggest, a minute.
        reports: reports, an hour.
    """

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
    """One value for the same quota, as it is asked for on every key press."""
    return Quota(bucket, limit, window)


# A count that nobody reads: that a Redis answers but takes no writes is found out by it.
READINESS_KEY: Final = "readiness"
READINESS_QUOTA: Final = Quota(Bucket.READS, 1_000_000, _MINUTE)

# Nobody reports without a token: dispatch refuses that before it counts (R5).
ANONYMOUS: Final = QuotaClass(reads=120, suggest=1_200, reports=0)
WITH_TOKEN: Final = QuotaClass(reads=1_200, suggest=12_000, reports=60)


def _default_classes() -> Mapping[str, QuotaClass]:
    return MappingProxyType({DEFAULT_CLASS: WITH_TOKEN})


@dataclass(frozen=True, slots=True)
class QuotaPolicy:
    """All quotas.

    Attributes:
        anonymous: of an address.
        classes: of tokens, by the name of their class; DEFAULT_CLASS is one of them.
    """

    anonymous: QuotaClass = ANONYMOUS
    classes: Mapping[str, QuotaClass] = field(default_factory=_default_classes)

    def __post_init__(self) -> None:
        if DEFAULT_CLASS not in self.classes:
            raise ValueError(f"the quota classes must hold one named {DEFAULT_CLASS}")

    def quota(self, bucket: Bucket, token: Token | None) -> Quota:
        """The quota that a call falls under; a token of a class that is configured no more has the default one's."""
        if token is None:
            return self.anonymous.quota(bucket)
        return self.classes.get(token.quota_class, self.classes[DEFAULT_CLASS]).quota(bucket)


def tool_bucket(*, read_only: bool) -> Bucket:
    """What a tool's call is counted as."""
    return Bucket.READS if read_only else Bucket.REPORTS


def quota_key(bucket: Bucket, token: Token | None, address: str) -> str:
    """Whose quota a call counts in.

    Args:
        bucket: what it is counted as.
        token: the confirmed token, or None.
        address: the caller's, as service.runtime.addresses tells it.
    """
    return f"{bucket}:token:{token.id}" if token is not None else f"{bucket}:address:{address_group(address)}"


@lru_cache(maxsize=_KNOWN_ADDRESSES)
def address_group(address: str) -> str:
    """The addresses that are one caller: an IPv4 address (mapped into IPv6 or not), or an IPv6 /64.

    Anything that is no address stays what it is.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> _HOST_BITS << _HOST_BITS)}/{_CUSTOMER_BITS}"
