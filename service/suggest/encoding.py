"""The body of a /suggest response and its entity tag, encoded without models (M9, M10, C1)."""

from hashlib import blake2b

from orjson import dumps

from index_mappings.generations import Stamp
from index_mappings.tiers import suggestion_score
from service.search.protocol import Suggestion, SuggestResult
from service.suggest.query import ParsedQuery


def encode_query(parsed: ParsedQuery) -> bytes:
    """Encode the first part of a body, the query; `encode_results` completes the JSON object."""
    return b'{"query":' + dumps(parsed.echo)


def encode_results(suggested: SuggestResult) -> bytes:
    """Encode the second part of a body: the categories and the shops."""
    categories = b",".join(
        [
            dumps({"category": category.name, "slug": category.slug, "count": category.count})
            for category in suggested.categories
        ]
    )
    shops = b",".join([found.encoded or _encode_shop(found) for found in suggested.shops])
    return b',"categories":[%b],"shops":[%b]}' % (categories, shops)


def entity_tag(stamp: Stamp, parsed: ParsedQuery) -> bytes:
    """The strong entity tag of a response, with quotes: the same tag means the same bytes (C1)."""
    query = parsed.query
    identity = f"{stamp.generation}\n{stamp.sequence}\n{query.limit}\n{query.country}\n{parsed.echo}"
    return b'"%b"' % blake2b(identity.encode(), digest_size=16).hexdigest().encode()


def _encode_shop(found: Suggestion) -> bytes:
    """Encode a suggested shop, and store the bytes in the suggestion, which the typeahead caches."""
    shop, score = found.shop, suggestion_score(found.tier, found.shop.popularity)
    wire = {"id": shop.id, "name": shop.name, "domain": shop.domain, "category": shop.category, "score": score}
    # A copy, because it may be cached for long: the encoder's own result occupies about four kilobytes.
    found.encoded = b"%b" % dumps(wire)
    return found.encoded
