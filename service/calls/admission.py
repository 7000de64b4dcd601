"""Admission of calls: the token rule, then the quota (Q1, Q2).

Both are decided before the tool's code runs and before a backend is called (R5).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from service.auth.protocol import Token, TokensUnavailable
from service.auth.verifier import TokenVerifier
from service.errors import (
    BackendUnavailableError,
    QuotaExceededError,
    TokenInvalidError,
    TokenRequiredError,
)
from service.limits.policy import (
    Bucket,
    Decision,
    Headers,
    Limiter,
    LimiterUnavailable,
    Quota,
    QuotaPolicy,
    quota_headers,
    quota_key,
    quota_pattern,
)
from service.runtime.caller import Caller
from service.runtime.telemetry import NO_METRICS, Metrics

_CACHED_ADDRESSES: Final = 16_384


@dataclass(frozen=True, slots=True)
class Admitted:
    """An admitted call: its token, None for an anonymous one, and the headers of the quota."""

    token: Token | None
    headers: Headers


class AddressQuota:
    """The quotas of addresses in one bucket, decided without waiting where possible."""

    def __init__(self, limiter: Limiter, quota: Quota, metrics: Metrics) -> None:
        self._limiter = limiter
        self._quota = quota
        self._metrics = metrics
        self._key = lru_cache(_CACHED_ADDRESSES)(lambda address: quota_key(quota.bucket, None, address))
        self._policy_header, self._pattern = quota_pattern(quota)
        self._allowed = 0

    def admit(self, address: str) -> Headers | None:
        """Count an anonymous call; returns the headers of the quota, or raises QuotaExceededError.

        None means that only `Admission.admit` can decide, and that nothing has been counted.
        """
        decision = self._limiter.take(self._key(address), self._quota)
        if decision is None:
            return None
        headers = self._policy_header, (b"ratelimit", self._pattern % (decision.remaining, decision.reset_seconds))
        if not decision.allowed:
            self._metrics.quota(self._quota.bucket, "refused")
            raise QuotaExceededError(decision.retry_after or 1, headers)
        self._allowed += 1
        return headers

    def flush_metrics(self) -> None:
        """Report the allowed calls since the last time; one report costs as much for many calls as for one."""
        if self._allowed:
            self._metrics.quota(self._quota.bucket, "allowed", self._allowed)
            self._allowed = 0


class Admission:
    """Verifies tokens and counts calls."""

    def __init__(
        self, verifier: TokenVerifier, limiter: Limiter, policy: QuotaPolicy, metrics: Metrics = NO_METRICS
    ) -> None:
        self._verifier = verifier
        self._limiter = limiter
        self._policy = policy
        self._metrics = metrics
        self._address_quotas = {bucket: self.address_quota(bucket) for bucket in Bucket}

    async def admit(self, caller: Caller, bucket: Bucket, *, token_required: bool = False) -> Admitted:
        """Verify the token, and count the call.

        Raises TokenRequiredError, TokenInvalidError, for which the call is counted against the address,
        QuotaExceededError, or BackendUnavailableError if a required token can't be verified or a report not counted.
        """
        token = await self._token(caller, required=token_required)
        return Admitted(token, await self.charge(caller, token, bucket, 1))

    async def charge(self, caller: Caller, token: Token | None, bucket: Bucket, units: int) -> Headers:
        """Count units for a call: all of them or none; returns the headers of the quota.

        Raises BackendUnavailableError if a report can't be counted, and QuotaExceededError if fewer units remain, which
        its headers state.
        """
        quota = self._policy.quota(bucket, token)
        decision = await self._hit(quota_key(bucket, token, caller.address), quota, units)
        headers = quota_headers(quota, decision)
        if not decision.allowed:
            raise QuotaExceededError(decision.retry_after or 1, headers)
        return headers

    def try_admit(self, address: str, bucket: Bucket) -> Headers | None:
        """Count an anonymous call without waiting, as `AddressQuota.admit` does, and report it."""
        quota = self._address_quotas[bucket]
        headers = quota.admit(address)
        quota.flush_metrics()
        return headers

    def address_quota(self, bucket: Bucket) -> AddressQuota:
        """The quotas of addresses in one bucket, with metrics that the caller must flush."""
        return AddressQuota(self._limiter, self._policy.quota(bucket, None), self._metrics)

    async def count_refused(self, caller: Caller) -> None:
        """Count a call with a refused token or key as a read of its address (Q2)."""
        await self._hit(quota_key(Bucket.READS, None, caller.address), self._policy.quota(Bucket.READS, None))

    async def _token(self, caller: Caller, *, required: bool) -> Token | None:
        if caller.token is None:
            if required:
                raise TokenRequiredError
            return None
        try:
            token = await self._verifier.verify(caller.token)
        except TokensUnavailable:
            if not required:
                return None
            raise BackendUnavailableError("The token could not be checked just now; try again in 1 second.") from None
        if token is None and required:
            # This may exhaust the address's quota for other calls, but the answer stays 401 (R5).
            await self.count_refused(caller)
            raise TokenInvalidError
        return token

    async def _hit(self, key: str, quota: Quota, units: int = 1) -> Decision:
        try:
            decision = await self._limiter.hit(key, quota, units)
        except LimiterUnavailable as error:
            raise BackendUnavailableError("Reports can't be taken just now; try again in 1 second.") from error
        self._metrics.quota(quota.bucket, "allowed" if decision.allowed else "refused")
        return decision
