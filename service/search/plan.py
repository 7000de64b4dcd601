"""Plans: engine-independent searches, as tiers of clauses over the stored terms of documents (X4).

Both engines run the same plans, so the rules of matching are here for production; the reference backend implements them
again, independently.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from index_mappings.documents import ANY_MARKET
from index_mappings.forms import QueryForms
from index_mappings.ngrams import is_part_evidence
from index_mappings.tiers import FindTier

# Not frozen: a search makes some twenty clauses, and a frozen dataclass takes three times as long to construct.


@dataclass(slots=True, unsafe_hash=True)
class Exact:
    """The field contains one of the texts."""

    field: str
    texts: tuple[str, ...]


@dataclass(slots=True, unsafe_hash=True)
class Prefix:
    """A text of the field begins with this text."""

    field: str
    text: str


@dataclass(slots=True, unsafe_hash=True)
class Infix:
    """A text of the field contains this text."""

    field: str
    text: str


@dataclass(slots=True, unsafe_hash=True)
class Below:
    """The integer field is less than the bound."""

    field: str
    bound: int


@dataclass(slots=True, unsafe_hash=True)
class NoneOf:
    """No clause holds."""

    clauses: tuple["Clause", ...]


@dataclass(slots=True, unsafe_hash=True)
class AllOf:
    """Every clause holds; without clauses, every document matches."""

    clauses: tuple["Clause", ...]


@dataclass(slots=True, unsafe_hash=True)
class AnyOf:
    """At least one clause holds; without clauses, no document matches."""

    clauses: tuple["Clause", ...]


Clause = Exact | Prefix | Infix | Below | AllOf | AnyOf | NoneOf
MATCH_ALL = AllOf(())


def any_of(clauses: Sequence[Clause]) -> Clause:
    """The disjunction of clauses; a single clause is returned as it is."""
    return clauses[0] if len(clauses) == 1 else AnyOf(tuple(clauses))


def meets(texts: Mapping[str, Sequence[str]], clause: Clause) -> bool:
    """Whether a document meets a clause.

    Args:
        texts: of the document, by field.
        clause: without `Below`.

    Raises:
        KeyError: the clause has a field that is not among the texts.
        TypeError: the clause contains a `Below`.
    """
    match clause:
        case AllOf(parts):
            return all(meets(texts, part) for part in parts)
        case AnyOf(parts):
            return any(meets(texts, part) for part in parts)
        case NoneOf(parts):
            return not any(meets(texts, part) for part in parts)
        case Exact(field, values):
            return not set(values).isdisjoint(texts[field])
        case Prefix(field, start):
            return any(text.startswith(start) for text in texts[field])
        case Infix(field, part):
            return any(part in text for text in texts[field])
        case Below():
            raise TypeError("a bound cannot be evaluated on texts")


Tiers = tuple[tuple[int, Clause], ...]


@dataclass(slots=True, unsafe_hash=True)
class Plan:
    """A search, whose hits are ordered by tier, best first, then by the documents' rank.

    Attributes:
        kind: the index.
        tiers: pairs of tier and clause, best first; a document has the best tier whose clause it meets.
        filters: clauses that every hit meets.
        excluded: clauses that no hit meets.
        union: a clause equivalent to the disjunction of all tiers, where there is a shorter one.
    """

    kind: str
    tiers: Tiers
    filters: tuple[Clause, ...] = ()
    excluded: tuple[Clause, ...] = ()
    union: Clause | None = None

    @property
    def matching(self) -> Clause:
        """The clause that the documents of any tier meet."""
        return self.union or any_of([clause for _, clause in self.tiers])


# By word, the slugs of the categories that it means.
Slugs = Mapping[str, tuple[str, ...]]


def find_plan(query: QueryForms, slugs: Slugs, filters: tuple[Clause, ...]) -> Plan:
    """The plan of find_shop (M3, M4); tiers whose documents all have a better tier are omitted.

    Args:
        query: without the ignored words; blank browses.
        slugs: by word, the categories that it means.
        filters: country and category.
    """
    if not query.texts:
        return Plan("shops", ((FindTier.CATEGORY, MATCH_ALL),), filters)
    begins_key = _begins("keys", query)
    tiers: list[tuple[int, Clause]] = [
        (FindTier.EQUALS_FULL, Exact("full", query.texts)),
        (FindTier.BEGINS_FULL, _begins("full", query)),
        (FindTier.BEGINS_KEY, begins_key),
    ]
    by_words = _by_words(query.words, slugs)
    # Each full form is a key (X2), so the shops of the better tiers also meet `begins_key`.
    union = any_of([begins_key, *_widest(by_words)])
    return Plan("shops", (*tiers, *by_words), filters, union=union)


def _by_words(words: Sequence[str], slugs: Slugs) -> Tiers:
    if not words:
        return ()
    if len(words) == 1:
        return _one_word(words[0], slugs)
    # One word that is repeated is not the text of the query: no tier above holds what begins with it.
    return _several_words(tuple(dict.fromkeys(words)), slugs)


def _one_word(word: str, slugs: Slugs) -> Tiers:
    # Each word of a name or of a main label begins a key (X2), so shops with such a word have a better tier.
    tiers: list[tuple[int, Clause]] = []
    if is_part_evidence(word):
        tiers.append((FindTier.INFIX, Infix("infixes", word)))
    if slugs[word]:
        tiers.append((FindTier.CATEGORY, Exact("categories", slugs[word])))
    return tuple(tiers)


def _several_words(words: tuple[str, ...], slugs: Slugs) -> Tiers:
    named: tuple[Clause, ...] = tuple(any_of(_name_evidence(word)) for word in words)
    tiers: list[tuple[int, Clause]] = [(FindTier.WORDS, AllOf(tuple(Prefix("words", word) for word in words)))]
    if any(isinstance(clause, AnyOf) for clause in named):
        tiers.append((FindTier.INFIX, AllOf(named)))
    if len(words) > 1:  # one word that is a label and has the required evidence is in a better tier
        tiers.append((FindTier.LABELS, _with_labels(words, named, (*named, *_two_categories(words, slugs)))))
    if any(slugs[word] for word in words):
        known = tuple(word_evidence(word, slugs[word]) for word in words)
        tiers.append((FindTier.CATEGORY, AnyOf((AllOf(known), _with_labels(words, known, known)))))
    return tuple(tiers)


def _widest(tiers: Tiers) -> Iterator[Clause]:
    """The clauses of the tiers by words, without those that imply another one of them."""
    clauses = dict(tiers)
    # For several words, the category tier's clause follows from each of the others.
    if FindTier.CATEGORY in clauses and FindTier.WORDS in clauses:
        yield clauses[FindTier.CATEGORY]
        return
    if FindTier.INFIX in clauses:
        clauses.pop(FindTier.WORDS, None)
    yield from clauses.values()


def whole_query_match(query: QueryForms, slugs: Slugs) -> Clause:
    """The clause that a shop meets if it matches the query in any tier (M3)."""
    return find_plan(query, slugs, ()).matching


def word_evidence(word: str, slugs: Sequence[str], *, label: bool = False) -> Clause:
    """The clause that a shop meets if it has any evidence of a word: (a) to (d) of M3.

    Args:
        word: folded.
        slugs: the categories that it means.
        label: whether (e) counts too, whatever evidence the other words have.
    """
    category = (Exact("categories", tuple(slugs)),) if slugs else ()
    return AnyOf((*_name_evidence(word), *category, *((_label(word),) if label else ())))


def exclusive(buckets: Sequence[Clause]) -> tuple[Clause, ...]:
    """The clauses of disjoint buckets: each document stays in the first bucket that it meets."""
    return tuple(
        AllOf((clause, NoneOf(tuple(buckets[:index])))) if index else clause for index, clause in enumerate(buckets)
    )


def filter_clauses(country: str | None, category: str | None) -> tuple[Clause, ...]:
    """The filters by country (shops of unknown countries pass: M7) and by category."""
    clauses: list[Clause] = []
    if country is not None:
        clauses.append(Exact("markets", (country, ANY_MARKET)))
    if category is not None:
        clauses.append(Exact("categories", (category,)))
    return tuple(clauses)


def _with_labels(words: Sequence[str], evidence: Sequence[Clause], required: tuple[Clause, ...]) -> Clause:
    """The clause that every word has evidence or is a label of the domain, and at least one is a label (M3 e).

    Args:
        words: distinct.
        evidence: the evidence clause of each word.
        required: clauses of which at least one must hold, so that a label never counts alone.
    """
    either = (AnyOf((clause, _label(word))) for word, clause in zip(words, evidence, strict=True))
    # The labels come first: if the index contains none of them, the engine evaluates nothing else.
    return AllOf((AnyOf(tuple(map(_label, words))), *either, AnyOf(required)))


def _two_categories(words: Sequence[str], slugs: Slugs) -> Iterator[Clause]:
    """Clauses of which at least one holds if two of the words mean categories of the shop."""
    meant = [slugs[word] for word in words if slugs[word]]
    for index, last in enumerate(meant[1:], 1):
        others = tuple(dict.fromkeys(chain.from_iterable(meant[:index])))
        yield AllOf((Exact("categories", others), Exact("categories", last)))


def _label(word: str) -> Clause:
    return Exact("labels", (word,))


def _begins(field: str, query: QueryForms) -> Clause:
    return any_of([Prefix(field, text) for text in query.texts])


def _name_evidence(word: str) -> tuple[Clause, ...]:
    # A word that equals a shop's word is also a prefix of it: (b) includes (a).
    if is_part_evidence(word):
        return (Prefix("words", word), Infix("infixes", word))
    return (Prefix("words", word),)
