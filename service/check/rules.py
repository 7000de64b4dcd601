"""All rules, in the order of the interface, and those of its sentences that can't be seen from outside.

A module of rules ends with its `RULES`; a new module is one line here.
"""

import re
from collections.abc import Mapping
from typing import Final

from service.check import (
    rules_calls,
    rules_coupons,
    rules_credentials,
    rules_decided,
    rules_errors,
    rules_finding,
    rules_headers,
    rules_hidden,
    rules_mcp,
    rules_offers,
    rules_operations,
    rules_reports,
    rules_shipping,
    rules_shops,
    rules_suggest,
    rules_trust,
)
from service.check.rule import Rule

_ID: Final = re.compile(r"([A-Z])(\d+)(\.\w+)?")
# The interface first, then the decisions in their order.
_CHAPTERS: Final = "IVRXMAEQGCO"


def _place(rule: Rule) -> tuple[int, int, str]:
    match _ID.fullmatch(rule.id):
        case re.Match() as found:
            return _CHAPTERS.index(found[1]), int(found[2]), found[3] or ""
    raise ValueError(f"{rule.id} is no id of a rule")


RULES: Final[tuple[Rule, ...]] = tuple(
    sorted(
        (
            *rules_calls.RULES,
            *rules_shops.RULES,
            *rules_finding.RULES,
            *rules_coupons.RULES,
            *rules_shipping.RULES,
            *rules_trust.RULES,
            *rules_offers.RULES,
            *rules_reports.RULES,
            *rules_decided.RULES,
            *rules_mcp.RULES,
            *rules_suggest.RULES,
            *rules_operations.RULES,
            *rules_credentials.RULES,
            *rules_errors.RULES,
            *rules_headers.RULES,
            *rules_hidden.RULES,
        ),
        key=_place,
    )
)

# Sentences of the interface that no request to a URL can show, with the reason.
UNSEEN: Final[Mapping[str, str]] = {
    "I4": "MCP on stdio belongs to a process on the operator's machine; no address leads to it.",
    "I58": "A failure of the search engine can't be provoked from outside.",
}
