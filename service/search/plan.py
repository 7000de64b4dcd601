"""What an engine is asked, engine-independent: tiers of clauses over finished terms.

Both engines run the same plan, so the rules of matching stand here once for production, and once more, independently,
in the reference backend.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from index_mappings.documents import ANY_MARKET, WORLDWIDE
from index_mappings.forms import QueryForms
from index_mappings.text import is_ideographic
from index_mappings.tiers import (
    HALF_MIN,
    NAMED_PART,
    ONE_TYPO_MIN,
    OVERLAP_WORDS,
    TWO_TYPOS_MIN,
    FindTier,
    SuggestTier,
    is_part_evidence,
)
from service.search.clauses import EVERYTHING, AllOf, AnyOf, Clause, Exact, Infix, NoneOf, Prefix, Typo

Tiers = tuple[tuple[int, Clause], ...]

# How many errors a tier allows, and from how many characters on.
_TYPOS: Final[dict[SuggestTier, tuple[int, int]]] = {
    SuggestTier.ONE_TYPO: (1, ONE_TYPO_MIN),
    SuggestTier.TWO_TYPOS: (2, TWO_TYPOS_MIN),
}


@dataclass(slots=True, unsafe_hash=True)
class Plan:
    """A search: hits come by tier, best first, then by the documents' rank.

    Attributes:
        kind: the index.
        tiers: tier and clause, best first; a document has the best tier whose clause it meets.
        filters: what every hit must meet.
        excluded: what no hit may meet.
        later: worse tiers, which are only made where those before them have too few hits.
    """

    kind: str
    tiers: Tiers
    filters: tuple[Clause, ...] = ()
    excluded: tuple[Clause, ...] = ()
    later: Callable[[], Tiers] | None = None


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


def suggest_plan(
    query: QueryForms,
    slugs: dict[str, tuple[str, ...]],
    country: str | None,
    later: Callable[[], Tiers] | None = None,
) -> Plan:
    """The tiers of /suggest without typing errors and loose words (8 to 4 of M9), and those that come later."""
    filters = filter_clauses(country, None)
    if not query.texts:
        return Plan("shops", ((SuggestTier.HALF_OF_WORDS, EVERYTHING),), filters)
    name: Clause = AnyOf((*_begun_names(query), Exact("full", query.texts)))
    form: Clause = AnyOf((_begins("full", query), Exact("keys", query.texts)))
    if country is not None:
        # Who is not known to sell there is a tier worse: where a form is begun, so is a key.
        known = Exact("markets", (country, WORLDWIDE))
        name, form = AllOf((name, known)), AnyOf((AllOf((form, known)), name))
    tiers = (
        (SuggestTier.EQUALS_NAME, Exact("names", query.texts)),
        (SuggestTier.BEGINS_NAME, name),
        (SuggestTier.BEGINS_FORM, form),
        *word_tiers(query, slugs),
    )
    return Plan("shops", tiers, filters, later=later)


def word_tiers(query: QueryForms, slugs: dict[str, tuple[str, ...]]) -> Tiers:
    """The tiers of /suggest in which a key is begun, or words stand in any order or say a category (5 and 4 of M9)."""
    own = [_begins("keys", query)]
    if len(query.words) < 2:  # noqa: PLR2004 - two or more
        return ((SuggestTier.WORDS, own[0]),)
    by_category = dict(category_tiers(query, slugs))
    own.append(AllOf(tuple(dict.fromkeys(_own_words(query.words)))))
    if (named := by_category.pop(SuggestTier.WORDS, None)) is not None:
        own.append(named)
    return ((SuggestTier.WORDS, AnyOf(tuple(own))), *by_category.items())


def category_tiers(query: QueryForms, slugs: dict[str, tuple[str, ...]]) -> Tiers:
    """What of these tiers is met by categories only; of a query of two or more words."""
    tiers: list[tuple[int, Clause]] = []
    if named := _whole_names_before_categories(query.words, slugs):
        tiers.append((SuggestTier.WORDS, _any_of(named)))
    if any(slugs[word] for word in query.words):
        own = _own_words(query.words)
        either = [AnyOf((clause, *_carried(slugs[word]))) for clause, word in zip(own, query.words, strict=True)]
        tiers.append((SuggestTier.WORDS_AND_CATEGORY, AllOf((AnyOf(own), *dict.fromkeys(either)))))
    return tuple(tiers)


def loose_plan(query: QueryForms, filters: tuple[Clause, ...], excluded: tuple[Clause, ...]) -> Plan:
    """The tiers of /suggest that run only while too few shops are found (3 to 0 of M9)."""
    return Plan("shops", loose_tiers(query), filters, excluded)


def loose_tiers(query: QueryForms) -> Tiers:
    """Those tiers themselves."""
    return (*_typo_tier(query, SuggestTier.ONE_TYPO), *_part_tier(query), *_shared_words_tiers(query))


def last_plan(query: QueryForms, filters: tuple[Clause, ...]) -> Plan | None:
    """The tiers of /suggest where 8 to 3 have no shop (2 to 0 of M9); None where q is too short for two errors."""
    if not (two := _typo_tier(query, SuggestTier.TWO_TYPOS)):
        return None
    either = _any_of([clause for _, clause in (*two, *_part_tier(query))])
    return Plan("shops", ((SuggestTier.TWO_TYPOS, either), *_shared_words_tiers(query)), filters)


def typo_plan(query: QueryForms, filters: tuple[Clause, ...], excluded: tuple[Clause, ...]) -> Plan:
    """The tiers that find what was meant when something was misspelt (3 and 2 of M9)."""
    tiers = [*_typo_tier(query, SuggestTier.ONE_TYPO), *_typo_tier(query, SuggestTier.TWO_TYPOS)]
    return Plan("shops", tuple(tiers), filters, excluded)


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


def _begun_names(query: QueryForms) -> Iterator[Clause]:
    """A name that is begun, by half if that is long enough to tell."""
    for text in query.texts:
        yield Prefix("leading", text) if len(text) < HALF_MIN else Exact("begun", (text,))


def _begins(field: str, query: QueryForms) -> Clause:
    return _any_of([Prefix(field, text) for text in query.texts])


def _any_of(clauses: Sequence[Clause]) -> Clause:
    """Any of some clauses; most key presses have one text, and one clause stands for itself."""
    return clauses[0] if len(clauses) == 1 else AnyOf(tuple(clauses))


def _name_evidence(word: str) -> tuple[Clause, ...]:
    # A word that equals a shop's word also begins it: (a) is within (b).
    if is_part_evidence(word, ideographic=is_ideographic(word)):
        return (Prefix("words", word), Infix("infixes", word))
    return (Prefix("words", word),)


def _carried(slugs: Sequence[str]) -> tuple[Clause, ...]:
    return (Exact("categories", tuple(slugs)),) if slugs else ()


def _typo_tier(query: QueryForms, tier: SuggestTier) -> list[tuple[int, Clause]]:
    distance, shortest = _TYPOS[tier]
    texts = [text for text in query.texts if len(text) >= shortest]
    if not texts or not query.words:
        return []
    return [(tier, _any_of([Typo("keys", text, distance) for text in texts]))]


def _part_tier(query: QueryForms) -> Tiers:
    """The tier of whole names with something beside them (2)."""
    named = _parts_that_may_be_names(query.words)
    return ((SuggestTier.PART_IS_NAME, Exact("full", named)),) if named else ()


def _shared_words_tiers(query: QueryForms) -> Tiers:
    """The tiers of loosely shared words (1 and 0 of M9)."""
    if len(query.words) < 2:  # noqa: PLR2004 - two or more
        # One word that equals a word of a shop begins a key of it, and one that is a whole name equals a full form:
        # better tiers have them all.
        return ()
    letters = sum(len(word) for word in query.words)
    counted = query.words[:OVERLAP_WORDS]
    weights = {word: len(word) * counted.count(word) for word in counted}
    most = AnyOf(_word_sets(weights, 3 * letters / 4))
    half = AnyOf((*_word_sets(weights, letters / 2), Exact("full", tuple(weights))))
    return ((SuggestTier.MOST_OF_WORDS, most), (SuggestTier.HALF_OF_WORDS, half))


def _own_words(words: Sequence[str]) -> tuple[Clause, ...]:
    """All words are a shop's own, and the last one may be the beginning of one."""
    return (*(Exact("words", (word,)) for word in words[:-1]), Prefix("words", words[-1]))


