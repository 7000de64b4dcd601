"""Compiles clauses to Tantivy queries, or to None where document frequencies say that nothing can meet them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import tantivy
from tantivy import Occur, Query

from index_mappings.documents import Role, ShopDocument, fields_with
from index_mappings.embedded import RUN_STEP
from index_mappings.ngrams import (
    PARTS,
    PLAIN_RUNS,
    PREFIXES,
    REPETITIVE,
    REPETITIVE_RUNS,
    RUNS,
    SHORT,
    SHORT_PREFIX,
    STARTS,
    TAIL_MAX,
    covering_runs,
    start_chunks,
)
from index_mappings.tiers import INFIX_MIN
from shop_directory.search.plan import AllOf, AnyOf, Below, Clause, Exact, Infix, NoneOf, Prefix

_BASIC: Final = "basic"
_TAILS: Final = frozenset(fields_with(ShopDocument, Role.TAILS))
# Fields of which unknown values are searched for too. References to removed documents, as of a shop that went under
# review, stay in the dictionary, and the answers to both must take the same time (V2). Categories that a search asks
# for are all of some shop, and a plan has a hundred.
_UNCHECKED: Final = frozenset(("id", "refs", "shop_refs", "trusted_refs", "categories", "primary"))
# Up to this number of terms are looked up one by one; more of them by one pass over the dictionary.
_MAX_SINGLE_TERMS: Final = 512
# Up to this number of terms are alternatives, each with its own reader: faster for few of them.
_MAX_ALTERNATIVES: Final = 8
# A query for a prefix finds up to this number of terms, and no more.
_MAX_EXPANSIONS: Final = 50
# Those of some 250 searches; of long hostile queries they take 4 MB more than 512 do.
_MAX_CACHED: Final = 2_048


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """One open index, as of one point in time; `rank` names the field that orders its documents.

    `cached` are the queries of the last searches, by clause, and `alternatives` those of which a document has to meet
    one: a plan has each clause several times.
    """

    kind: str
    rank: str
    schema: tantivy.Schema
    searcher: tantivy.Searcher
    cached: dict[Clause, Query | None] = field(default_factory=dict, compare=False)
    alternatives: dict[Clause, tuple[Query, ...]] = field(default_factory=dict, compare=False)


def query_of(index: OpenIndex, clause: Clause) -> Query | None:
    """The query of a clause; None if no document can meet it."""
    cached = index.cached
    try:
        return cached[clause]
    except KeyError:
        if len(cached) >= _MAX_CACHED:
            cached.clear()
        query = cached[clause] = _COMPILERS[type(clause)](index, clause)
        return query


@dataclass(frozen=True, slots=True)
class PlanFilters:
    """The filters and exclusions of a plan, as queries; `empty` if no document can match all that are required."""

    required: tuple[tuple[Occur, Query], ...]
    excluded: tuple[tuple[Occur, Query], ...]
    empty: bool

    def apply(self, query: Query) -> Query:
        """The query for the hits of another query that pass the filters."""
        if not self.required and not self.excluded:
            return query
        return Query.boolean_query([(Occur.Must, query), *self.required, *self.excluded])

    def excluding(self, index: OpenIndex, clauses: Sequence[Clause]) -> "PlanFilters":
        """The filters that also exclude the documents that meet one of the clauses."""
        if not clauses:
            return self
        more = compile_filters(index, (), clauses)
        return PlanFilters(self.required, (*self.excluded, *more.excluded), self.empty)


_NO_FILTERS: Final = PlanFilters((), (), empty=False)


def compile_filters(index: OpenIndex, filters: Sequence[Clause], excluded: Sequence[Clause]) -> PlanFilters:
    """Compile the filters and exclusions of a plan."""
    if not filters and not excluded:
        return _NO_FILTERS
    required = [query_of(index, clause) for clause in filters]
    return PlanFilters(
        tuple((Occur.Must, query) for query in required if query is not None),
        tuple((Occur.MustNot, query) for clause in excluded for query in _possible(index, clause)),
        None in required,
    )


def _term(index: OpenIndex, field: str, text: str) -> Query | None:
    if field not in _UNCHECKED and not index.searcher.doc_freq(field, text):
        return None
    return Query.term_query(index.schema, field, text, _BASIC)


def _exact(index: OpenIndex, clause: Exact) -> tuple[Query, ...]:
    if len(clause.texts) > _MAX_SINGLE_TERMS:
        return (Query.term_set_query(index.schema, clause.field, list(clause.texts)),)
    found = (_term(index, clause.field, text) for text in clause.texts)
    return tuple([query for query in found if query is not None])


def _prefix(index: OpenIndex, clause: Prefix) -> tuple[Query, ...]:
    field, text = clause.field, clause.text
    column = field + PREFIXES
    found = _term(index, column, text)
    if found is not None:
        return (found,)
    # It is not frequent, so few texts begin so, unless very many were added since the generation was built.
    if len(text) <= SHORT_PREFIX or not index.searcher.doc_freq(column, text[:SHORT_PREFIX]):
        return ()
    if len(text) > TAIL_MAX and field in _TAILS:
        return _phrase(index, field + STARTS, start_chunks(text))
    terms = [term for term, _ in index.searcher.terms_with_prefix(field, text)]
    if len(terms) <= _MAX_ALTERNATIVES:
        return tuple([Query.term_query(index.schema, field, term, _BASIC) for term in terms])
    if len(terms) <= _MAX_EXPANSIONS:
        return (Query.phrase_prefix_query(index.schema, field, [text]),)
    return (Query.term_set_query(index.schema, field, terms),)


def documents_of(index: OpenIndex, ranks: Sequence[str]) -> Query | None:
    """The query of a few documents by their ranks; None without any."""
    # For so few terms a disjunction takes a quarter of the time of a set of terms.
    return _any([Query.term_query(index.schema, index.rank, rank, _BASIC) for rank in ranks])


def _infix(index: OpenIndex, clause: Infix) -> tuple[Query, ...]:
    field, text = clause.field, clause.text
    is_short = len(text) < INFIX_MIN
    found = _term(index, field + (SHORT if is_short else PARTS), text)
    if found is not None or is_short:
        return () if found is None else (found,)
    return (
        *_phrase(index, field + RUNS, covering_runs(text, PLAIN_RUNS)),
        *_phrase(index, field + REPETITIVE, covering_runs(text, REPETITIVE_RUNS)),
    )


def _phrase(index: OpenIndex, column: str, terms: Sequence[tuple[int, str]]) -> tuple[Query, ...]:
    """The query of terms at these places of a column's values; none if no document has one of the terms."""
    if not all(index.searcher.doc_freq(column, term) for _, term in terms):
        return ()
    if len(terms) == 1:
        return (Query.term_query(index.schema, column, terms[0][1], _BASIC),)
    return (Query.phrase_query(index.schema, column, [(RUN_STEP * place, term) for place, term in terms]),)


