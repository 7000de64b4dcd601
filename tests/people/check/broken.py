"""All broken servers: for every rule at least one that breaks it."""

from typing import Final

from tests.people.check import (
    broken_calls,
    broken_coupons,
    broken_credentials,
    broken_decided,
    broken_errors,
    broken_finding,
    broken_headers,
    broken_hidden,
    broken_mcp,
    broken_offers,
    broken_operations,
    broken_reports,
    broken_shipping,
    broken_shops,
    broken_suggest,
    broken_trust,
)
from tests.people.check.breaking import Breakage

BREAKAGES: Final[tuple[Breakage, ...]] = (
    *broken_calls.BREAKAGES,
    *broken_shops.BREAKAGES,
    *broken_finding.BREAKAGES,
    *broken_coupons.BREAKAGES,
    *broken_shipping.BREAKAGES,
    *broken_trust.BREAKAGES,
    *broken_offers.BREAKAGES,
    *broken_reports.BREAKAGES,
    *broken_decided.BREAKAGES,
    *broken_mcp.BREAKAGES,
    *broken_suggest.BREAKAGES,
    *broken_operations.BREAKAGES,
    *broken_credentials.BREAKAGES,
    *broken_errors.BREAKAGES,
    *broken_headers.BREAKAGES,
    *broken_hidden.BREAKAGES,
)