def _whole_names_before_categories(words: tuple[str, ...], slugs: dict[str, tuple[str, ...]]) -> tuple[Clause, ...]:
    """The first words are a whole name, and each of the others says a category of the shop."""
    clauses: list[Clause] = []
    for end in range(len(words) - 1, 0, -1):
        if not slugs[words[end]]:
            break
        if end <= OVERLAP_WORDS:
            carried = (Exact("categories", slugs[word]) for word in dict.fromkeys(words[end:]))
            clauses.append(AllOf((Exact("full", _spaced_and_joined(words[:end])), *carried)))
    return tuple(clauses)


def _parts_that_may_be_names(words: tuple[str, ...]) -> tuple[str, ...]:
    """The first words of several, and the last ones, that hold enough letters to be a name with something beside it."""
    letters = sum(map(len, words))
    ends = range(1, min(len(words) - 1, OVERLAP_WORDS) + 1)
    parts = [words[:end] for end in ends]
    if len(words) <= OVERLAP_WORDS:
        parts += [words[end:] for end in ends]
    named = (part for part in parts if NAMED_PART * sum(map(len, part)) >= letters)
    return tuple(dict.fromkeys(text for part in named for text in _spaced_and_joined(part)))


def _spaced_and_joined(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((" ".join(words), "".join(words))))


def _word_sets(weights: dict[str, int], enough: float) -> tuple[Clause, ...]:
    """The smallest sets of words that together hold enough letters, each as one clause."""
    found: list[frozenset[str]] = []
    for size in range(1, len(weights) + 1):
        for words in combinations(weights, size):
            chosen = frozenset(words)
            if sum(weights[word] for word in words) >= enough and not any(smaller <= chosen for smaller in found):
                found.append(chosen)
    return tuple(_all_words(word for word in weights if word in chosen) for chosen in found)


def _all_words(words: Iterable[str]) -> Clause:
    return AllOf(tuple(Exact("words", (word,)) for word in words))
