"""Admission of calls: the token rule, then the quota (Q1, Q2).

Both are decided before the tool's code runs and before a backend is called (R5).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from service.auth.protocol import Token, TokensUnavailable, Verifier
from service.errors import BackendUnavailableError, QuotaExceededError, TokenInvalidError, TokenRequiredError
from service.limits.policy import (
    Account,
    Bucket,
    Decision,
    Limiter,
    LimiterUnavailable,
    Quota,
    QuotaHeaders,
    QuotaPolicy,
    quota_headers,
    quota_pattern,
)
from service.runtime.caller import Caller
from shop_directory.runtime.metrics import NO_METRICS, Metrics

_CACHED_ADDRESSES: Final = 16_384


@dataclass(frozen=True, slots=True)
class Admitted:
    """An admitted call: its token, None for an anonymous one, and the headers of the quota."""

    token: Token | None
    headers: QuotaHeaders


class AddressQuota:
    """The quotas of addresses in one bucket, decided without waiting where possible."""

    def __init__(self, limiter: Limiter, bucket: Bucket, policy: QuotaPolicy, metrics: Metrics) -> None:
        self._limiter = limiter
        self._bucket = bucket
        self._policy = policy
        self._metrics = metrics
        self._account = lru_cache(_CACHED_ADDRESSES)(self._find_account)
        # Only those that are counted by address; those of a named network are reported immediately.
        self._allowed = 0

    def admit(self, address: str) -> QuotaHeaders | None:
        """Count an anonymous call; returns the headers of the quota, or raises QuotaExceededError.

        None means that only `Admission.admit` can decide, and that nothing has been counted.
        """
        key, quota, network, policy_header, pattern = self._account(address)
        decision = self._limiter.take(key, quota)
        if decision is None:
            return None
        headers = policy_header, (b"ratelimit", pattern % (decision.remaining, decision.reset_seconds))
        if not decision.allowed:
            self._metrics.quota(self._bucket, "refused", network=network)
            raise QuotaExceededError(decision.retry_after or 1, headers)
        if network is None:
            self._allowed += 1
        else:
            self._metrics.quota(self._bucket, "allowed", network=network)
        return headers

    def flush_metrics(self) -> None:
        """Report the allowed calls since the last time; one report costs as much for many calls as for one."""
        if self._allowed:
            self._metrics.quota(self._bucket, "allowed", self._allowed)
            self._allowed = 0

    def _find_account(self, address: str) -> tuple[str, Quota, str | None, tuple[bytes, bytes], bytes]:
        account = self._policy.account(self._bucket, None, address)
        return *account, *quota_pattern(account.quota)


class Admission:
    """Verifies tokens and counts calls."""

    def __init__(
        self, verifier: Verifier, limiter: Limiter, policy: QuotaPolicy, metrics: Metrics = NO_METRICS
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

    async def charge(self, caller: Caller, token: Token | None, bucket: Bucket, units: int) -> QuotaHeaders:
        """Count units for a call: all of them or none; returns the headers of the quota.

        Raises BackendUnavailableError if a report can't be counted, and QuotaExceededError if fewer units remain, which
        its headers state.
        """
        account = self._policy.account(bucket, token, caller.address)
        decision = await self._hit(account, units)
        headers = quota_headers(account.quota, decision)
        if not decision.allowed:
            raise QuotaExceededError(decision.retry_after or 1, headers)
        return headers

    def try_admit(self, address: str, bucket: Bucket) -> QuotaHeaders | None:
        """Count an anonymous call without waiting, as `AddressQuota.admit` does, and report it."""
        quota = self._address_quotas[bucket]
        headers = quota.admit(address)
        quota.flush_metrics()
        return headers

    def address_quota(self, bucket: Bucket) -> AddressQuota:
        """The quotas of addresses in one bucket, with metrics that the caller must flush."""
        return AddressQuota(self._limiter, bucket, self._policy, self._metrics)

    async def count_refused(self, caller: Caller) -> None:
        """Count a call with a refused token or key as a read of its address, or of its network (Q2)."""
        await self._hit(self._policy.account(Bucket.READS, None, caller.address))

    async def _token(self, caller: Caller, *, required: bool) -> Token | None:
        if caller.token is None:
            if required:
                raise TokenRequiredError
            return None
        try:
            token = await self._verifier.verify(caller.token)
        except TokensUnavailable as error:
            if not required:
                return None
            wait = "1 second" if error.retry_after == 1 else f"{error.retry_after} seconds"
            refusal = BackendUnavailableError(f"The token could not be checked just now; try again in {wait}.")
            refusal.retry_after = error.retry_after
            raise refusal from None
        if token is None and required:
            # This may exhaust the address's quota for other calls, but the answer stays 401 (R5).
            await self.count_refused(caller)
            raise TokenInvalidError
        return token

    async def _hit(self, account: Account, units: int = 1) -> Decision:
        try:
            decision = await self._limiter.hit(account.key, account.quota, units)
        except LimiterUnavailable as error:
            raise BackendUnavailableError("Reports can't be taken just now; try again in 1 second.") from error
        outcome = "allowed" if decision.allowed else "refused"
        self._metrics.quota(account.quota.bucket, outcome, network=account.network)
        return decision
