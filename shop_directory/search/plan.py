"""Plans: the rules of matching as tiers of clauses over stored terms (X4), which both engines run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from typing import Final

from index_mappings.countries import OTHER_COUNTRIES, VERDICTS, Verdict
from index_mappings.documents import ANY_MARKET, WORLDWIDE
from index_mappings.ngrams import is_part_evidence
from index_mappings.tiers import FindTier
from index_mappings.usable_codes import (
    ANY_CHANNEL,
    ANY_COUNTRY,
    ANY_STATUS,
    ANYWHERE,
    APPLIED,
    OTHERS,
    SOMEWHERE,
    moment_terms,
    named_term,
)
from shop_directory.search.protocol import CouponQuery, FindQuery

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


@dataclass(slots=True)
class _Compound:
    """A clause of clauses. Its hash is computed once: it is the key of a cached query, and so is each that has it."""

    clauses: tuple["Clause", ...]
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.clauses)
        return self._hash


@dataclass(slots=True, eq=False)
class NoneOf(_Compound):
    """No clause holds."""


@dataclass(slots=True, eq=False)
class AllOf(_Compound):
    """Every clause holds; without clauses, every document matches."""


@dataclass(slots=True, eq=False)
class AnyOf(_Compound):
    """At least one clause holds; without clauses, no document matches."""


Clause = Exact | Prefix | Infix | Below | AllOf | AnyOf | NoneOf
MATCH_ALL = AllOf(())
NOTHING = AnyOf(())


def any_of(clauses: Sequence[Clause]) -> Clause:
    """The disjunction of clauses; a single clause is returned as it is."""
    return clauses[0] if len(clauses) == 1 else AnyOf(tuple(clauses))


Tiers = tuple[tuple[int, Clause], ...]
# Is added to the tiers of the hits that come before all others; more than any tier.
LEADING: Final = 100


@dataclass(slots=True, unsafe_hash=True)
class Plan:
    """A search, whose hits are ordered by tier, best first, then by the documents' rank.

    `tiers` are pairs of tier and clause, best first; a hit has the best tier whose clause it meets, and meets all
    `filters` and none of `excluded`. `widest` together equal all tiers; for texts, the first finds the shops of which
    a key begins so. Hits that meet `preferred` come first in their tier, those that meet `leading` before all others.
    """

    kind: str
    tiers: Tiers
    filters: tuple[Clause, ...] = ()
    excluded: tuple[Clause, ...] = ()
    widest: tuple[Clause, ...] = ()
    preferred: Clause | None = None
    leading: Clause | None = None

    @property
    def matching(self) -> Clause:
        """The clause that the documents of any tier meet."""
        return any_of(self.widest or [clause for _, clause in self.tiers])

    @property
    def steps(self) -> Tiers:
        """Pairs of level and clause, best first: a document has the best level whose clause it meets.

        The level of a hit is twice its tier, one more if it is preferred, and twice LEADING more if it is leading.
        """
        steps = tuple([(2 * tier, clause) for tier, clause in self.tiers])
        if self.preferred is not None:
            pairs = (((level + 1, AllOf((self.preferred, clause))), (level, clause)) for level, clause in steps)
            steps = tuple(chain.from_iterable(pairs))
        if self.leading is not None:
            leading = tuple((level + 2 * LEADING, AllOf((self.leading, clause))) for level, clause in steps)
            steps = (*leading, *steps)
        return steps


@dataclass(frozen=True, slots=True)
class Filters:
    """What the shops of a search must be: sold in a country (shops of unknown countries pass: M7), of a category.

    Of several countries or categories, any one is enough; without any, every shop passes (F6). With `ships_to` shops
    also have one of the verdicts on that country (F1), with `coupons` a coupon of that query (F3): one that worked in a
    real checkout with `verified_code`, and one that is good in `ships_to`, else in any of the countries, if given.
    """

    countries: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    ships_to: str | None = None
    verdicts: tuple[Verdict, ...] = ("yes",)
    coupons: CouponQuery | None = None
    verified_code: bool = False

    @classmethod
    def of(cls, query: FindQuery) -> "Filters":
        """The filters of a query."""
        verdicts: tuple[Verdict, ...] = ("yes", "unknown") if query.include_unsettled else ("yes",)
        return cls(query.countries, query.categories, query.ships_to, verdicts, query.coupons, query.verified_code)

    def clauses(self) -> tuple[Clause, ...]:
        """The filters."""
        clauses: list[Clause] = []
        if self.countries:
            clauses.append(Exact("markets", (*self.countries, ANY_MARKET)))
        if self.categories:
            clauses.append(Exact("categories", self.categories))
        return (*clauses, *self.by_facts())

    def by_facts(self) -> tuple[Clause, ...]:
        """The filters that the typeahead has not."""
        clauses: list[Clause] = []
        if self.ships_to is not None:
            clauses.append(_has_verdict(self.ships_to, self.verdicts))
        if self.coupons is not None:
            clauses.append(self._has_code(self.coupons))
        return tuple(clauses)

    def _has_code(self, query: CouponQuery) -> Clause:
        """The clause of shops with a coupon that counts; one blocked somewhere does for known other countries (F3)."""
        channels = (ANY_CHANNEL, query.channel)
        asked = (self.ships_to,) if self.ships_to is not None else self.countries
        places = (ANYWHERE, *(asked or (SOMEWHERE,)))

        def now(some: tuple[str, ...], callers: tuple[str, ...]) -> Clause:
            status = APPLIED if self.verified_code else ANY_STATUS
            return Exact("codes", moment_terms(some, callers, places, status, query.now_us))

        if query.country is None:
            return now(channels, (ANY_COUNTRY,))
        clauses = [now(channels, (ANY_COUNTRY, query.country))]
        for channel in channels:
            is_named = Exact("codes", (named_term(channel, query.country),))
            clauses.append(AllOf((now((channel,), (OTHERS,)), NoneOf((is_named,)))))
        return AnyOf(tuple(clauses))

    def without(self, kind: str) -> "Filters":
        """The filters but for those of one kind of facet."""
        return replace(self, countries=()) if kind == "country" else replace(self, categories=())

    def leading(self) -> Clause | None:
        """The clause of the shops that ship to the country, which come before those that may (F1)."""
        if self.ships_to is None or len(self.verdicts) == 1:
            return None
        return _has_verdict(self.ships_to, self.verdicts[:1])

    def preferred(self) -> Clause | None:
        """The clause of the shops that are known to sell in a country, which come first in each tier (M4)."""
        return Exact("markets", (*self.countries, WORLDWIDE)) if self.countries else None


# The fields of shops that are counted, by kind of facet.
FACET_FIELDS: Final = {"category": "categories", "country": "countries"}


def _has_verdict(country: str, verdicts: Sequence[Verdict]) -> Clause:
    """The clause of the shops with one of these verdicts on a country, of its own or as on most countries (F2)."""
    own = Exact("ships_to", tuple(f"{verdict}:{country}" for verdict in verdicts))
    usual = Exact("ships_to", tuple(f"{verdict}:{OTHER_COUNTRIES}" for verdict in verdicts))
    others = Exact("ships_to", tuple(f"{verdict}:{country}" for verdict in VERDICTS if verdict not in verdicts))
    return AnyOf((own, AllOf((usual, NoneOf((others,))))))


NO_FILTERS: Final = Filters()


@dataclass(slots=True)
class Word:
    """A distinct folded word of a reading of a query, with the evidence of it.

    `slugs` are of the categories that it means: `counts` tells whether they count as named in the order. A category
    word names one next to others, so that it is not part of a name. `countries` are those that it names alone or with
    its neighbours, and `hosts` those of which it is a part: the shops of these domains have it. No name is evidence of
    a nameless word: a label of the public suffix of a host, or `thé`, which folds to a table word. An inner letter is
    single, and not the last word.
    """

    text: str
    slugs: tuple[str, ...] = ()
    counts: bool = False
    is_category: bool = False
    countries: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_nameless: bool = False
    is_inner_letter: bool = False


# A reading of a query: its distinct words.
Reading = Sequence[Word]


def find_plan(
    texts: Sequence[str], readings: Sequence[Reading], filters: Filters = NO_FILTERS, *, is_table: bool = False
) -> Plan:
    """The plan of find_shop (M3, M4); tiers whose documents all have a better tier are omitted.

    `texts` are the forms of the query without the ignored words; without any, it browses. The first reading is as
    typed, the second, if there is one, as a wish. `is_table` tells that all words are table words.
    """
    clauses, preferred, leading = filters.clauses(), filters.preferred(), filters.leading()
    if not texts:
        tiers: list[tuple[int, Clause]] = [(FindTier.ANY_CATEGORY, MATCH_ALL)]
        if filters.categories:
            tiers.insert(0, (FindTier.FIRST_CATEGORY, Exact("primary", filters.categories)))
        return Plan("shops", tuple(tiers), clauses, widest=(MATCH_ALL,), preferred=preferred, leading=leading)
    begins_full = [Prefix("full", text) for text in texts]
    # Each full form is a key (X2), and a shop with one that begins so has a better tier.
    begins_key = [Prefix("other_keys", text) for text in texts]
    by_words = _by_words(texts, readings)
    tiers = [
        (FindTier.EQUALS_FULL, Exact("full", tuple(texts))),
        (FindTier.BEGINS_FULL, any_of(begins_full)),
        (FindTier.BEGINS_KEY, any_of(begins_key)),
        *((tier, any_of(some)) for tier, some in by_words.items()),
    ]
    if readings and readings[0] and not is_table:
        tiers.append((FindTier.FIRST_WORDS, any_of([Prefix("full", f"{text} ") for text in texts])))
    tiers.sort(key=itemgetter(0), reverse=True)
    widest = (AnyOf((*begins_full, *begins_key)), *_widest(by_words))
    return Plan("shops", tuple(tiers), clauses, widest=widest, preferred=preferred, leading=leading)


_ByWords = dict[FindTier, list[Clause]]


def _by_words(texts: Sequence[str], readings: Sequence[Reading]) -> _ByWords:
    """By tier, the clauses of the readings; each implies that of the reading's last tier."""
    found: _ByWords = {}
    for number, words in enumerate(readings):
        if not words:
            continue
        if len(words) == 1 and words[0].text == texts[0] and not words[0].hosts:
            tiers = _one_word(words[0])
        else:
            # A repeated word, or one for a host, is not the query's text: no tier above holds what begins with it.
            tiers = _several_words(words, as_typed=number == 0)
        for tier, clause in tiers:
            found.setdefault(tier, []).append(clause)
    return found


