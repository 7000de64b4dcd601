"""Quotas: which one applies to a call, the key that it is counted under, and the interface of a limiter (Q2).

A call with a token is counted by the token, and any other by its address, where an IPv6 /64 counts as one; those from a
network that the operator names are counted together, by its name (F13).

Every limiter guarantees that no period of `window` seconds, whenever it starts, has more than `limit` allowed units of
a key, and that the whole quota is available after `window` seconds without calls. To need only a few bytes a key, units
taken within the same sixtieth of the window expire together, when the last of them is a window old: a unit may count up
to a sixtieth of the window too long, never too short. Refused units do not count. A limiter that takes units in blocks
(`service.limits.blocks`) deviates from both guarantees by a bound that it states.

Why not the library `limits` (5.8): deciding and reading the remainder are two calls, between which another can come;
its Redis extra needs a client below version 8.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from service.auth.protocol import Token
from service.runtime.caller import Network, network_of
from service.runtime.store_waits import StoreUnavailable

QuotaHeaders = tuple[tuple[bytes, bytes], ...]

DEFAULT_CLASS: Final = "default"

_MINUTE: Final = 60
_HOUR: Final = 3600
_NETWORK_BITS: Final = 64
_HOST_BITS: Final = 128 - _NETWORK_BITS
_SLOTS: Final = 60
# Parsing an address costs more than counting it. A full cache takes some megabytes.
_CACHED_ADDRESSES: Final = 16_384


class Bucket(StrEnum):
    """The calls that are counted together; the value is also the policy's name in the RateLimit headers."""

    READS = "reads"
    SUGGEST = "suggest"
    REPORTS = "reports"


@dataclass(frozen=True, slots=True)
class Quota:
    """How many units are allowed in any window of `seconds` whole seconds."""

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
class NamedNetwork:
    """A network whose callers are counted together: its ranges, as address/bits, and the name of its quota class."""

    ranges: tuple[str, ...]
    quota_class: str


class NamedNetworks:
    """Finds the named network of an address; the longest range counts."""

    def __init__(self, networks: Mapping[str, NamedNetwork]) -> None:
        """ValueError if a range is not a network, has bits beyond its length, or is stated twice."""
        self.classes = {name: network.quota_class for name, network in networks.items()}
        self._names: dict[Network, str] = {}
        for name, network in networks.items():
            for text in network.ranges:
                if (stated := network_of(text)) in self._names:
                    raise ValueError("a range is stated twice")
                self._names[stated] = name
        self._lengths = sorted({stated.prefixlen for stated in self._names}, reverse=True)

    def name_of(self, address: str) -> str | None:
        """The name of an address's network; None if it is in none, or is not an address."""
        return next((self._names[each] for each in self._around(address) if each in self._names), None)

    def _around(self, address: str) -> Iterator[Network]:
        """The networks around an address that have the length of a range, the smallest first."""
        try:
            own = network_of(address)
        except ValueError:
            return
        for length in self._lengths:
            if length <= own.prefixlen:
                yield own.supernet(new_prefix=length)


class Account(NamedTuple):
    """What a call is counted against: the limiter's key and the quota; the network's name if it is that of one."""

    key: str
    quota: Quota
    network: str | None = None


@dataclass(frozen=True, slots=True)
class QuotaPolicy:
    """All quotas: those of an address, and those of tokens and networks by class name; one is DEFAULT_CLASS."""

    anonymous: QuotaClass = ANONYMOUS
    classes: Mapping[str, QuotaClass] = field(default_factory=lambda: MappingProxyType({DEFAULT_CLASS: WITH_TOKEN}))
    networks: NamedNetworks = field(default_factory=lambda: NamedNetworks({}))

    def __post_init__(self) -> None:
        if DEFAULT_CLASS not in self.classes:
            raise ValueError(f"one of the quota classes must be named {DEFAULT_CLASS}")

    def account(self, bucket: Bucket, token: Token | None, address: str) -> Account:
        """What a call is counted against: the confirmed token, or else the caller's network or address.

        A token whose class is no longer configured has the default class.
        """
        if token is not None:
            quota_class = self.classes.get(token.quota_class, self.classes[DEFAULT_CLASS])
            return Account(f"{bucket}:token:{token.id}", quota_class.quota(bucket))
        if (network := self.networks.name_of(address)) is not None:
            quota = self.classes[self.networks.classes[network]].quota(bucket)
            return Account(f"{bucket}:network:{network}", quota, network)
        return Account(f"{bucket}:address:{address_group(address)}", self.anonymous.quota(bucket))


@lru_cache(maxsize=_CACHED_ADDRESSES)
def address_group(address: str) -> str:
    """The address or network that counts as one caller: IPv4, also if mapped, or an IPv6 /64; other text unchanged."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> _HOST_BITS << _HOST_BITS)}/{_NETWORK_BITS}"


class LimiterUnavailable(StoreUnavailable):
    """There was no decision; the units may have been counted."""


class Decision(NamedTuple):
    """The result of a hit: a named tuple, as every suggest request makes one and a dataclass costs twice as much.

    Only an allowed call was counted. `remaining` are the units right after the hit, of which more become available
    after `reset_seconds`, at least 1. After `retry_after` seconds the same hit would be allowed if no other came; None
    if it was allowed.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_seconds: int
    retry_after: int | None


class Limiter(Protocol):
    """Counts units against quotas."""

    @property
    def degraded(self) -> bool:
        """Whether the last decision was made without the shared count."""

    def take(self, key: str, quota: Quota) -> Decision | None:
        """Take one unit if the limiter can decide without I/O; None when only `hit` can. Never waits, never raises."""

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take `cost` units, at least 1, from a key's quota if they are available. Raises LimiterUnavailable."""

    async def close(self) -> None:
        """Close connections."""


def quota_headers(quota: Quota, decision: Decision) -> QuotaHeaders:
    """The headers RateLimit-Policy and RateLimit of every counted answer, allowed or refused.

    They follow draft-ietf-httpapi-ratelimit-headers-11. They are structured fields (RFC 9651): a list of one string,
    the bucket's name, with integers as parameters. `q` units are allowed in `w` seconds; `r` of them remain, and more
    become available after `t` seconds.
    """
    policy, pattern = quota_pattern(quota)
    return policy, (b"ratelimit", pattern % (decision.remaining, decision.reset_seconds))


@lru_cache(maxsize=256)
def quota_pattern(quota: Quota) -> tuple[tuple[bytes, bytes], bytes]:
    """The RateLimit-Policy header of a quota, and a pattern for the value of RateLimit."""
    name = quota.bucket.value
    policy = f'"{name}";q={quota.limit};w={quota.window}'.encode()
    return (b"ratelimit-policy", policy), f'"{name}";r=%d;t=%d'.encode()


def slot_milliseconds(quota: Quota) -> int:
    """The length of a slot: units that are taken within one expire together."""
    return max(1, quota.window * 1000 // _SLOTS)


def whole_seconds(milliseconds: int) -> int:
    """Milliseconds as whole seconds, rounded up, at least 1."""
    return max(1, -(-milliseconds // 1000))
