"""Compiles clauses to Tantivy queries; clauses that no document can meet become None instead.

The document frequency of a term is available without a search, so most tiers of a rare text cost nearly nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import tantivy
from tantivy import Occur, Order, Query

from index_mappings.embedded import BAND_COLUMN, RUN_STEP
from index_mappings.ngrams import SHORT_PREFIX_MAX, covering_runs, exact_lookup, prefix_lookup, runs_field, short_field
from service.search.plan import AllOf, AnyOf, Below, Clause, Exact, Infix, NoneOf, Prefix

_BASIC: Final = "basic"
# The fields by which shops and their records are looked up.
_REFERENCES: Final = frozenset(("id", "refs", "shop_refs", "trusted_refs"))
# Up to this number of terms are looked up one by one; more of them by one pass over the dictionary.
_MAX_SINGLE_TERMS: Final = 512
# Longer prefixes than this are searched for by a regular expression: its automaton grows with the number of characters,
# the other one with the square.
_MAX_FUZZY_PREFIX: Final = 64
# Of so few documents the terms with a long prefix are listed.
_FEW: Final = 16
# How many terms a query for the beginning of a phrase reads at most.
_FIRST_TERMS: Final = 50
# So many terms with a prefix are looked up one by one in less time than it takes to build a regular expression.
_MAX_LISTED: Final = 256
# Up to this number of documents of a long prefix are named one by one.
_MAX_NAMED: Final = 80
# More than the plans of one search have.
_MAX_CACHED: Final = 512


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
class Filters:
    """The filters and exclusions of a plan, as queries; `empty` if no document can match all that are required."""

    required: tuple[tuple[Occur, Query], ...]
    excluded: tuple[tuple[Occur, Query], ...]
    empty: bool

    def apply(self, query: Query) -> Query:
        """The query for the hits of another query that pass the filters."""
        if not self.required and not self.excluded:
            return query
        return Query.boolean_query([(Occur.Must, query), *self.required, *self.excluded])

    def excluding(self, index: OpenIndex, clauses: Sequence[Clause]) -> "Filters":
        """The filters that also exclude the documents that meet one of the clauses."""
        if not clauses:
            return self
        more = compile_filters(index, (), clauses)
        return Filters(self.required, (*self.excluded, *more.excluded), self.empty)


_NO_FILTERS: Final = Filters((), (), empty=False)


def compile_filters(index: OpenIndex, filters: Sequence[Clause], excluded: Sequence[Clause]) -> Filters:
    """Compile the filters and exclusions of a plan."""
    if not filters and not excluded:
        return _NO_FILTERS
    required = [query_of(index, clause) for clause in filters]
    return Filters(
        tuple((Occur.Must, query) for query in required if query is not None),
        tuple((Occur.MustNot, query) for clause in excluded for query in _possible(index, clause)),
        None in required,
    )


def _term(index: OpenIndex, field: str, text: str) -> Query | None:
    # An unknown reference is searched for too: those of removed documents, as of a shop that went under review, stay in
    # the dictionary, and the answers to both must take the same time (V2).
    if field not in _REFERENCES and not index.searcher.doc_freq(field, text):
        return None
    return Query.term_query(index.schema, field, text, _BASIC)


def _exact(index: OpenIndex, clause: Exact) -> tuple[Query, ...]:
    if len(clause.texts) > _MAX_SINGLE_TERMS:
        return (Query.term_set_query(index.schema, clause.field, list(clause.texts)),)
    found = (_term(index, exact_lookup(clause.field, text), text) for text in clause.texts)
    return tuple([query for query in found if query is not None])


def _prefix(index: OpenIndex, clause: Prefix) -> Query | None:
    searcher, text = index.searcher, clause.text
    column, equal = prefix_lookup(clause.field, text)
    if equal:
        return _term(index, column, text)
    begun = searcher.doc_freq(short_field(clause.field), text[:SHORT_PREFIX_MAX])
    if not begun:
        return None
    # A query for the beginning of a phrase reads the first terms with a prefix only.
    first = Query.phrase_prefix_query(index.schema, column, [text])
    known = 0 if begun <= _FEW else _in_order(index, first, 1).count
    terms: list[tuple[str, int]] = []
    if known <= _MAX_NAMED and (not known or len(text) > _MAX_FUZZY_PREFIX):
        # Of few documents the terms are few, or else of removed ones only.
        terms = searcher.terms_with_prefix(column, text)
        if len(terms) <= _FIRST_TERMS:
            return first if terms else None
    if 0 < len(terms) <= _MAX_LISTED:
        query = _any([Query.term_query(index.schema, column, term, _BASIC) for term, _ in terms])
    else:
        query = _walk(index, column, text)
    return query if query is None or known > _MAX_NAMED else _shortest(index, query, first, known)


def _walk(index: OpenIndex, column: str, text: str) -> Query:
    """The query of a prefix that builds an automaton, in half a millisecond for twenty Han characters.

    It visits all terms that begin with the prefix, of which a few shops can have thousands.
    """
    if len(text) <= _MAX_FUZZY_PREFIX:
        # With distance 0 this is a plain walk through the terms with this prefix.
        return Query.fuzzy_term_query(index.schema, column, text, distance=0, prefix=True)
    letters = "".join(f"\\x{{{ord(letter):x}}}" for letter in text)
    return Query.regex_query(index.schema, column, f"{letters}.*")


def _shortest(index: OpenIndex, query: Query, first: Query, known: int) -> Query | None:
    """What takes least time of what finds the documents of a query: a plan has most of its clauses several times.

    `first` finds `known` of the documents; few are found by their ranks; None if there are none.
    """
    found = _in_order(index, query, _MAX_NAMED)
    if found.count == known and known:
        return first
    if found.count > _MAX_NAMED:
        return query
    return documents_of(index, [index.searcher.doc(address)[index.rank][0] for _, address in found.hits])


def _in_order(index: OpenIndex, query: Query, limit: int) -> Any:  # noqa: ANN401 - the library's type hints lack the count
    return index.searcher.search(query, limit=limit, count=True, order_by_field=BAND_COLUMN, order=Order.Asc)


def documents_of(index: OpenIndex, ranks: Sequence[str]) -> Query | None:
    """The query of a few documents by their ranks; None without any."""
    # For so few terms a disjunction takes a quarter of the time of a set of terms.
    return _any([Query.term_query(index.schema, index.rank, rank, _BASIC) for rank in ranks])


def _infix(index: OpenIndex, clause: Infix) -> Query | None:
    runs = covering_runs(clause.text)
    if not runs:
        return _term(index, short_field(clause.field), clause.text)
    column = runs_field(clause.field)
    if len(runs) == 1:
        return _term(index, column, clause.text)
    if not all(index.searcher.doc_freq(column, run) for _, run in runs):
        return None
    return Query.phrase_query(index.schema, column, [(RUN_STEP * start, run) for start, run in runs])


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
    """The queries of which a document has to meet one to meet a clause.

    A disjunction of disjunctions reads its documents twice, so the parts of both are alternatives.
    """
    if not isinstance(clause, AnyOf | Exact):
        query = query_of(index, clause)
        return () if query is None else (query,)
    cached = index.alternatives
    try:
        return cached[clause]
    except KeyError:
        if len(cached) >= _MAX_CACHED:
            cached.clear()
        if isinstance(clause, Exact):
            found = _exact(index, clause)
        else:
            found = tuple([query for part in clause.clauses for query in _possible(index, part)])
        cached[clause] = found
        return found


def _any(queries: Sequence[Query]) -> Query | None:
    if len(queries) < 2:  # noqa: PLR2004 - one or none
        return queries[0] if queries else None
    return Query.boolean_query([(Occur.Should, query) for query in queries])


_COMPILERS: Final[dict[type, Callable[[OpenIndex, Any], Query | None]]] = {
    AllOf: _all_of,
    AnyOf: lambda index, clause: _any(_possible(index, clause)),
    NoneOf: lambda index, clause: _all_of(index, AllOf((clause,))),
    Exact: lambda index, clause: _any(_possible(index, clause)),
    Prefix: _prefix,
    Infix: _infix,
    Below: _below,
}
