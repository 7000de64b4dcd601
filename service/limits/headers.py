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
    policy, left = _constant(quota)
    return policy, (b"ratelimit", left % (decision.remaining, decision.reset_seconds))


def quota_lines(quota: Quota) -> bytes:
    """The same as lines of a head, as a pattern of what is left and of the seconds."""
    (name, policy), left = _constant(quota)
    return b"%b: %b\r\nratelimit: %b\r\n" % (name, policy.replace(b"%", b"%%"), left)


def retry_headers(decision: Decision) -> Headers:
    """What a refusal carries beside them; nothing when there is none."""
    if decision.retry_after is None:
        return ()
    return ((b"retry-after", str(decision.retry_after).encode()),)


@lru_cache(maxsize=256)
def _constant(quota: Quota) -> tuple[tuple[bytes, bytes], bytes]:
    """What all answers of a quota have in common: the policy's header, and the other one's pattern."""
    name = quota.bucket.value
    policy = f'"{name}";q={quota.limit};w={quota.window}'.encode()
    return (b"ratelimit-policy", policy), f'"{name}";r=%d;t=%d'.encode()
