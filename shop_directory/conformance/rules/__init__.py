"""The rules that `shop-directory check` asks, in the order of the interface, and what no request can check."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from shop_directory.conformance.rule import Rule

# The interface first, then the decisions in their order.
_CHAPTERS: Final = "IVRXMAFEQGCO"


def _sort_key(rule: Rule) -> tuple[int, int, str]:
    number, _, part = rule.id[1:].partition(".")
    return _CHAPTERS.index(rule.id[0]), int(number), part


def _all_rules() -> Iterator[Rule]:
    for found in iter_modules(__path__, f"{__name__}."):
        names = vars(import_module(found.name))
        yield from (value for value in names.values() if isinstance(value, Rule))
        yield from names.get("ROWS", ())


RULES: Final[tuple[Rule, ...]] = tuple(sorted(_all_rules(), key=_sort_key))

# Sentences of the interface that no request to a URL can check, with the reason.
UNSEEN: Final[Mapping[str, str]] = {
    "I4": "MCP on stdio belongs to a process on the operator's machine; no address leads to it.",
    "I58": "A failure of the search engine cannot be caused from outside.",
}
