"""Which quota a call falls under, whose it is, and the headers that show it to a caller."""

from types import MappingProxyType

import pytest

from service.auth.protocol import Token
from service.limits.policy import (
    WITH_TOKEN,
    Bucket,
    Decision,
    Quota,
    QuotaClass,
    QuotaPolicy,
    address_group,
    quota_headers,
    quota_key,
)

TOKEN = Token("a1", "widget", "default", None)
GOLD = Token("b2", "partner", "gold", None)


@pytest.mark.rule("Q2")
def test_the_default_quotas_are_those_of_the_decisions() -> None:
    policy = QuotaPolicy()
    assert [policy.quota(bucket, None) for bucket in (Bucket.READS, Bucket.SUGGEST)] == [
        Quota(Bucket.READS, 120, 60),
        Quota(Bucket.SUGGEST, 1_200, 60),
    ]
    assert [policy.quota(bucket, TOKEN) for bucket in Bucket] == [
        Quota(Bucket.READS, 1_200, 60),
        Quota(Bucket.SUGGEST, 12_000, 60),
        Quota(Bucket.REPORTS, 60, 3_600),
    ]


@pytest.mark.rule("Q2")
def test_quotas_are_settings_and_a_class_that_is_gone_has_the_default_ones() -> None:
    gold = QuotaClass(reads=9, suggest=8, reports=7)
    policy = QuotaPolicy(
        QuotaClass(reads=1, suggest=2, reports=0), MappingProxyType({"default": WITH_TOKEN, "gold": gold})
    )
    asked = [policy.quota(Bucket.READS, token).limit for token in (None, TOKEN, GOLD, Token("c", "c", "gone", None))]
    assert asked == [1, 1_200, 9, 1_200]
    assert policy.quota(Bucket.REPORTS, GOLD) == Quota(Bucket.REPORTS, 7, 3_600)


def test_the_classes_must_hold_the_default_one() -> None:
    with pytest.raises(ValueError, match="must be named default"):
        QuotaPolicy(classes={})


@pytest.mark.rule("Q2")
def test_a_token_is_counted_by_its_id_and_anybody_else_by_the_address() -> None:
    keys = [quota_key(Bucket.READS, TOKEN, "192.0.2.1"), quota_key(Bucket.SUGGEST, None, "192.0.2.1")]
    assert keys == ["reads:token:a1", "suggest:address:192.0.2.1"]


@pytest.mark.rule("Q2")
@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("unknown", "unknown"),
    ],
)
def test_an_ipv6_customer_is_one_caller(address: str, group: str) -> None:
    assert address_group(address) == group


@pytest.mark.rule("Q2")
def test_an_answer_and_a_refusal_have_the_policy_and_the_remaining_units() -> None:
    answered, refused = Decision(True, 120, 119, 12, None), Decision(False, 60, 0, 30, 45)
    assert quota_headers(Quota(Bucket.READS, 120, 60), answered) == (
        (b"ratelimit-policy", b'"reads";q=120;w=60'),
        (b"ratelimit", b'"reads";r=119;t=12'),
    )
    assert quota_headers(Quota(Bucket.REPORTS, 60, 3600), refused) == (
        (b"ratelimit-policy", b'"reports";q=60;w=3600'),
        (b"ratelimit", b'"reports";r=0;t=30'),
    )
