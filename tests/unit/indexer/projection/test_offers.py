"""Projection of coupons: which domains are reserved."""

import pytest

from indexer.projection.offers import is_reserved


@pytest.mark.rule("A4")
@pytest.mark.parametrize(
    ("domain", "reserved"),
    [
        ("a.test", True), ("a.b.example", True), ("a.invalid", True), ("a.localhost", True), ("example.com", True),
        ("shop.example.net", True), ("a.b.example.org", True), ("myexample.com", False), ("example.de", False),
        ("example.co.uk", False), ("test.com", False), ("example.com.internal", False), ("a.tests", False),
        ("a.internal", False),
    ],
)  # fmt: skip
def test_the_names_of_the_two_standards_are_reserved_and_no_others(domain: str, *, reserved: bool) -> None:
    assert is_reserved(domain) is reserved
