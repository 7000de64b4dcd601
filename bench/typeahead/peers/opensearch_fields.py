"""The mappings and queries of the raw OpenSearch peers, after its own guide to search-as-you-type and completion.

Text is folded by OpenSearch's analysis: nothing of this project's folding, forms, keys and tiers is used.
"""

from typing import Any, Final

from bench.typeahead.peers.shops import Shop

EVERYWHERE: Final = "any"
SHOWN: Final = ["id", "name", "domain", "category"]
# From the guide: no typo in words of up to three characters, one up to seven, then two.
_TYPOS: Final = "AUTO:4,8"
_WEIGHTS: Final = 10_000
_WHOLE_FIRST: Final = 20_000
_INPUTS_MAX: Final = 40
_ANALYSIS: Final = {
    "char_filter": {
        "url": {
            "type": "pattern_replace",
            "pattern": r"^(?i:https?://(?:www\.)?|www\.)([^/?#\s]+).*$",
            "replacement": "$1",
        },
        # Without this one a domain would be one word.
        "marks": {"type": "mapping", "mappings": ["'=>", "’=>", "`=>", "´=>", r".=>\u0020"]},
    },
    "filter": {"beginnings": {"type": "edge_ngram", "min_gram": 1, "max_gram": 20}},
    "analyzer": {
        "folded": {
            "type": "custom",
            "tokenizer": "standard",
            "char_filter": ["url", "marks"],
            "filter": ["lowercase", "asciifolding"],
        },
        "beginnings": {
            "type": "custom",
            "tokenizer": "standard",
            "char_filter": ["url", "marks"],
            "filter": ["lowercase", "asciifolding", "beginnings"],
        },
    },
    "normalizer": {"folded": {"type": "custom", "char_filter": ["marks"], "filter": ["lowercase", "asciifolding"]}},
}
SETTINGS: Final = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": -1, "analysis": _ANALYSIS}
_STORED_ONLY: Final[dict[str, Any]] = {"type": "keyword", "index": False, "doc_values": False}
_SHOWN_FIELDS: Final = {"id": _STORED_ONLY, "domain": _STORED_ONLY, "category": _STORED_ONLY}

AS_YOU_TYPE: Final[dict[str, Any]] = {
    "properties": {
        **_SHOWN_FIELDS,
        "name": {"type": "search_as_you_type", "analyzer": "folded"},
        "words": {"type": "search_as_you_type", "analyzer": "folded"},
        "beginnings": {"type": "text", "analyzer": "beginnings", "search_analyzer": "folded", "norms": False},
        "whole": {"type": "keyword", "normalizer": "folded", "ignore_above": 300},
        "with_category": {"type": "search_as_you_type", "analyzer": "folded"},
        "country": {"type": "keyword"},
        "popularity": {"type": "rank_feature"},
    }
}
_COMPLETION: Final = {"type": "completion", "analyzer": "folded", "max_input_length": 60}
COMPLETION: Final[dict[str, Any]] = {
    "properties": {
        **_SHOWN_FIELDS,
        "name": _STORED_ONLY,
        "anywhere": _COMPLETION,
        "market": {**_COMPLETION, "contexts": [{"name": "country", "type": "category"}]},
    }
}


def as_you_type_document(shop: Shop) -> dict[str, Any]:
    """A shop for `AS_YOU_TYPE`."""
    return {
        **_shown(shop),
        "words": list(shop.texts),
        "beginnings": list(shop.texts),
        "whole": list(shop.texts),
        "with_category": [*shop.texts, *shop.category_names],
        "country": list(shop.countries) or [EVERYWHERE],
        **({"popularity": shop.popularity} if shop.popularity else {}),
    }


def as_you_type_query(q: str, country: str | None, limit: int) -> dict[str, Any]:
    """Every word, the last as a prefix; beginnings of whole texts first; typos and missing words count little."""
    wanted: dict[str, Any] = {"match_all": {}}
    if typed := q.strip():
        wanted = {
            "bool": {
                "should": [
                    {"term": {"whole": {"value": typed, "boost": 8}}},
                    {"prefix": {"whole": {"value": typed, "boost": 8}}},
                    _prefixed(typed, "name", 2),
                    _prefixed(typed, "words", 1),
                    _prefixed(typed, "with_category", 0.5),
                    {"match": {"beginnings": _near(typed, 0.2)}},
                    {"match": {"words": {"query": typed, "minimum_should_match": "50%", "boost": 0.05}}},
                ]
            }
        }
    popular = {"rank_feature": {"field": "popularity", "boost": 3, "linear": {}}}
    filters = [] if country is None else [{"terms": {"country": [country, EVERYWHERE]}}]
    return {
        "query": {"bool": {"must": [wanted], "should": [popular], "filter": filters}},
        "size": limit,
        "track_total_hits": False,
        "_source": SHOWN,
    }


def completion_document(shop: Shop) -> dict[str, Any]:
    """A shop for `COMPLETION`: every text from each of its words on is what it completes."""
    later: list[str] = []
    for text in shop.texts:
        words = text.split()
        later += [" ".join(words[at:]) for at in range(1, len(words))]
    weight = 1 + round(shop.popularity * _WEIGHTS)
    # What begins a whole text goes before what begins a later word.
    typed = [{"input": list(dict.fromkeys(shop.texts)), "weight": weight + _WHOLE_FIRST}]
    if later:
        typed.append({"input": list(dict.fromkeys(later))[:_INPUTS_MAX], "weight": weight})
    markets = {"country": list(shop.countries) or [EVERYWHERE]}
    return {**_shown(shop), "anywhere": typed, "market": [{**each, "contexts": markets} for each in typed]}


def completion_query(q: str, country: str | None, limit: int) -> dict[str, Any]:
    """What begins as typed, and what nearly does, in one request; the first goes before the second."""
    # A shop is counted by each of its texts that is completed, its domain often in addition to its name.
    options = 2 * limit
    field: dict[str, Any] = {"field": "anywhere", "size": options}
    if country is not None:
        field = {"field": "market", "size": options, "contexts": {"country": [country, EVERYWHERE]}}
    near = {"fuzziness": _TYPOS, "min_length": 4, "prefix_length": 0}
    asked = {
        "begins": {"prefix": q, "completion": field},
        "near": {"prefix": q, "completion": {**field, "size": limit, "fuzzy": near}},
    }
    return {"suggest": asked, "size": 0, "_source": SHOWN}


def _shown(shop: Shop) -> dict[str, Any]:
    return {"id": shop.id, "name": shop.name, "domain": shop.domain, "category": shop.category}


def _prefixed(typed: str, field: str, boost: float) -> dict[str, Any]:
    fields = [field, f"{field}._2gram", f"{field}._3gram"]
    return {"multi_match": {"query": typed, "type": "bool_prefix", "fields": fields, "operator": "and", "boost": boost}}


def _near(typed: str, boost: float) -> dict[str, Any]:
    return {"query": typed, "operator": "and", "fuzziness": _TYPOS, "boost": boost}