def _one_word(word: Word) -> Iterator[tuple[FindTier, Clause]]:
    # Of a query of one word, a word of a name is only the beginning of a key: prefixes are more often names.
    if word.counts:
        yield FindTier.FIRST_CATEGORY, Exact("primary", word.slugs)
        yield FindTier.ANY_CATEGORY, Exact("categories", word.slugs)
    elif word.slugs:
        yield FindTier.BEGINNINGS, Exact("categories", word.slugs)
    # Each word of a name or of a main label begins a key (X2), so shops with such a word have a better tier.
    if not word.is_category and is_part_evidence(word.text):
        yield FindTier.PARTS, Infix("infixes", word.text)


def _several_words(words: Reading, *, as_typed: bool) -> Iterator[tuple[FindTier, Clause]]:
    equal = {word.text: _equals(word) for word in words}
    # Only words of several can be labels or countries next to another.
    several = len(words) > 1
    if as_typed:
        yield FindTier.WORDS, AllOf(tuple(AnyOf(clauses) for clauses in equal.values()))
    stated = {word.text: _stated(word) if several else () for word in words}
    if not as_typed or any(word.counts for word in words) or any(stated.values()):
        yield FindTier.FIRST_CATEGORY, _each(words, _and_category(words, equal, "primary"), stated)
    if any(word.counts for word in words):
        yield FindTier.ANY_CATEGORY, _each(words, _and_category(words, equal, "categories"), stated)
    labels = {word.text: _labels(word) if several else () for word in words}
    begun = {word.text: (*_begins(word), *_category(word)) for word in words}
    yield FindTier.BEGINNINGS, _each(words, begun, labels)
    parts = {word.text: (*_name_evidence(word), *_category(word)) for word in words}
    yield FindTier.PARTS, _each(words, parts, labels, _begun(words))


