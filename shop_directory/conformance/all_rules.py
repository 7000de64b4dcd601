"""All rules in the order of the interface, and those of its sentences that cannot be checked from outside."""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from shop_directory.conformance import rules
from shop_directory.conformance.rule import Rule

_ID: Final = re.compile(r"([A-Z])(\d+)(\.\w+)?")
# The interface first, then the decisions in their order.
_CHAPTERS: Final = "IVRXMAEQGCO"


def _sort_key(rule: Rule) -> tuple[int, int, str]:
    match _ID.fullmatch(rule.id):
        case re.Match() as found:
            return _CHAPTERS.index(found[1]), int(found[2]), found[3] or ""
    raise ValueError(f"{rule.id} is not the id of a rule")


def _all_rules() -> Iterator[Rule]:
    for module in iter_modules(rules.__path__, f"{rules.__name__}."):
        yield from (value for value in vars(import_module(module.name)).values() if isinstance(value, Rule))


RULES: Final[tuple[Rule, ...]] = tuple(sorted(_all_rules(), key=_sort_key))

# Sentences of the interface that no request to a URL can check, with the reason.
UNSEEN: Final[Mapping[str, str]] = {
    "I4": "MCP on stdio belongs to a process on the operator's machine; no address leads to it.",
    "I58": "A failure of the search engine cannot be caused from outside.",
}
