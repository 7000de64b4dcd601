"""The wire format of /suggest: strict parsing of the query string (R3), encoded responses, their entity tags and cache.

Results depend on the folded text, the country and the limit; a response also on how the query was typed. So results are
cached by the former, and whole responses by the raw query string. The cache has those of one stamp, in bounded memory
(C1).
"""

import re
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Generic, TypeVar
from urllib.parse import unquote_to_bytes

from orjson import dumps
from pydantic_core import PydanticCustomError

from index_mappings.countries import COUNTRY_CODES
from index_mappings.generations import Stamp
from index_mappings.tiers import suggestion_score
from service.errors import FieldError, InvalidInputError
from service.tools.request import country_code, invalid, shown_name
from shop_directory.search.bounds import DEFAULT_SUGGESTIONS, MAX_Q, MAX_SUGGESTIONS, spaced
from shop_directory.typeahead.suggestions import Suggestion, SuggestQuery, SuggestResult

V = TypeVar("V")

MAX_QUERY_STRING: Final = 16 * 1024

_PARAMETERS: Final = ("q", "limit", "country")
# Widgets and campaign links add these (R3).
_IGNORED_PREFIXES: Final = ("_", "utm_")
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_LIMIT: Final = re.compile("[0-9]{1,9}")
# Most query strings: nothing but spaces is escaped, so only limit and country can be invalid.
_COMMON: Final = re.compile(
    rb"q=((?:[0-9A-Za-z+._~*-]|%%20){0,%d})(?:&limit=([0-9]{1,2}))?(?:&country=([A-Za-z]{2}))?" % MAX_Q
)
# Memory of an entry besides its bytes: the objects of key and value, and their slot in the table.
_ENTRY_BYTES: Final = 500
# The share of the bound for responses by raw query string, where most look-ups end.
_RESPONSE_SHARE: Final = 0.5
# Longer query strings are not typed by people.
_MAX_RAW: Final = 512


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A valid query string: `echo` is q as sent, decoded."""

    echo: str
    query: SuggestQuery


def parse(query_string: bytes) -> ParsedQuery:
    """Parse a raw query string; InvalidInputError names every invalid parameter, never a value."""
    if common := _COMMON.fullmatch(query_string):
        q, given_limit, given_country = common.groups()
        text = q.replace(b"+", b" ").replace(b"%20", b" ").decode("ascii")
        limit = DEFAULT_SUGGESTIONS if given_limit is None else int(given_limit)
        country = None if given_country is None else given_country.decode("ascii").upper()
        if (country is None or country in COUNTRY_CODES) and 1 <= limit <= MAX_SUGGESTIONS:
            return ParsedQuery(text, SuggestQuery.of(text, country, limit))
    if len(query_string) > MAX_QUERY_STRING:
        raise InvalidInputError(f"The query string may hold at most {MAX_QUERY_STRING:,} bytes.")
    given: dict[str, str] = {}
    errors: dict[str, FieldError] = {}
    for pair in filter(None, query_string.split(b"&")):
        name_part, _, value_part = pair.partition(b"=")
        name = _decode(name_part)
        if name is not None and name.startswith(_IGNORED_PREFIXES):
            continue
        shown = shown_name(name or "")
        value = _decode(value_part)
        if name not in _PARAMETERS:
            allowed = ", ".join(_PARAMETERS)
            errors[shown] = FieldError(shown, f"is not a parameter of /suggest; it takes {allowed}")
        elif name in given:
            errors[shown] = FieldError(shown, "is given more than once")
        elif value is None:
            errors[shown] = FieldError(shown, "must be UTF-8 with valid percent-escapes")
        given[name or ""] = value or ""
    return _validate(given, errors)


def _validate(given: dict[str, str], errors: dict[str, FieldError]) -> ParsedQuery:
    def add_error(name: str, message: str) -> None:
        errors.setdefault(name, FieldError(name, message))

    echo = given.get("q")
    text = spaced(echo or "")
    if echo is None:
        add_error("q", "is required; it may be empty")
    elif wrong := fault_of_text(text):
        add_error("q", wrong)
    limit = DEFAULT_SUGGESTIONS
    if stated := given.get("limit"):
        limit = int(stated) if _LIMIT.fullmatch(stated) else 0
        if not 1 <= limit <= MAX_SUGGESTIONS:
            add_error("limit", f"must be a whole number from 1 to {MAX_SUGGESTIONS}")
    country = None
    if stated := given.get("country"):
        try:
            country = country_code(stated)
        except PydanticCustomError as error:
            add_error("country", error.message())
    if errors:
        raise invalid(tuple(errors.values()))
    return ParsedQuery(echo=echo or "", query=SuggestQuery.of(text, country, limit))


def fault_of_text(text: str) -> str | None:
    """What is wrong with typed text; None if nothing is."""
    if len(text) > MAX_Q:
        return f"may have at most {MAX_Q} characters"
    return "holds a control character" if _CONTROL.search(text) else None


def _decode(part: bytes) -> str | None:
    """Form-decoded text; None when it is not UTF-8 or an escape is malformed."""
    if _BAD_ESCAPE.search(part):
        return None
    try:
        return unquote_to_bytes(part.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A whole response, whose body is `query`, then `results`; responses with the same results share these.

    `head` are the lines of the head that belong to this response alone, to the blank line, and `query` behind them. The
    tag has quotes.
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


# The results of a request that found nothing.
NO_RESULTS: Final = encode_results(SuggestResult((), ()))


def text_of(query_string: bytes) -> str:
    """The typed text of a query string that `parse` has accepted."""
    return parse(query_string).echo


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