Evidence = Mapping[str, tuple[Clause, ...]]


def _each(words: Reading, evidence: Evidence, places: Evidence, begun: Mapping[str, Word] | None = None) -> Clause:
    """The clause that every word has the evidence or is a place, and that one word at least has the evidence (M3 e).

    What must not be is stated instead of what must: it needs labels, which the index rarely contains. `begun` are words
    that need not be searched for, by longer ones.
    """
    shorter = begun or {}
    either = {word.text: (*evidence[word.text], *places[word.text]) for word in words}
    stated = tuple(AnyOf(either[word.text]) for word in words if word.text not in shorter)
    excluded: list[Clause] = []
    if all(places.values()):
        only_places = (any_of(places[word.text]) for word in words)
        excluded.append(AllOf((*only_places, NoneOf(tuple(chain.from_iterable(evidence.values()))))))
    # A longer word that is only a label is not evidence of its beginning.
    excluded += (
        AllOf((any_of(places[longer.text]), NoneOf(either[text])))
        for text, longer in shorter.items()
        if places[longer.text]
    )
    return AllOf((*stated, NoneOf(tuple(excluded)))) if excluded else AllOf(stated)


def _begun(words: Reading) -> dict[str, Word]:
    """By word that a longer one begins with, the longer one, if any evidence of that is evidence of the shorter too.

    Where every word needs evidence the shorter need not be searched for, so no term is read for many beginnings of it.
    """
    # In this order a word that others begin with is followed by one of them.
    longer = sorted(words, key=attrgetter("text"))
    return {
        word.text: other
        for word, other in pairwise(longer)
        if other.text.startswith(word.text)
        and is_part_evidence(word.text)
        and not (
            word.is_nameless
            or word.is_inner_letter
            or word.is_category
            or other.is_nameless
            or other.hosts
            or other.slugs
        )
    }


