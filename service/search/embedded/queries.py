"""Clauses as queries of the embedded engine; what cannot have a hit is not asked at all.

How many documents hold a term is known without a search, so that most tiers of a rare text cost next to nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import tantivy
from tantivy import Occur, Query

from index_mappings.embedded import RUN_STEP, runs_field
from index_mappings.ngrams import SHORT_MAX, short_field, trigrams
from service.search.clauses import AllOf, AnyOf, Below, Clause, Exact, Infix, NoneOf, Prefix

_BASIC: Final = "basic"
# So many terms are looked up one by one; more of them by one pass over the dictionary, which has its price.
_FEW_TEXTS: Final = 16
# Longer texts are looked for among the terms before they are asked for.
_LONG: Final = 24


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """One index, as of one moment.

    Attributes:
        kind: of its documents.
        rank: the field that orders them.
        schema: its columns.
        searcher: its content.
    """

    kind: str
    rank: str
    schema: tantivy.Schema
    searcher: tantivy.Searcher


def query_of(index: OpenIndex, clause: Clause) -> Query | None:
    """The query of a clause; None where no document can meet it."""
    return _COMPILERS[type(clause)](index, clause)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What every hit of a plan must meet and must not meet, as queries.

    Attributes:
        needed, refused: the queries.
        none: whether no document meets all that is needed.
    """

    needed: tuple[tuple[Occur, Query], ...]
    refused: tuple[tuple[Occur, Query], ...]
    none: bool

    def around(self, query: Query) -> Query:
        """Those hits of a query that keep within the bounds."""
        if not self.needed and not self.refused:
            return query
        return Query.boolean_query([(Occur.Must, query), *self.needed, *self.refused])

    def without(self, index: OpenIndex, clauses: Sequence[Clause]) -> "Bounds":
        """The bounds that also refuse what meets one of the clauses."""
        if not clauses:
            return self
        more = bounds_of(index, (), clauses)
        return Bounds(self.needed, (*self.refused, *more.refused), self.none)


_UNBOUNDED: Final = Bounds((), (), none=False)


def bounds_of(index: OpenIndex, filters: Sequence[Clause], excluded: Sequence[Clause]) -> Bounds:
    """The bounds of filters and exclusions."""
    if not filters and not excluded:
        return _UNBOUNDED
    needed = [query_of(index, clause) for clause in filters]
    refused = [query_of(index, clause) for clause in excluded]
    return Bounds(
        tuple((Occur.Must, query) for query in needed if query is not None),
        tuple((Occur.MustNot, query) for query in refused if query is not None),
        None in needed,
    )


def _term(index: OpenIndex, field: str, text: str) -> Query | None:
    if not index.searcher.doc_freq(field, text):
        return None
    return Query.term_query(index.schema, field, text, _BASIC)


def _exact(index: OpenIndex, clause: Exact) -> Query | None:
    if len(clause.texts) > _FEW_TEXTS:
        return Query.term_set_query(index.schema, clause.field, list(clause.texts))
    return _any([_term(index, clause.field, text) for text in clause.texts])


def _prefix(index: OpenIndex, clause: Prefix) -> Query | None:
    if len(clause.text) <= SHORT_MAX:
        return _term(index, short_field(clause.field), clause.text)
    if len(clause.text) > _LONG and not _begins_any(index, clause):
        return None
    # Without an error allowed it is a plain walk through the part of the dictionary that begins so.
    return Query.fuzzy_term_query(index.schema, clause.field, clause.text, distance=0, prefix=True)


def _begins_any(index: OpenIndex, clause: Prefix) -> bool:
    """Whether a document has a term that begins so.

    A search for a beginning costs the square of its number of characters, 20 ms for 200 Han characters, and a plan has
    a dozen of them. This query is a range of terms, but of the first fifty only: enough to see whether there are any.
    """
    query = Query.phrase_prefix_query(index.schema, clause.field, [clause.text])
    return bool(index.searcher.search(query, limit=1, count=False).hits)


def _infix(index: OpenIndex, clause: Infix) -> Query | None:
    found = trigrams(clause.text)
    if not found:
        return _term(index, short_field(clause.field), clause.text)
    column = runs_field(clause.field)
    terms = [_term(index, column, run) for run in found]
    if len(terms) == 1 or None in terms:
        return terms[0] if len(terms) == 1 else None
    return Query.phrase_query(index.schema, column, [(RUN_STEP * place, run) for place, run in enumerate(found)])


def _below(index: OpenIndex, clause: Below) -> Query | None:
    integer = tantivy.FieldType.Integer
    return Query.range_query(index.schema, clause.field, integer, upper_bound=clause.bound, include_upper=False)


def _none_of(index: OpenIndex, clause: NoneOf) -> Query | None:
    refused = [query_of(index, part) for part in clause.clauses]
    queries = [(Occur.MustNot, query) for query in refused if query is not None]
    return Query.boolean_query([(Occur.Must, Query.all_query()), *queries]) if queries else Query.all_query()


def _all_of(index: OpenIndex, clause: AllOf) -> Query | None:
    needed: list[Query] = []
    for part in clause.clauses:
        query = query_of(index, part)
        if query is None:
            return None
        needed.append(query)
    if not needed:
        return Query.all_query()
    return needed[0] if len(needed) == 1 else Query.boolean_query([(Occur.Must, query) for query in needed])


def _any_of(index: OpenIndex, clause: AnyOf) -> Query | None:
    return _any([query_of(index, part) for part in clause.clauses])


def _any(found: Sequence[Query | None]) -> Query | None:
    queries = [query for query in found if query is not None]
    if len(queries) < 2:  # noqa: PLR2004 - one or none
        return queries[0] if queries else None
    return Query.boolean_query([(Occur.Should, query) for query in queries])


_COMPILERS: Final[dict[type, Callable[[OpenIndex, Any], Query | None]]] = {
    Exact: _exact,
    Prefix: _prefix,
    Infix: _infix,
    Below: _below,
    AllOf: _all_of,
    AnyOf: _any_of,
    NoneOf: _none_of,
}
