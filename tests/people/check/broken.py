"""All broken servers: for every rule at least one that breaks it."""

from typing import Final

from tests.people.check import (
    broken_calls,
    broken_coupons,
    broken_finding,
    broken_headers,
    broken_mcp,
    broken_offers,
    broken_operations,
    broken_shops,
    broken_statements,
    broken_suggest,
)
from tests.people.check.breaking import Breakage

BREAKAGES: Final[tuple[Breakage, ...]] = (
    *broken_calls.BREAKAGES,
    *broken_shops.BREAKAGES,
    *broken_finding.BREAKAGES,
    *broken_coupons.BREAKAGES,
    *broken_statements.BREAKAGES,
    *broken_offers.BREAKAGES,
    *broken_mcp.BREAKAGES,
    *broken_suggest.BREAKAGES,
    *broken_operations.BREAKAGES,
    *broken_headers.BREAKAGES,
)
