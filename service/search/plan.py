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
from service.search.clauses import EVERYTHING, AllOf, AnyOf, Clause, Exact, Infix, NoneOf, Prefix, any_of

Tiers = tuple[tuple[int, Clause], ...]


@dataclass(slots=True, unsafe_hash=True)
class Plan:
    """A search: hits come by tier, best first, then by the documents' rank.

    Attributes:
        kind: the index.
        tiers: tier and clause, best first; a document has the best tier whose clause it meets.
        filters: what every hit must meet.
        excluded: what no hit may meet.
        whole: what exactly the documents of all tiers meet, where one clause says it shorter.
    """

    kind: str
    tiers: Tiers
    filters: tuple[Clause, ...] = ()
    excluded: tuple[Clause, ...] = ()
    whole: Clause | None = None

    @property
    def matching(self) -> Clause:
        """What a document of any tier meets."""
        return self.whole or any_of([clause for _, clause in self.tiers])


# The categories that each word means.
Slugs = Mapping[str, tuple[str, ...]]


def find_plan(query: QueryForms, slugs: Slugs, filters: tuple[Clause, ...]) -> Plan:
    """The plan of find_shop (M3, M4), without tiers that cannot hold a shop, as better ones hold all that meet them.

    Args:
        query: the kept query; blank browses.
        slugs: the categories that each word means.
        filters: country and category.
    """
    if not query.texts:
        return Plan("shops", ((FindTier.CATEGORY, EVERYTHING),), filters)
    begins_key = _begins("keys", query)
    tiers: list[tuple[int, Clause]] = [
        (FindTier.EQUALS_FULL, Exact("full", query.texts)),
        (FindTier.BEGINS_FULL, _begins("full", query)),
        (FindTier.BEGINS_KEY, begins_key),
    ]
    by_words = _by_words(query.words, slugs)
    # Each full form is a key (X2), so what begins a key holds all tiers above.
    whole = any_of([begins_key, *_widest(by_words)])
    return Plan("shops", (*tiers, *by_words), filters, whole=whole)


def _by_words(words: Sequence[str], slugs: Slugs) -> Tiers:
    if not words:
        return ()
    if len(words) == 1:
        return _one_word(words[0], slugs)
    # One word that is repeated is not the text of the query: no tier above holds what begins with it.
    return _several_words(tuple(dict.fromkeys(words)), slugs)


def _one_word(word: str, slugs: Slugs) -> Tiers:
    # Each word of a name or of a main label begins a key (X2), so what begins a word has a better tier.
    tiers: list[tuple[int, Clause]] = []
    if len(named := _name_evidence(word)) > 1:
        tiers.append((FindTier.INFIX, AnyOf(named)))
    if slugs[word]:
        tiers.append((FindTier.CATEGORY, Exact("categories", slugs[word])))
    return tuple(tiers)


def _several_words(words: tuple[str, ...], slugs: Slugs) -> Tiers:
    named: tuple[Clause, ...] = tuple(any_of(_name_evidence(word)) for word in words)
    tiers: list[tuple[int, Clause]] = [(FindTier.WORDS, AllOf(tuple(Prefix("words", word) for word in words)))]
    if any(isinstance(clause, AnyOf) for clause in named):
        tiers.append((FindTier.INFIX, AllOf(named)))
    tiers.append((FindTier.LABELS, _with_labels(words, named, (*named, *_two_categories(words, slugs)))))
    if any(slugs[word] for word in words):
        known = tuple(word_evidence(word, slugs[word]) for word in words)
        tiers.append((FindTier.CATEGORY, AnyOf((AllOf(known), _with_labels(words, known, known)))))
    return tuple(tiers)


def _widest(tiers: Tiers) -> Iterator[Clause]:
    """The clauses of tiers of words that no other one holds: of several words a category's holds all others."""
    clauses = dict(tiers)
    if FindTier.CATEGORY in clauses and FindTier.WORDS in clauses:
        yield clauses[FindTier.CATEGORY]
        return
    if FindTier.INFIX in clauses:
        clauses.pop(FindTier.WORDS, None)
    yield from clauses.values()


def whole_query_match(query: QueryForms, slugs: Slugs) -> Clause:
    """Whether a shop matches the query at all, whatever its tier (M3)."""
    return find_plan(query, slugs, ()).matching


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
    return any_of([Prefix(field, text) for text in query.texts])


def _name_evidence(word: str) -> tuple[Clause, ...]:
    # A word that equals a shop's word also begins it: (a) is within (b).
    if is_part_evidence(word, ideographic=is_ideographic(word)):
        return (Prefix("words", word), Infix("infixes", word))
    return (Prefix("words", word),)
