"""The encoded responses of /suggest and their entity tags, made without models, and the cache of those of one stamp.

The cache is bounded in bytes; what was used least recently leaves it first (C1).

Results depend on the folded text, the country and the limit; a response also on how the query was typed. So results are
cached by the former, and whole responses by the raw query string.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Generic, TypeVar

from orjson import dumps

from index_mappings.generations import Stamp
from index_mappings.tiers import suggestion_score
from service.search.protocol import Suggestion, SuggestResult
from service.suggest.query import ParsedQuery

V = TypeVar("V")

# Memory of an entry besides its bytes: the objects of key and value, and their slot in the table.
_ENTRY_BYTES: Final = 500
# The share of the bound for responses by raw query string, where most look-ups end.
_RESPONSE_SHARE: Final = 0.5
# Longer query strings are not typed by people.
_MAX_RAW: Final = 512


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A whole response.

    Attributes:
        tag: the entity tag, with quotes.
        query: the first part of the body.
        results: the second part, shared by responses with the same results.
        head: the lines of the head that belong to this response alone, to the blank line, and `query` behind them.
    """

    tag: bytes
    query: bytes
    results: bytes
    head: bytes

    @classmethod
    def of(cls, tag: bytes, query: bytes, results: bytes) -> "CachedResponse":
        """A response of these parts, with its head made once for all callers."""
        size = len(query) + len(results)
        head = b"etag: %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (tag, size, query)
        return cls(tag, query, results, head)


class BoundedCache(Generic[V]):
    """A least-recently-used cache with a bound in bytes."""

    def __init__(self, max_bytes: int) -> None:
        """Start empty; with a bound of 0 nothing is cached."""
        self._max = max_bytes
        self._entries: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        """How many values are cached."""
        return len(self._entries)

    def get(self, key: Hashable) -> V | None:
        """A cached value, which becomes the most recently used one."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Cache a value of `size` bytes; a value that alone exceeds the bound is not cached."""
        size += _ENTRY_BYTES
        if size > self._max:
            return
        self.size += size - (self._entries.pop(key)[1] if key in self._entries else 0)
        self._entries[key] = (value, size)
        while self.size > self._max:
            _, (_, freed) = self._entries.popitem(last=False)
            self.size -= freed

    def clear(self) -> None:
        """Remove everything."""
        self._entries.clear()
        self.size = 0


class ResponseCache:
    """The responses and results of the newest stamp."""

    def __init__(self, max_bytes: int) -> None:
        """Start empty, with a bound on all of it in bytes; 0 caches nothing."""
        self._responses = BoundedCache[CachedResponse](int(max_bytes * _RESPONSE_SHARE))
        self._results = BoundedCache[bytes](max_bytes - int(max_bytes * _RESPONSE_SHARE))
        self._stamp: tuple[str, int] | None = None
        self.enabled = max_bytes > 0

    @property
    def size(self) -> int:
        """The cached bytes."""
        return self._responses.size + self._results.size

    def response(self, stamp: tuple[str, int], raw: bytes) -> CachedResponse | None:
        """The response to a raw query string."""
        return self._responses.get(raw) if stamp == self._stamp else None

    def put_response(self, stamp: tuple[str, int], raw: bytes, response: CachedResponse) -> None:
        """Cache a response."""
        if self.enabled and len(raw) <= _MAX_RAW:
            self._clear_older(stamp)
            # The results count here too, because they may have been evicted from the other cache.
            parts = (raw, response.query, response.results, response.tag, response.head)
            self._responses.put(raw, response, sum(map(len, parts)))

    def results(self, stamp: tuple[str, int], query: Hashable) -> bytes | None:
        """The encoded results of a folded query."""
        return self._results.get(query) if stamp == self._stamp else None

    def put_results(self, stamp: tuple[str, int], query: Hashable, results: bytes) -> None:
        """Cache encoded results."""
        if self.enabled:
            self._clear_older(stamp)
            self._results.put(query, results, len(results))

    def _clear_older(self, stamp: tuple[str, int]) -> None:
        if stamp != self._stamp:
            self._responses.clear()
            self._results.clear()
            self._stamp = stamp


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
