"""Which clauses say nothing new beside others, so that an engine is not asked the same thing twice.

A tier whose shops all have a better one is empty (M4), and a union is its widest clauses.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from service.search.clauses import AllOf, AnyOf, Clause, Exact, Prefix
from service.search.plan import Plan

# Each word of a name or of a main label begins a key (X2), so what begins a word begins a key.
_ALSO_BEGINS: Final = {"words": "keys"}


def narrowed(plan: Plan) -> Plan:
    """The plan without the tiers that cannot hold a document, as better ones hold all that meet them."""
    kept: list[tuple[int, Clause]] = []
    for tier, clause in plan.tiers:
        if not implies(clause, AnyOf(tuple(better for _, better in kept))):
            kept.append((tier, clause))
    return replace(plan, tiers=tuple(kept))


def union(clauses: Sequence[Clause]) -> AnyOf:
    """What meets at least one of the clauses, said with as few of them as possible."""
    widest = list(clauses)
    for clause in clauses:
        others = widest.copy()
        others.remove(clause)
        if implies(clause, AnyOf(tuple(others))):
            widest = others
    return AnyOf(tuple(widest))


def implies(narrow: Clause, wide: Clause) -> bool:
    """Whether it is plain from the clauses alone that every document of one meets the other.

    Returns:
        True only if it is so; False also when it cannot be told.
    """
    if narrow == wide:
        return True
    match narrow, wide:
        case AnyOf(parts), _:
            return all(implies(part, wide) for part in parts)
        case _, AllOf(parts):
            return all(implies(narrow, part) for part in parts)
        case AllOf(parts), AnyOf(others):
            return any(implies(narrow, other) for other in others) or any(implies(part, wide) for part in parts)
        case _, AnyOf(others):
            return any(implies(narrow, other) for other in others)
        case AllOf(parts), _:
            return any(implies(part, wide) for part in parts)
    return _look_up_implies(narrow, wide)


def _look_up_implies(narrow: Clause, wide: Clause) -> bool:
    match narrow, wide:
        case Exact(field, texts), Exact(other, known):
            return field == other and set(texts) <= set(known)
        case Exact(field, texts), Prefix(other, start):
            return _within(field, other) and all(text.startswith(start) for text in texts)
        case Prefix(field, text), Prefix(other, start):
            return _within(field, other) and text.startswith(start)
    return False


def _within(field: str, other: str) -> bool:
    """Whether what a text of the field begins with is always the beginning of one of the other, too."""
    return other in {field, _ALSO_BEGINS.get(field)}
