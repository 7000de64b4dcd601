"""Compiles plans to OpenSearch requests; golden files contain the results.

The score of a hit is its tier: constant scores under a dis_max, sorted by score, then by rank (M2). Every search
requires a complete result (E3), and has a time limit after which the cluster cancels it, as the cluster may not notice
a closed connection.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any
from urllib.parse import quote

import orjson

from index_mappings.documents import sort_field
from index_mappings.ngrams import prefix_lookup, short_field, suffixes_field
from index_mappings.tiers import INFIX_MIN
from service.search.engine import SearchRequest
from service.search.plan import AllOf, AnyOf, Below, Clause, Exact, Infix, NoneOf, Plan, Prefix, exclusive


def search_body(request: SearchRequest, *, timeout_ms: int) -> dict[str, Any]:
    """The body of a search whose shards may take `timeout_ms`; one that exceeds it counts as failed.

    It has no list of fields to return: the index stores no others, and filtering them takes an eighth of a page's time.
    """
    plan = request.plan
    rank = _rank(plan.kind)
    unscored = len(plan.tiers) == 1 and plan.preferred is None
    body: dict[str, Any] = {
        "query": whole_query(plan),
        # One tier needs no score; without scores the sorted index ends the search early.
        "sort": [rank] if unscored else [{"_score": "desc"}, rank],
        "from": request.offset,
        "size": request.limit,
        "track_total_hits": request.total,
        "timeout": f"{timeout_ms}ms",
    }
    if request.buckets:
        filters = {str(index): clause_body(clause) for index, clause in enumerate(exclusive(request.buckets))}
        # A post filter applies to the hits only, so that one search also counts the documents in the buckets.
        body["post_filter"] = clause_body(NoneOf(request.buckets))
        body["aggs"] = {"buckets": {"filters": {"filters": filters}}}
    return body


def scan_body(plan: Plan, point_in_time: str, after: list[Any] | None, *, limit: int) -> dict[str, Any]:
    """The body of one batch of a scan of a plan with one tier, as of a point in time."""
    body: dict[str, Any] = {
        "query": whole_query(plan),
        "sort": [_rank(plan.kind)],
        "size": limit,
        "track_total_hits": False,
        "pit": {"id": point_in_time, "keep_alive": "1m"},
    }
    return body if after is None else {**body, "search_after": after}


def tier_of(plan: Plan, score: float | None) -> int:
    """The tier of a hit by its score; plans of one tier are not scored."""
    return plan.tiers[0][0] if score is None or len(plan.tiers) == 1 else int(score) - 1


def clause_body(clause: Clause) -> dict[str, Any]:
    """The query of a clause."""
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
            return _field_query(clause)


def _field_query(clause: Exact | Prefix | Infix | Below) -> dict[str, Any]:
    match clause:
        case Exact(field, (text,)):
            return {"term": {field: text}}
        case Exact(field, texts):
            return {"terms": {field: list(texts)}}
        case Prefix(field, text):
            looked_up, equal = prefix_lookup(field, text)
            return {"term" if equal else "prefix": {looked_up: text}}
        case Infix(field, text) if len(text) < INFIX_MIN:
            return {"term": {short_field(field): text}}
        case Infix(field, text):
            return {"prefix": {suffixes_field(field): text}}
        case Below(field, bound):
            return {"range": {field: {"lt": bound}}}


def whole_query(plan: Plan) -> dict[str, Any]:
    """The query of a plan, with filters and exclusions."""
    query: dict[str, Any] = {"filter": [clause_body(clause) for clause in plan.filters]}
    if plan.excluded:
        query["must_not"] = [clause_body(clause) for clause in plan.excluded]
    if len(plan.tiers) == 1:
        query["filter"].append(clause_body(plan.tiers[0][1]))
    else:
        # Boosts start at one: with a score of zero, a hit of the lowest tier would look like no match.
        tiers = [{"constant_score": {"filter": clause_body(c), "boost": tier + 1}} for tier, c in plan.tiers]
        query["must"] = [{"dis_max": {"queries": tiers}}]
    if plan.preferred is not None:
        # Less than the distance of two tiers.
        query["should"] = [{"constant_score": {"filter": clause_body(plan.preferred), "boost": 0.5}}]
    return {"bool": query}


def search_target(index: str, milliseconds: int) -> str:
    """The request target of one search, which the cluster cancels after so many milliseconds.

    The index is concrete, or empty if the body names a point in time instead.
    """
    path = f"/{quote(index)}" if index else ""
    return f"{path}/_search?allow_partial_search_results=false&cancel_after_time_interval={milliseconds}ms"


def searches_body(searches: Iterable[tuple[str, dict[str, Any]]], milliseconds: int) -> bytes:
    """The body of a multi-search of pairs of index and body, each with the limits of `search_target`."""
    lines: list[bytes] = []
    for index, body in searches:
        header = {
            "index": index,
            "allow_partial_search_results": False,
            "cancel_after_time_interval": f"{milliseconds}ms",
        }
        lines += [orjson.dumps(header), orjson.dumps(body)]
    return b"\n".join([*lines, b""])


@cache
def _rank(kind: str) -> dict[str, str]:
    return {sort_field(kind): "asc"}
