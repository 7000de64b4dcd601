"""Clauses as queries of the embedded engine; what cannot have a hit is not asked at all.

How many documents hold a term is known without a search, so that most tiers of a rare text cost next to nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import tantivy
from tantivy import Occur, Query

from index_mappings.embedded import (
    HEAD_EDGE_MAX,
    far_part,
    head_field,
    headed,
    misspelt,
    near_part,
)
from index_mappings.roles import EDGE_MAX, edges_field, long_field, suffixes_field
from service.search.clauses import AllOf, AnyOf, Below, Clause, Exact, Infix, NoneOf, Prefix, Typo
from service.search.misspelling import looked_up

_BASIC: Final = "basic"
# So many terms are looked up one by one; more of them by one pass over the dictionary, which has its price.
_FEW_TEXTS: Final = 16


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


def head_query_of(index: OpenIndex, clause: Clause) -> Query | None:
    """The query for those in the head that meet a clause; None where the head does not know."""
    fields = headed(index.kind)
    match clause:
        case Prefix(field, text) if len(text) <= HEAD_EDGE_MAX and field in fields:
            return Query.term_query(index.schema, head_field(field), text, _BASIC)
        case AllOf(()) if fields:
            return _whole_head(index, fields)
        case AnyOf(parts) | AllOf(parts) if any(head_query_of(index, part) for part in parts):
            return _of_head(index, clause, fields)
        case _:
            return None


def _of_head(index: OpenIndex, clause: AnyOf | AllOf, fields: Sequence[str]) -> Query | None:
    """The same of several clauses of which the head knows some: others are asked of it as well, if they are plain."""
    some: list[Query] = []
    for part in clause.clauses:
        query = head_query_of(index, part)
        if query is None and isinstance(part, Exact):
            known = query_of(index, part)
            query = (
                None
                if known is None
                else Query.boolean_query([(Occur.Must, _whole_head(index, fields)), (Occur.Must, known)])
            )
            if query is None and isinstance(clause, AnyOf):
                continue  # nobody meets it
        if query is None:
            return None
        some.append(query)
    together = Occur.Should if isinstance(clause, AnyOf) else Occur.Must
    return Query.boolean_query([(together, query) for query in some])


def _whole_head(index: OpenIndex, fields: Sequence[str]) -> Query:
    # All of the head have the empty beginning.
    return Query.term_query(index.schema, head_field(fields[0]), "", _BASIC)


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
    if len(clause.text) <= EDGE_MAX:
        return _edge(index, clause.field, clause.text)
    return Query.fuzzy_term_query(index.schema, long_field(clause.field), clause.text, distance=0, prefix=True)


def _infix(index: OpenIndex, clause: Infix) -> Query | None:
    return Query.fuzzy_term_query(index.schema, suffixes_field(clause.field), clause.text, distance=0, prefix=True)


def _edge(index: OpenIndex, field: str, text: str) -> Query | None:
    """Those of which a text of the field begins with this one."""
    return _term(index, near_part(field, text) if field in misspelt(index.kind) else edges_field(field), text)


def _typo(index: OpenIndex, clause: Typo) -> Query | None:
    field, text = clause.field, clause.text
    if clause.distance > 1:
        return Query.fuzzy_term_query(index.schema, far_part(field, text), text, distance=clause.distance)
    found: list[Query | None] = [Query.fuzzy_term_query(index.schema, near_part(field, text), text, distance=1)]
    lacks, whole = looked_up(field, text)
    found += [_term(index, column, rest) for column, rests in lacks.items() for rest in rests]
    found += [_edge(index, field, beginning) for beginning in whole]
    return _any(found)


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


_EVERYTHING: Final = AllOf(())
_COMPILERS: Final[dict[type, Callable[[OpenIndex, Any], Query | None]]] = {
    Exact: _exact,
    Prefix: _prefix,
    Infix: _infix,
    Typo: _typo,
    Below: _below,
    AllOf: _all_of,
    AnyOf: _any_of,
    NoneOf: _none_of,
}