def _below(index: OpenIndex, clause: Below) -> Query | None:
    integer = tantivy.FieldType.Integer
    return Query.range_query(index.schema, clause.field, integer, upper_bound=clause.bound, include_upper=False)


def _all_of(index: OpenIndex, clause: AllOf) -> Query | None:
    single: list[Query] = []
    either: list[Query] = []
    excluded: list[Query] = []
    for part in clause.clauses:
        if isinstance(part, NoneOf):
            excluded += [query for other in part.clauses for query in _possible(index, other)]
            continue
        possible = _possible(index, part)
        query = _any(possible)
        if query is None:
            return None
        (single if len(possible) == 1 else either).append(query)
    if len(single) > 1 and either:
        # A disjunction reads ahead, thousands of documents at a time: only where all other parts hold.
        single = [Query.boolean_query([(Occur.Must, query) for query in single])]
    required = [*single, *either] or [Query.all_query()]
    if len(required) == 1 and not excluded:
        return required[0]
    parts = [(Occur.Must, query) for query in required]
    return Query.boolean_query([*parts, *((Occur.MustNot, query) for query in excluded)])


def _possible(index: OpenIndex, clause: Clause) -> tuple[Query, ...]:
    """The queries of which one meets the clause; those of nested disjunctions are joined, or are read twice."""
    if not isinstance(clause, AnyOf | Exact | Prefix | Infix):
        query = query_of(index, clause)
        return () if query is None else (query,)
    cached = index.alternatives
    try:
        return cached[clause]
    except KeyError:
        if len(cached) >= _MAX_CACHED:
            cached.clear()
        if isinstance(clause, AnyOf):
            found = tuple([query for part in clause.clauses for query in _possible(index, part)])
        else:
            found = _ALTERNATIVES[type(clause)](index, clause)
        cached[clause] = found
        return found


def _any(queries: Sequence[Query]) -> Query | None:
    if len(queries) < 2:  # noqa: PLR2004 - one or none
        return queries[0] if queries else None
    return Query.boolean_query([(Occur.Should, query) for query in queries])


_ALTERNATIVES: Final[dict[type, Callable[[OpenIndex, Any], tuple[Query, ...]]]] = {
    Exact: _exact,
    Prefix: _prefix,
    Infix: _infix,
}
_COMPILERS: Final[dict[type, Callable[[OpenIndex, Any], Query | None]]] = {
    AllOf: _all_of,
    AnyOf: lambda index, clause: _any(_possible(index, clause)),
    NoneOf: lambda index, clause: _all_of(index, AllOf((clause,))),
    **dict.fromkeys(_ALTERNATIVES, lambda index, clause: _any(_possible(index, clause))),
    Below: _below,
}
