"""What an engine is asked, engine-independent: tiers of clauses over finished terms.

Both engines run the same plan, so the rules of matching stand here once for production, and once more, independently,
in the reference backend.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

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


# The categories that each word means.
Slugs = Mapping[str, tuple[str, ...]]


def find_plan(query: QueryForms, slugs: Slugs, filters: tuple[Clause, ...]) -> Plan:
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
        named: tuple[Clause, ...] = tuple(AnyOf(_name_evidence(word)) for word in words)
        known: tuple[Clause, ...] = tuple(word_evidence(word, slugs[word]) for word in words)
        tiers += [
            (FindTier.WORDS, AllOf(tuple(Prefix("words", word) for word in words))),
            (FindTier.INFIX, AllOf(named)),
        ]
        if len(words) > 1:
            tiers += [
                (FindTier.LABELS, _with_labels(words, named, (*named, *_two_categories(words, slugs)))),
                (FindTier.CATEGORY, AnyOf((AllOf(known), _with_labels(words, known, known)))),
            ]
        else:
            tiers.append((FindTier.CATEGORY, AllOf(known)))
    return Plan("shops", tuple(tiers), filters)


def whole_query_match(query: QueryForms, slugs: Slugs) -> Clause:
    """Whether a shop matches the query at all, whatever its tier (M3)."""
    return AnyOf(tuple(clause for _, clause in find_plan(query, slugs, ()).tiers))


def word_evidence(word: str, slugs: Sequence[str], *, label: bool = False) -> Clause:
    """Any evidence of one word on a shop: (a) to (d) of M3.

    Args:
        word: folded.
        slugs: the categories that it means.
        label: whether (e) counts too, with or without another word.
    """
    category = (Exact("categories", tuple(slugs)),) if slugs else ()
    return AnyOf((*_name_evidence(word), *category, *((_label(word),) if label else ())))


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


def _with_labels(words: Sequence[str], evidence: Sequence[Clause], needed: tuple[Clause, ...]) -> Clause:
    """Every word has its evidence or is a label of the domain, one of them at least (M3 e).

    Args:
        words: distinct.
        evidence: of each word.
        needed: clauses of which one must hold, so that every label has another word next to it.
    """
    either = (AnyOf((clause, _label(word))) for word, clause in zip(words, evidence, strict=True))
    # The labels come first: where an index knows none of them, nothing else is looked up.
    return AllOf((AnyOf(tuple(map(_label, words))), *either, AnyOf(needed)))


def _two_categories(words: Sequence[str], slugs: Slugs) -> Iterator[Clause]:
    """Clauses of which one holds where two of the words mean categories of the shop."""
    meant = [slugs[word] for word in words if slugs[word]]
    for place, last in enumerate(meant[1:], 1):
        others = tuple(dict.fromkeys(chain.from_iterable(meant[:place])))
        yield AllOf((Exact("categories", others), Exact("categories", last)))


def _label(word: str) -> Clause:
    return Exact("labels", (word,))


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
