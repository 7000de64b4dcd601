"""Plans as OpenSearch query bodies: pure functions, held by golden files.

The score is the tier and nothing else: constant scores under a dis_max, sorted by score, then by rank (M2).
"""

from functools import cache
from typing import Any

from index_mappings.ngrams import SHORT_MAX, short_field
from index_mappings.opensearch import sort_field, suffixes_field
from index_mappings.tiers import INFIX_MIN
from service.search.clauses import AllOf, AnyOf, Below, Clause, Exact, Infix, NoneOf, Prefix
from service.search.engine import Ask
from service.search.plan import Plan, exclusive


def search_body(ask: Ask, *, timeout_ms: int) -> dict[str, Any]:
    """The body of a search.

    It names no fields to return: the index keeps no others, and to pick them again costs an eighth of a page's time.

    Args:
        ask: what to look for.
        timeout_ms: how long a shard may take; a search that took longer counts as failed.
    """
    plan = ask.plan
    rank = _rank(plan.kind)
    single = len(plan.tiers) == 1
    body: dict[str, Any] = {
        "query": whole_query(plan),
        # One tier needs no score, and then the index's own order ends the search early.
        "sort": [rank] if single else [{"_score": "desc"}, rank],
        "from": ask.offset,
        "size": ask.limit,
        "track_total_hits": ask.total,
        "timeout": f"{timeout_ms}ms",
    }
    if ask.sorts:
        filters = {str(place): clause_body(clause) for place, clause in enumerate(exclusive(ask.sorts))}
        # The hits are filtered after the counting, so one look at the index gives both.
        body["post_filter"] = clause_body(NoneOf(ask.sorts))
        body["aggs"] = {"sorts": {"filters": {"filters": filters}}}
    return body


def every_body(plan: Plan, point_in_time: str, after: list[Any] | None, *, limit: int) -> dict[str, Any]:
    """One page of all hits of a plan of one tier, as of a point in time."""
    body: dict[str, Any] = {
        "query": whole_query(plan),
        "sort": [_rank(plan.kind)],
        "size": limit,
        "track_total_hits": False,
        "pit": {"id": point_in_time, "keep_alive": "1m"},
    }
    return body if after is None else {**body, "search_after": after}


def tier_of(plan: Plan, score: float | None) -> int:
    """The tier that a hit's score says; a plan of one tier is not scored."""
    return plan.tiers[0][0] if score is None else round(score) - 1


def clause_body(clause: Clause) -> dict[str, Any]:
    """One clause as a query."""
    match clause:
        case NoneOf(clauses):
            return {"bool": {"must_not": [clause_body(part) for part in clauses]}}
        case AllOf(()):
            return {"match_all": {}}
        case AnyOf(()):
            return {"match_none": {}}
        case AllOf((only,)) | AnyOf((only,)):
            return clause_body(only)
        case AllOf(clauses):
            return {"bool": {"filter": [clause_body(part) for part in clauses]}}
        case AnyOf(clauses):
            return {"bool": {"should": [clause_body(part) for part in clauses], "minimum_should_match": 1}}
        case _:
            return _look_up(clause)


def _look_up(clause: Exact | Prefix | Infix | Below) -> dict[str, Any]:
    match clause:
        case Exact(field, (text,)):
            return {"term": {field: text}}
        case Exact(field, texts):
            return {"terms": {field: list(texts)}}
        case Prefix(field, text) if len(text) <= SHORT_MAX:
            return {"term": {short_field(field): text}}
        case Prefix(field, text):
            return {"prefix": {field: text}}
        case Infix(field, text) if len(text) < INFIX_MIN:
            return {"term": {short_field(field): text}}
        case Infix(field, text):
            return {"prefix": {suffixes_field(field): text}}
        case Below(field, bound):
            return {"range": {field: {"lt": bound}}}


def whole_query(plan: Plan) -> dict[str, Any]:
    """The query of a whole plan."""
    query: dict[str, Any] = {"filter": [clause_body(clause) for clause in plan.filters]}
    if plan.excluded:
        query["must_not"] = [clause_body(clause) for clause in plan.excluded]
    if len(plan.tiers) == 1:
        query["filter"].append(clause_body(plan.tiers[0][1]))
    else:
        # Boosts start at one: a score of zero would be the lowest tier and no match alike.
        tiers = [{"constant_score": {"filter": clause_body(c), "boost": tier + 1}} for tier, c in plan.tiers]
        query["must"] = [{"dis_max": {"queries": tiers}}]
    return {"bool": query}


@cache
def _rank(kind: str) -> dict[str, str]:
    return {sort_field(kind): "asc"}
