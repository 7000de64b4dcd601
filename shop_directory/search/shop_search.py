"""The flow of find_shop (M3 to M6): the query as typed, the words that have evidence, and which shops may be meant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from index_mappings.category_forms import Level
from index_mappings.countries import country_names, words_of_countries
from index_mappings.documents import shop_from_stored
from index_mappings.forms import QueryForms, query_forms
from index_mappings.generations import Stamp
from index_mappings.table_words import TABLE_WORDS
from index_mappings.text import is_ideographic
from index_mappings.tiers import (
    ASKED_ALONE_MIN,
    COUNTRY_RUN,
    OTHER_LANGUAGE_MIN,
    SUGGEST_CUT,
    SYNONYM_MIN,
    FindTier,
    rank_key,
)
from shop_directory.search.broader import BROADER, BROADER_SHOPS, LeftOuts, broader_queries
from shop_directory.search.engine import Engine, Facet, Hit, Page, SearchRequest
from shop_directory.search.plan import (
    FACET_FIELDS,
    LEADING,
    NOTHING,
    Clause,
    Exact,
    Filters,
    NoneOf,
    Plan,
    Word,
    any_of,
    find_plan,
    word_evidence,
)
from shop_directory.search.protocol import Broader, FindQuery, Found, Position, WordCount
from shop_directory.typeahead.suggestions import SuggestedShop
from shop_directory.words.categories import CategoryTable, WordMeaning
from shop_directory.words.query_words import FindForms, QueryWord, find_forms, runs

if TYPE_CHECKING:
    from shop_directory.typeahead.reading.typeahead import Typeahead

# The default of the maximum number of categories that a word means (M5).
CATEGORY_CAP: Final = 50
# The maximum number of cached plans, a few kB each.
_CACHED_PLANS: Final = 512
_DID_YOU_MEAN: Final = 3
# The maximum number of shops of similar names that are looked at, of which three are named: thousands may match.
_CANDIDATES: Final = 80
# By level, the minimum length with which the only word of a query counts as the name of a category (M4).
_COUNTED_FROM: Final = {Level.OTHER_LANGUAGE: OTHER_LANGUAGE_MIN, Level.SYNONYM: SYNONYM_MIN}
# By word, the codes of the countries that it names.
_Countries = Mapping[str, tuple[str, ...]]


@dataclass(slots=True)  # not frozen: each search creates some
class PlannedSearch:
    """A query, or the rest of it: its readings, and the plan of those that count.

    `truncated`: the cap on categories dropped some. `has_wish`: there is a second reading, which `plan` lacks.
    """

    forms: FindForms
    readings: tuple[tuple[Word, ...], ...]
    meanings: tuple[Mapping[str, WordMeaning], ...]
    truncated: bool
    plan: Plan
    has_wish: bool
    filters: Filters

    @property
    def wish(self) -> Plan | None:
        """The plan with both readings, for where nothing matches as typed (M3); None without another reading."""
        return find_plan(self.texts, self.readings, self.filters) if self.has_wish else None

    @property
    def texts(self) -> tuple[str, ...]:
        """The forms of the query."""
        return self.forms.forms.texts

    def places_of(self, text: str) -> tuple[Word, ...]:
        """A word in each of the readings that have it."""
        return tuple([word for reading in self.readings for word in reading if word.text == text])

    def is_goods(self, text: str) -> bool:
        """Whether a word names a category or a country."""
        named = any(text in known and known[text].named for known in self.meanings)
        return named or any(word.countries for word in self.places_of(text))


@dataclass(slots=True)
class _Evidence:
    """The evidence in the generation of a query that has no match under its filters; `matched` is without these.

    `passing` are by distinct word the shops with evidence of it that pass the filters, `anywhere` the same, or all of
    them where none passes. `wish` is the page of the search with both readings, if any.
    """

    matched: bool
    anywhere: dict[str, int]
    passing: dict[str, int]
    wish: Page | None


class SearchPlanner:
    """Plans searches, and caches the plans of the last queries: much of the time that a search for a name takes."""

    def __init__(self, category_cap: int = CATEGORY_CAP) -> None:
        """A word means at most `category_cap` categories."""
        self._cap = category_cap
        # The plans of one table, by query and filters.
        self._table: CategoryTable | None = None
        self._cached: dict[tuple[str, Filters], PlannedSearch] = {}

    def of_text(self, text: str, categories: CategoryTable, filters: Filters) -> PlannedSearch:
        """The searches for a query as typed."""
        if filters.coupons is not None:  # which has the time of the request
            return self.of_forms(find_forms(text), categories, filters)
        if self._table is not categories or len(self._cached) >= _CACHED_PLANS:
            self._table = categories
            self._cached.clear()
        key = text, filters
        found = self._cached.get(key)
        if found is None:
            found = self._cached[key] = self.of_forms(find_forms(text), categories, filters)
        return found

    def of_forms(self, forms: FindForms, categories: CategoryTable, filters: Filters) -> PlannedSearch:
        """The searches for the rest of a query."""
        return planned(forms, categories, self._cap, filters)


class ShopSearch:
    """Searches the shops of one generation."""

    def __init__(self, engine: Engine, stamp: Stamp, typeahead: "Typeahead", planner: SearchPlanner) -> None:
        self._engine = engine
        self._stamp = stamp
        self._typeahead = typeahead
        self._planner = planner

    async def find(self, query: FindQuery) -> Found:
        """Search shops."""
        filters = Filters.of(query)
        whole = self._planner.of_text(query.text, self._typeahead.categories, filters)
        page, *unsettled = await self._engine.search(
            self._stamp, (_page(whole.plan, query), *_unsettled(whole.plan, filters))
        )
        if page.total or not whole.texts:
            return _found(query, page, unsettled, truncated=whole.truncated)
        # Only an empty result needs the evidence of each word (M6), which is a second round trip or two.
        evidence = await self._evidence(query, whole, filters)
        kept, plan = whole, whole.plan
        missing = () if evidence.matched else _missing(whole.forms, evidence.anywhere)
        if missing or not (evidence.matched or whole.forms.words):
            kept = self._planner.of_forms(_left(whole.forms, missing), self._typeahead.categories, filters)
            if kept.texts or query.categories:
                page, plan = await self._kept_page(query, kept)
        elif not evidence.matched and evidence.wish is not None:
            page, plan = evidence.wish, whole.wish or plan
        if plan is not whole.plan and unsettled:
            unsettled[:] = await self._engine.search(self._stamp, _unsettled(plan, filters))
        ignored = tuple(word.typed for word in whole.forms.spelt(missing) if word.is_dropped)
        counts = None if page.total else _word_counts(whole.forms, missing, evidence)
        broader = None if counts is None else await self._broader(query, whole, missing, evidence)
        near: tuple[SuggestedShop, ...] = ()
        # Where nothing is left of the query, all shops that pass its filters are found already.
        if not page.total or (ignored and kept.texts):
            asked = possible_names(query.text, whole, missing)
            near = await self._near(filters, asked, kept.forms.forms.texts, plan if page.total else None)
        found = _found(query, page, unsettled, truncated=kept.truncated)
        return replace(found, ignored=ignored, did_you_mean=near, word_counts=counts, broader=broader)

    async def _evidence(self, query: FindQuery, search: PlannedSearch, filters: Filters) -> _Evidence:
        """Count the shops of the query, and those of each word with filters; of words without any, without filters."""
        clauses, texts = filters.clauses(), search.forms.texts
        several = search.forms.several
        evidence = [word_evidence(search.places_of(text), label=several) for text in texts]
        passed = clauses if several else ()
        # Without filters the query itself was counted already.
        unfiltered = _count(search.plan.matching) if clauses else _count(NOTHING)
        requests = [unfiltered, *(_count(clause, passed) for clause in evidence)]
        wish = search.wish
        if wish is not None:
            requests.append(_page(wish, query))
        matched, *counts = pages = await self._engine.search(self._stamp, requests)
        passing = dict(zip(texts, _totals(counts), strict=False))
        anywhere = dict(passing)
        if passed and (
            absent := {text: clause for text, clause in zip(texts, evidence, strict=True) if not passing[text]}
        ):
            found = await self._engine.search(self._stamp, [_count(clause) for clause in absent.values()])
            anywhere.update(zip(absent, _totals(found), strict=True))
        page = None if wish is None else pages[-1]
        return _Evidence(bool(matched.total), anywhere, passing, page)

    async def _kept_page(self, query: FindQuery, kept: PlannedSearch) -> tuple[Page, Plan]:
        """The page of the rest of a query, and the plan that found it."""
        (page,) = await self._engine.search(self._stamp, (_page(kept.plan, query),))
        if page.total or (wish := kept.wish) is None:
            return page, kept.plan
        # Words without evidence and a table word are rare together, and where the kept words match this is saved.
        unfiltered = (_count(kept.plan.matching),) if kept.filters.clauses() else ()
        wish_page, *counts = await self._engine.search(self._stamp, (_page(wish, query), *unfiltered))
        return (page, kept.plan) if any(_totals(counts)) else (wish_page, wish)

    async def _broader(
        self, query: FindQuery, whole: PlannedSearch, missing: Sequence[str], evidence: _Evidence
    ) -> tuple[Broader, ...]:
        """Up to three queries with fewer words that find something, by at most five searches (M6)."""
        forms = whole.forms
        texts = [text for text in forms.texts if text not in missing and not forms.is_table(text)]
        goods = {text for text in texts if whole.is_goods(text)}
        one_less, fewer = broader_queries(texts, evidence.passing, goods)
        if found := await self._broader_pages(query, whole, missing, one_less):
            found.sort(key=lambda one: (-one[0], -one[1].total))
            return tuple(one for _, one in found[:BROADER])
        return tuple(one for _, one in (await self._broader_pages(query, whole, missing, fewer))[:1])

    async def _broader_pages(
        self, query: FindQuery, whole: PlannedSearch, missing: Sequence[str], left_outs: LeftOuts
    ) -> list[tuple[int, Broader]]:
        """Those of some queries that find shops, each after the number of its words that name a category or country."""
        forms, searches = whole.forms, []
        for left_out in left_outs:
            dropped = {text for text in forms.texts if text in missing or text in left_out or forms.is_table(text)}
            text = " ".join(forms.without(dropped).tokens)
            search = self._planner.of_text(text, self._typeahead.categories, Filters.of(query))
            if search.texts and search.forms.words:
                searches.append((text, left_out, search))
        if not searches:
            return []
        first = replace(query, offset=0, limit=BROADER_SHOPS, after=None, facets=())
        requests = [_page(search.plan, first) for _, _, search in searches]
        found: list[tuple[int, Broader]] = []
        for (text, left_out, search), page in zip(
            searches, await self._engine.search(self._stamp, requests), strict=True
        ):
            if page.total:
                typed = tuple(word.typed for word in forms.spelt(()) if word.text in left_out)
                shops = tuple(map(_suggested, page.hits[:BROADER_SHOPS]))
                kept = sum(map(whole.is_goods, search.forms.texts))
                found.append((kept, Broader(text, typed, page.total, shops)))
        return found

    async def _near(
        self, filters: Filters, asked: Iterable[QueryForms], texts: Sequence[str], plan: Plan | None
    ) -> tuple[SuggestedShop, ...]:
        """Up to three shops of which one of the forms asked is a misspelt name or has one in it (M6).

        The matches of `plan`, the search for `texts` that found shops, are left out, as are the shops that fail filters
        by facts: the engine says which of the first candidates these are. None if nothing was found.
        """
        refused: list[Clause] = [NoneOf((clause,)) for clause in filters.by_facts()]
        if plan is not None:
            refused += plan.widest[1:]  # the typeahead leaves out the shops that the first one finds
        limit, prefixes = _CANDIDATES if refused else _DID_YOU_MEAN, None if plan is None else texts
        near = self._typeahead.near(asked, filters.countries, filters.categories, limit, prefixes)
        if not near or not refused:
            return near
        ids = tuple(shop.id for shop in near)
        matches = Plan("shops", ((FindTier.ANY_CATEGORY, Exact("id", ids)),), (any_of(refused),))
        # Counted as well, so that no engine takes it for a look-up: it evaluates the whole plan.
        (page,) = await self._engine.search(self._stamp, (SearchRequest(matches, len(ids), total=True),))
        matched = {hit.stored["id"] for hit in page.hits}
        return tuple([shop for shop in near if shop.id not in matched][:_DID_YOU_MEAN])


def planned(forms: FindForms, categories: CategoryTable, cap: int, filters: Filters) -> PlannedSearch:
    """The searches for a query, or for the rest of it."""
    texts, countries = forms.forms.texts, _countries(forms)
    wish: tuple[QueryWord, ...] = ()
    resolved = [categories.resolve(forms.words, cap, filters.categories)] if forms.words else []
    tables = [word.is_table for word in forms.words]
    if any(tables):
        wish = forms.wish({text for text, meaning in resolved[0].words.items() if meaning.named})
    if wish:
        resolved.append(categories.resolve(wish, cap, filters.categories))
    readings = tuple([
        _plan_words(forms, words, one.words, countries)
        for words, one in zip((forms.words, wish), resolved, strict=False)
    ])  # fmt: skip
    both_count = bool(wish) and not forms.ends_with_place and all(
        resolved[1].words[word.text].is_wish or word.countries for word in readings[1]
    )  # fmt: skip
    is_table = bool(tables) and all(tables)
    plan = find_plan(texts, readings if both_count else readings[:1], filters, is_table=is_table)
    truncated = any(one.truncated for one in resolved)
    return PlannedSearch(
        forms, readings, tuple([one.words for one in resolved]), truncated, plan, bool(wish) and not both_count, filters
    )


def _plan_words(
    forms: FindForms, words: Sequence[QueryWord], meanings: Mapping[str, WordMeaning], countries: _Countries
) -> tuple[Word, ...]:
    if not words:
        return ()
    last = forms.words[-1].text
    found: dict[str, Word] = {}
    for place in words:
        text = place.text
        if (word := found.get(text)) is None:
            meaning = meanings[text]
            word = found[text] = Word(
                text,
                meaning.slugs,
                counts=_counts(text, meaning, several=forms.several),
                is_category=forms.several and meaning.named,
                countries=countries.get(text, ()),
                is_nameless=True,
                is_inner_letter=text != last and len(text) == 1 and text.isalpha() and not is_ideographic(text),
            )
        # `thé` is not the word of The Body Shop.
        is_nameless = place.is_suffix or (word.is_category and not place.is_table and text in TABLE_WORDS)
        word.is_nameless = word.is_nameless and is_nameless
        if place.host is not None and place.host not in word.hosts:
            word.hosts = (*word.hosts, place.host)
    return tuple(found.values())


def _counts(text: str, meaning: WordMeaning, *, several: bool) -> bool:
    """Whether the categories of a word count as named in the order (M4): of a query of one word, less often."""
    if several or meaning.level is Level.OWN:
        return meaning.named
    shortest = _COUNTED_FROM.get(meaning.level)
    return meaning.named and shortest is not None and (len(text) >= shortest or is_ideographic(text))


def _countries(forms: FindForms) -> _Countries:
    """By word, the codes of the countries that it names, alone or with its neighbours."""
    found: dict[str, dict[str, None]] = {}
    if not forms.several or words_of_countries().isdisjoint(forms.texts):
        return {}
    names = country_names()
    for start, end in runs(forms.words, COUNTRY_RUN):
        texts = [word.text for word in forms.words[start:end]]
        for code in names.get(" ".join(texts), ()):
            for text in texts:
                found.setdefault(text, {})[code] = None
    return {text: tuple(codes) for text, codes in found.items()}


def _missing(forms: FindForms, anywhere: Mapping[str, int]) -> tuple[str, ...]:
    """The words without evidence on any shop; table words only where there are no others (M6)."""
    others = [text for text in anywhere if not forms.is_table(text)]
    return tuple(text for text in others or anywhere if not anywhere[text])


def _left(forms: FindForms, missing: Sequence[str]) -> FindForms:
    """What is left without the missing words: nothing if these are only table words."""
    left = forms.without(missing)
    return forms.without(forms.texts) if missing and all(word.is_table for word in left.words) else left


def _word_counts(forms: FindForms, missing: Sequence[str], evidence: _Evidence) -> tuple[WordCount, ...] | None:
    """The number of matching shops by word, without table words (M6); None for fewer than two words, or for a host."""
    words = [word for word in forms.spelt(missing) if word.text is None or not forms.is_table(word.text)]
    if sum(not word.is_table for word in forms.words) < 2 or [word.text for word in words] == [None]:  # noqa: PLR2004
        return None
    return tuple(WordCount(word.typed, 0 if word.text is None else evidence.passing[word.text]) for word in words)


def possible_names(text: str, whole: PlannedSearch, missing: Sequence[str]) -> Iterator[QueryForms]:
    """What may be a misspelt name (M6): the whole query as cut for suggestions, then without table words at its end.

    Then each ignored word alone. None where each word is a compound that ends with the name of a category.
    """
    forms, words = query_forms(text, cut=SUGGEST_CUT), whole.forms.words
    if not words:
        return
    meanings = whole.meanings[-1].values()
    if all(meaning.slugs and meaning.level is Level.ENDING for meaning in meanings):
        return
    yield forms
    last = max((place for place, word in enumerate(words) if not word.is_table), default=-1)
    if 0 <= last < len(words) - 1:
        tokens = dict.fromkeys(word.token for word in words[: last + 1])
        yield query_forms(" ".join(whole.forms.tokens[token] for token in tokens), cut=SUGGEST_CUT)
    for word in whole.forms.texts:
        if word in missing and len(word) >= ASKED_ALONE_MIN and (word,) != forms.texts:
            yield query_forms(word, cut=SUGGEST_CUT)


def _page(plan: Plan, query: FindQuery) -> SearchRequest:
    facets = tuple([Facet(FACET_FIELDS[kind], Filters.of(query).without(kind).clauses()) for kind in query.facets])
    # How many hits are before a position is unknown, so one more hit tells whether others follow the page.
    limit = query.limit if query.after is None else query.limit + 1
    return SearchRequest(plan, limit, offset=query.offset, total=True, after=query.after, facets=facets)


def _unsettled(plan: Plan, filters: Filters) -> tuple[SearchRequest, ...]:
    """The request for the number of a plan's shops whose statements do not settle the country; none without one."""
    if filters.ships_to is None:
        return ()
    return (_count(plan.matching, replace(filters, verdicts=("unknown",)).clauses()),)


