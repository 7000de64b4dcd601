"""What an engine is asked, engine-independent: tiers of clauses over finished terms.

Both engines run the same plan, so the rules of matching stand here once for production, and once more, independently,
in the reference backend.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from index_mappings.documents import ANY_MARKET
from index_mappings.forms import QueryForms
from index_mappings.text import is_ideographic
from index_mappings.tiers import FindTier, is_part_evidence
from service.search.clauses import EVERYTHING, AllOf, AnyOf, Clause, Exact, Infix, NoneOf, Prefix

Tiers = tuple[tuple[int, Clause], ...]


@dataclass(slots=True, unsafe_hash=True)
class Plan:
    """A search: hits come by tier, best first, then by the documents' rank.

    Attributes:
        kind: the index.
        tiers: tier and clause, best first; a document has the best tier whose clause it meets.
        filters: what every hit must meet.
        excluded: what no hit may meet.
    """

    kind: str
    tiers: Tiers
    filters: tuple[Clause, ...] = ()
    excluded: tuple[Clause, ...] = ()


def find_plan(query: QueryForms, slugs: dict[str, tuple[str, ...]], filters: tuple[Clause, ...]) -> Plan:
    """The plan of find_shop (M3, M4).

    Args:
        query: the kept query; blank browses.
        slugs: the categories that each word means.
        filters: country and category.
    """
    if not query.texts:
        return Plan("shops", ((FindTier.CATEGORY, EVERYTHING),), filters)
    tiers: list[tuple[int, Clause]] = [
        (FindTier.EQUALS_FULL, Exact("full", query.texts)),
        (FindTier.BEGINS_FULL, _begins("full", query)),
        (FindTier.BEGINS_KEY, _begins("keys", query)),
    ]
    if query.words:
        words = tuple(dict.fromkeys(query.words))
        tiers += [
            (FindTier.WORDS, AllOf(tuple(Prefix("words", word) for word in words))),
            (FindTier.INFIX, AllOf(tuple(AnyOf(_name_evidence(word)) for word in words))),
            (FindTier.CATEGORY, AllOf(tuple(word_evidence(word, slugs[word]) for word in words))),
        ]
    return Plan("shops", tuple(tiers), filters)


def whole_query_match(query: QueryForms, slugs: dict[str, tuple[str, ...]]) -> Clause:
    """Whether a shop matches the query at all, whatever its tier (M3)."""
    return AnyOf(tuple(clause for _, clause in find_plan(query, slugs, ()).tiers))


def word_evidence(word: str, slugs: Sequence[str]) -> Clause:
    """Any evidence of one word on a shop: (a) to (d) of M3."""
    return AnyOf((*_name_evidence(word), *((Exact("categories", tuple(slugs)),) if slugs else ())))


def exclusive(sorts: Sequence[Clause]) -> tuple[Clause, ...]:
    """The sorts so that each document is of one only: the first that it meets."""
    return tuple(
        AllOf((clause, NoneOf(tuple(sorts[:place])))) if place else clause for place, clause in enumerate(sorts)
    )


def filter_clauses(country: str | None, category: str | None) -> tuple[Clause, ...]:
    """Country (unknown is not a no: M7) and category."""
    clauses: list[Clause] = []
    if country is not None:
        clauses.append(Exact("markets", (country, ANY_MARKET)))
    if category is not None:
        clauses.append(Exact("categories", (category,)))
    return tuple(clauses)


def _begins(field: str, query: QueryForms) -> Clause:
    return _any_of([Prefix(field, text) for text in query.texts])


def _any_of(clauses: Sequence[Clause]) -> Clause:
    """Any of some clauses; most queries have one text, and one clause stands for itself."""
    return clauses[0] if len(clauses) == 1 else AnyOf(tuple(clauses))


def _name_evidence(word: str) -> tuple[Clause, ...]:
    # A word that equals a shop's word also begins it: (a) is within (b).
    if is_part_evidence(word, ideographic=is_ideographic(word)):
        return (Prefix("words", word), Infix("infixes", word))
    return (Prefix("words", word),)
