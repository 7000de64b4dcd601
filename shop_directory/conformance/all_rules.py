"""All rules, in the order of the interface, and those of its sentences that can't be seen from outside.

A module of rules ends with its `RULES`; a new module is one line here.
"""

import re
from collections.abc import Mapping
from typing import Final

from shop_directory.conformance.rule import Rule
from shop_directory.conformance.rules import (
    calls,
    coupons,
    credentials,
    decided,
    errors,
    finding,
    headers,
    hidden,
    mcp,
    offers,
    operations,
    reports,
    shipping,
    shops,
    suggest,
    trust,
)

_ID: Final = re.compile(r"([A-Z])(\d+)(\.\w+)?")
# The interface first, then the decisions in their order.
_CHAPTERS: Final = "IVRXMAEQGCO"


def _place(rule: Rule) -> tuple[int, int, str]:
    match _ID.fullmatch(rule.id):
        case re.Match() as found:
            return _CHAPTERS.index(found[1]), int(found[2]), found[3] or ""
    raise ValueError(f"{rule.id} is no id of a rule")


_MODULES: Final = (
    calls,
    shops,
    finding,
    coupons,
    shipping,
    trust,
    offers,
    reports,
    decided,
    mcp,
    suggest,
    operations,
    credentials,
    errors,
    headers,
    hidden,
)
RULES: Final[tuple[Rule, ...]] = tuple(
    sorted((value for module in _MODULES for value in vars(module).values() if isinstance(value, Rule)), key=_place)
)

# Sentences of the interface that no request to a URL can show, with the reason.
UNSEEN: Final[Mapping[str, str]] = {
    "I4": "MCP on stdio belongs to a process on the operator's machine; no address leads to it.",
    "I58": "A failure of the search engine can't be provoked from outside.",
}