def _widest(by_words: _ByWords) -> Iterator[Clause]:
    """The clauses of the tiers by words, without those that imply another one of them or what begins a key."""
    yield from by_words.get(FindTier.PARTS, ())
    if FindTier.WORDS not in by_words:  # of one word; else the last tier follows from all others
        yield from by_words.get(FindTier.BEGINNINGS, by_words.get(FindTier.ANY_CATEGORY, ()))


def word_evidence(words: Iterable[Word], *, label: bool = False) -> Clause:
    """The clause of shops with evidence (a) to (d) of M3 of a word in one of its readings, with `label` (e) too."""
    clauses = chain.from_iterable(
        (*_name_evidence(word), *_category(word), *(_labels(word) if label else ())) for word in words
    )
    return AnyOf(tuple(dict.fromkeys(clauses)))


def exclusive(buckets: Sequence[Clause]) -> tuple[Clause, ...]:
    """The clauses of disjoint buckets: each document stays in the first bucket that it meets."""
    return tuple(
        AllOf((clause, NoneOf(tuple(buckets[:index])))) if index else clause for index, clause in enumerate(buckets)
    )


def _and_category(words: Reading, evidence: Evidence, field: str) -> Evidence:
    return {
        word.text: (*evidence[word.text], Exact(field, word.slugs)) if word.counts else evidence[word.text]
        for word in words
    }


def _category(word: Word) -> tuple[Clause, ...]:
    return (Exact("categories", word.slugs),) if word.slugs else ()


def _stated(word: Word) -> tuple[Clause, ...]:
    """The clauses that a shop states a country that the word names, or has its top-level domain."""
    countries = word.countries
    return (Exact("labels", countries), Exact("markets", countries)) if countries else ()


def _labels(word: Word) -> tuple[Clause, ...]:
    """(e) of M3."""
    if not word.countries:
        return (Exact("labels", (word.text,)),)
    return Exact("labels", (word.text, *word.countries)), Exact("markets", (*word.countries, WORLDWIDE))


def _equals(word: Word) -> tuple[Clause, ...]:
    """(a) of M3."""
    return _hosts(word) if word.is_nameless else (Exact("words", (word.text,)), *_hosts(word))


def _begins(word: Word) -> tuple[Clause, ...]:
    """(a) and (b) of M3."""
    if word.is_nameless or word.is_inner_letter:
        return _equals(word)
    if word.is_category:
        return (*_equals(word), Exact("clipped", (word.text,)))
    # A word that equals a shop's word is also a prefix of it: (b) includes (a).
    return (Prefix("words", word.text), *_hosts(word))


def _hosts(word: Word) -> tuple[Clause, ...]:
    return (Exact("full", word.hosts),) if word.hosts else ()


def _name_evidence(word: Word) -> tuple[Clause, ...]:
    """(a), (b) and (d) of M3."""
    if word.is_nameless or word.is_category or not is_part_evidence(word.text):
        return _begins(word)
    # (d) includes (a) and (b); one clause in place of two lets the engine skip shops that lack another word.
    return (Infix("infixes", word.text), *_hosts(word))
