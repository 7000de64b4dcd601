"""A decision in HTTP's words: RateLimit-Policy, RateLimit and Retry-After.

The first two are those of draft-ietf-httpapi-ratelimit-headers-11, structured fields (RFC 9651): a list of one
string, the bucket's name, with whole numbers as parameters.
"""

from functools import lru_cache

from service.limits.policy import Quota
from service.limits.protocol import Decision

Headers = tuple[tuple[bytes, bytes], ...]


def quota_headers(quota: Quota, decision: Decision) -> Headers:
    """What every counted answer carries, allowed or refused.

    `q` units are allowed in `w` seconds; `r` of them are left, and more come back after `t` seconds.
    """
    policy, pattern = quota_pattern(quota)
    return policy, (b"ratelimit", pattern % (decision.remaining, decision.reset_seconds))


def retry_headers(decision: Decision) -> Headers:
    """What a refusal carries beside them; nothing when there is none."""
    if decision.retry_after is None:
        return ()
    return ((b"retry-after", str(decision.retry_after).encode()),)


@lru_cache(maxsize=256)
def quota_pattern(quota: Quota) -> tuple[tuple[bytes, bytes], bytes]:
    """What all answers of a quota have in common: the policy's header, and the pattern of the other one's value."""
    name = quota.bucket.value
    policy = f'"{name}";q={quota.limit};w={quota.window}'.encode()
    return (b"ratelimit-policy", policy), f'"{name}";r=%d;t=%d'.encode()
