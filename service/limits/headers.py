"""The headers of a decision: RateLimit-Policy, RateLimit and Retry-After.

The first two follow draft-ietf-httpapi-ratelimit-headers-11. They are structured fields (RFC 9651): a list of one
string, the bucket's name, with integers as parameters.
"""

from functools import lru_cache

from service.limits.policy import Quota
from service.limits.protocol import Decision

Headers = tuple[tuple[bytes, bytes], ...]


def quota_headers(quota: Quota, decision: Decision) -> Headers:
    """The headers of every counted answer, allowed or refused.

    `q` units are allowed in `w` seconds; `r` of them remain, and more become available after `t` seconds.
    """
    policy, pattern = quota_pattern(quota)
    return policy, (b"ratelimit", pattern % (decision.remaining, decision.reset_seconds))


def retry_headers(decision: Decision) -> Headers:
    """The additional headers of a refusal; none if the decision allows the call."""
    if decision.retry_after is None:
        return ()
    return ((b"retry-after", str(decision.retry_after).encode()),)


@lru_cache(maxsize=256)
def quota_pattern(quota: Quota) -> tuple[tuple[bytes, bytes], bytes]:
    """The RateLimit-Policy header of a quota, and a pattern for the value of RateLimit."""
    name = quota.bucket.value
    policy = f'"{name}";q={quota.limit};w={quota.window}'.encode()
    return (b"ratelimit-policy", policy), f'"{name}";r=%d;t=%d'.encode()
