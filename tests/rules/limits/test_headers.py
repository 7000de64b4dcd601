"""The headers that show a caller its quota."""

import pytest

from service.limits.policy import Bucket, Quota
from service.limits.protocol import Decision, quota_headers


@pytest.mark.rule("Q2")
def test_an_answer_has_the_policy_and_the_remaining_units() -> None:
    decision = Decision(True, 120, 119, 12, None)
    assert quota_headers(Quota(Bucket.READS, 120, 60), decision) == (
        (b"ratelimit-policy", b'"reads";q=120;w=60'),
        (b"ratelimit", b'"reads";r=119;t=12'),
    )


@pytest.mark.rule("Q2")
def test_a_refusal_has_them_too() -> None:
    decision = Decision(False, 60, 0, 30, 45)
    assert quota_headers(Quota(Bucket.REPORTS, 60, 3600), decision) == (
        (b"ratelimit-policy", b'"reports";q=60;w=3600'),
        (b"ratelimit", b'"reports";r=0;t=30'),
    )