def _count(clause: Clause, filters: tuple[Clause, ...] = ()) -> SearchRequest:
    return SearchRequest(Plan("shops", ((FindTier.ANY_CATEGORY, clause),), filters), 0, total=True)


def _totals(pages: Iterable[Page]) -> list[int]:
    return [page.total or 0 for page in pages]


def _suggested(hit: Hit) -> SuggestedShop:
    shop = shop_from_stored(hit.stored)
    return SuggestedShop(shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity)


def _found(query: FindQuery, page: Page, unsettled: Sequence[Page], *, truncated: bool) -> Found:
    total, hits = page.total or 0, page.hits[: query.limit]
    shops = tuple([shop_from_stored(hit.stored) for hit in hits])
    more = query.offset + len(hits) < total if query.after is None else len(page.hits) > query.limit
    last = Position(hits[-1].level, rank_key(shops[-1].popularity, shops[-1].id)) if more and hits else None
    return Found(
        shops=shops,
        total=total,
        ignored=(),
        category_truncated=truncated,
        did_you_mean=(),
        unsettled_count=unsettled[0].total if unsettled else None,
        unsettled=sum([hit.level < 2 * LEADING for hit in hits]) if query.include_unsettled else 0,
        last=last,
        facets=dict(zip(query.facets, page.facets, strict=False)),
    )
