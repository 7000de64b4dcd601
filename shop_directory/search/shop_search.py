"""The flow of find_shop (M3 to M6): the query as typed, the words that have evidence, and which shops may be meant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from index_mappings.countries import country_names, words_of_countries
from index_mappings.documents import shop_from_stored
from index_mappings.forms import QueryForms, query_forms
from index_mappings.generations import Stamp
from index_mappings.text import is_ideographic
from index_mappings.tiers import ASKED_ALONE_MIN, COUNTRY_RUN, SUGGEST_CUT, FindTier, rank_key
from shop_directory.search.engine import Engine, Facet, Page, SearchRequest
from shop_directory.search.plan import (
    FACET_FIELDS,
    LEADING,
    MATCH_ALL,
    NOTHING,
    Clause,
    Exact,
    Filters,
    NoneOf,
    Plan,
    Slugs,
    Word,
    any_of,
    find_plan,
    word_evidence,
)
from shop_directory.search.protocol import FindQuery, Found, Position, WordCount
from shop_directory.typeahead.suggestions import SuggestedShop
from shop_directory.words.categories import CategoryTable
from shop_directory.words.query_words import OPTIONAL_WORDS, FindForms, QueryWord, find_forms, runs

if TYPE_CHECKING:
    from shop_directory.typeahead.reading.typeahead import Typeahead

_DID_YOU_MEAN: Final = 3
# The maximum number of shops of similar names that are looked at where a search matches some of them. Three are named,
# so this matters only where more than 77 match, and it bounds the work: of many shops thousands can match.
_CANDIDATES: Final = 80


@dataclass(slots=True)  # not frozen: each search creates some
class PlannedSearch:
    """A query, or what is left of it, its distinct words, and whether the cap on categories dropped some."""

    forms: FindForms
    words: tuple[Word, ...]
    truncated: bool
    plan: Plan
    filters: Filters

    @property
    def wide(self) -> Plan | None:
        """The search with more optional words, for where nothing else matches (M3 f); None if there are none.

        It lacks the tiers that are those of the other search, as they have no shops then.
        """
        words = _widened(self.words, self.forms)
        if words is None:
            return None
        plan = find_plan(self.texts, words, self.filters)
        return replace(plan, tiers=tuple(tier for tier in plan.tiers if tier not in self.plan.tiers))

    @property
    def texts(self) -> tuple[str, ...]:
        """The forms of the query."""
        return self.forms.forms.texts


@dataclass(slots=True)
class _Evidence:
    """The evidence in the generation of a query that has no match under its filters; `matched` is without these.

    `passing` are by distinct word the shops with evidence of it that pass the filters, `anywhere` the same, or all of
    them where none passes; `all_passing` counts all shops that pass. `wide` is the page of the wide search, if any.
    """

    matched: bool
    anywhere: dict[str, int]
    passing: dict[str, int]
    all_passing: int
    wide: Page | None


class ShopSearch:
    """Searches the shops of one generation."""

    def __init__(self, engine: Engine, stamp: Stamp, typeahead: "Typeahead", category_cap: int) -> None:
        self._engine = engine
        self._stamp = stamp
        self._typeahead = typeahead
        self._cap = category_cap

    async def find(self, query: FindQuery) -> Found:
        """Search shops."""
        filters = Filters.of(query)
        whole = self._planned(find_forms(query.text), filters)
        page, *unsettled = await self._engine.search(
            self._stamp, (_page(whole.plan, query), *_unsettled(whole.plan, filters))
        )
        if page.total or not whole.texts:
            return _found(query, page, whole.truncated, unsettled=unsettled)
        # Only an empty result needs the evidence of each word (M6), which is a second round trip or two.
        evidence = await self._evidence(query, whole, filters)
        kept, plan = whole, whole.plan
        missing = () if evidence.matched else _missing(whole.forms, evidence.anywhere)
        if missing or not (evidence.matched or whole.forms.words):
            kept = self._planned(whole.forms.without(missing), filters)
            if kept.texts or query.categories:
                page, plan = await self._kept_page(query, kept)
        elif not evidence.matched and evidence.wide is not None:
            page, plan = evidence.wide, whole.wide or plan
        if plan is not whole.plan and unsettled:
            unsettled[:] = await self._engine.search(self._stamp, _unsettled(plan, filters))
        counts = None if page.total else _word_counts(whole.forms, missing, evidence)
        ignored = tuple(word.typed for word in whole.forms.spelt(missing) if word.is_dropped)
        # Where nothing is left of the query, all shops that pass its filters are found already.
        near: tuple[SuggestedShop, ...] = ()
        if not page.total or (ignored and kept.texts):
            asked = possible_names(query.text, whole.forms, missing)
            near = await self._near(filters, asked, kept.forms.forms.texts, plan if page.total else None)
        return _found(query, page, kept.truncated, ignored, near, counts, unsettled)

    def _planned(self, forms: FindForms, filters: Filters) -> PlannedSearch:
        return planned(forms, self._typeahead.categories, self._cap, filters)

    async def _evidence(self, query: FindQuery, search: PlannedSearch, filters: Filters) -> _Evidence:
        """Count the shops of the query, and those of each word with filters; of words without any, without filters."""
        clauses, texts = filters.clauses(), [word.text for word in search.words]
        several = len(search.forms.words) > 1
        evidence = [word_evidence(word, label=several) for word in search.words]
        passed = clauses if several else ()
        # Without filters the query itself was counted already.
        unfiltered = _count(search.plan.matching) if clauses else _count(NOTHING)
        requests = [unfiltered, _count(MATCH_ALL, clauses), *(_count(clause, passed) for clause in evidence)]
        wide = search.wide
        if wide is not None:
            requests.append(_page(wide, query))
        matched, all_passing, *counts = pages = await self._engine.search(self._stamp, requests)
        passing = dict(zip(texts, _totals(counts), strict=False))
        anywhere = dict(passing)
        if passed and (
            absent := {text: clause for text, clause in zip(texts, evidence, strict=True) if not passing[text]}
        ):
            found = await self._engine.search(self._stamp, [_count(clause) for clause in absent.values()])
            anywhere.update(zip(absent, _totals(found), strict=True))
        page = None if wide is None else pages[-1]
        return _Evidence(bool(matched.total), anywhere, passing, all_passing.total or 0, page)

    async def _kept_page(self, query: FindQuery, kept: PlannedSearch) -> tuple[Page, Plan]:
        """The page of what is left of a query, and the plan that found it."""
        (page,) = await self._engine.search(self._stamp, (_page(kept.plan, query),))
        if page.total or (wide := kept.wide) is None:
            return page, kept.plan
        # Words without evidence and a word for a shop are rare together, and where the kept words match this is saved.
        unfiltered = (_count(kept.plan.matching),) if kept.filters.clauses() else ()
        wide_page, *counts = await self._engine.search(self._stamp, (_page(wide, query), *unfiltered))
        return (page, kept.plan) if any(_totals(counts)) else (wide_page, wide)

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
    """The searches for a query, or for what is left of it."""
    slugs, truncated = categories.resolve(forms.words, cap, filters.categories)
    words = _plan_words(forms, slugs)
    return PlannedSearch(forms, words, truncated, find_plan(forms.forms.texts, words, filters), filters)


def _plan_words(forms: FindForms, slugs: Slugs) -> tuple[Word, ...]:
    if len(forms.words) == 1 and forms.words[0].host is None:
        text = forms.words[0].text
        return (Word(text, slugs[text]),)
    if not forms.words:
        return ()
    countries = _countries(forms)
    texts = forms.texts
    if not countries and OPTIONAL_WORDS.isdisjoint(texts) and all(map(_is_plain, forms.words)):
        return tuple([Word(text, slugs[text]) for text in texts])
    last = forms.words[-1].text
    found = []
    for text in texts:
        places = [word for word in forms.words if word.text == text]
        hosts = tuple(dict.fromkeys(word.host for word in places if word.host is not None))
        found.append(
            Word(
                text,
                slugs[text],
                countries.get(text, ()),
                hosts,
                is_suffix=all(word.is_suffix for word in places),
                is_inner_letter=text != last and len(text) == 1 and text.isalpha() and not is_ideographic(text),
                optional=_may_be_optional(forms, text) and any(slugs[other] for other in slugs if other != text),
            )
        )
    return tuple(found)


def _is_plain(word: QueryWord) -> bool:
    return word.host is None and len(word.text) > 1


def _widened(words: Sequence[Word], forms: FindForms) -> tuple[Word, ...] | None:
    """The words with each word for a shop optional that stands next to any other; None if that changes nothing."""
    if len(words) < 2:  # noqa: PLR2004 - next to another word
        return None
    wide = [word for word in words if not word.optional and _may_be_optional(forms, word.text)]
    if not wide:
        return None
    return tuple(replace(word, optional=True) if word in wide else word for word in words)


def _may_be_optional(forms: FindForms, text: str) -> bool:
    """Whether a word is one for a shop or only joins others, and no part of a host, which stands for itself."""
    return text in OPTIONAL_WORDS and all(word.host is None for word in forms.words if word.text == text)


def _countries(forms: FindForms) -> dict[str, tuple[str, ...]]:
    """By word, the codes of the countries that it names, alone or with its neighbours."""
    found: dict[str, dict[str, None]] = {}
    if words_of_countries().isdisjoint(forms.texts):
        return {}
    names = country_names()
    for start, end in runs(forms.words, COUNTRY_RUN):
        texts = [word.text for word in forms.words[start:end]]
        for code in names.get(" ".join(texts), ()):
            for text in texts:
                found.setdefault(text, {})[code] = None
    return {text: tuple(codes) for text, codes in found.items()}


def _missing(forms: FindForms, anywhere: Mapping[str, int]) -> tuple[str, ...]:
    """The words without evidence on any shop; words for a shop have it next to one that has (M6)."""
    known = {text for text, shops in anywhere.items() if shops}
    return tuple(text for text in anywhere if text not in known and not (known and _may_be_optional(forms, text)))


def _word_counts(forms: FindForms, missing: Sequence[str], evidence: _Evidence) -> tuple[WordCount, ...] | None:
    """For each word the shops with evidence of it that pass the filters; None if there is only one word (M6)."""
    words = forms.spelt(missing)
    if len(forms.words) < 2 or [word.text for word in words] == [None]:  # noqa: PLR2004 - two or more words
        return None
    known = {text for text, shops in evidence.anywhere.items() if shops}
    counts = {
        text: evidence.all_passing if known - {text} and _may_be_optional(forms, text) else shops
        for text, shops in evidence.passing.items()
    }
    return tuple(WordCount(word.typed, 0 if word.text is None else counts[word.text]) for word in words)


def possible_names(text: str, whole: FindForms, missing: Sequence[str]) -> Iterator[QueryForms]:
    """What may be a misspelt name: the whole query as cut for suggestions, then each ignored word alone (M6)."""
    forms = query_forms(text, cut=SUGGEST_CUT)
    if not forms.words:
        return
    yield forms
    for word in whole.texts:
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


def _found(  # noqa: PLR0917 - what an answer has
    query: FindQuery,
    page: Page,
    truncated: bool,  # noqa: FBT001 - private
    ignored: tuple[str, ...] = (),
    near: tuple[SuggestedShop, ...] = (),
    counts: tuple[WordCount, ...] | None = None,
    unsettled: Sequence[Page] = (),
) -> Found:
    total, hits = page.total or 0, page.hits[: query.limit]
    shops = tuple([shop_from_stored(hit.stored) for hit in hits])
    more = query.offset + len(hits) < total if query.after is None else len(page.hits) > query.limit
    last = Position(hits[-1].level, rank_key(shops[-1].popularity, shops[-1].id)) if more and hits else None
    return Found(
        shops=shops,
        total=total,
        ignored=ignored,
        category_truncated=truncated,
        did_you_mean=near,
        word_counts=counts,
        unsettled_count=unsettled[0].total if unsettled else None,
        unsettled=sum([hit.level < 2 * LEADING for hit in hits]) if query.include_unsettled else 0,
        last=last,
        facets=dict(zip(query.facets, page.facets, strict=False)),
    )
