"""Typeahead: the query string as typed, read strictly, and the answer, without models built a request (M9, M10, R3)."""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from urllib.parse import unquote_to_bytes

from pydantic_core import PydanticCustomError

from index_mappings.countries import COUNTRY_CODES
from index_mappings.generations import Stamp
from index_mappings.rank import suggestion_score
from service.errors import FieldError, InvalidInputError
from service.search.protocol import Suggested, Suggestion, SuggestQuery
from service.tools.fields import country_code, spaced
from service.tools.request import invalid, shown_name
from service.wire import encode

MAX_Q: Final = 256
MAX_SUGGESTIONS: Final = 20
MAX_QUERY_STRING: Final = 16 * 1024
DEFAULT_SUGGESTIONS: Final = 8

_PARAMETERS: Final = ("q", "limit", "country")
# Widgets and campaign links add these (R3).
_FOREIGN: Final = ("_", "utm_")
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_LIMIT: Final = re.compile("[0-9]{1,9}")
# What most people type, as forms and scripts send it: nothing in it is escaped but spaces, and nothing can be wrong but
# limit and country.
_USUAL: Final = re.compile(
    rb"q=((?:[0-9A-Za-z+._~*-]|%%20){0,%d})(?:&limit=([0-9]{1,2}))?(?:&country=([A-Za-z]{2}))?" % MAX_Q
)


@dataclass(frozen=True, slots=True)
class Typed:
    """What was asked.

    Attributes:
        echo: q as sent, decoded.
        query: the same as the search takes it.
    """

    echo: str
    query: SuggestQuery


def parse(query_string: bytes) -> Typed:
    """Read a raw query string.

    Raises:
        InvalidInputError: naming every parameter that is wrong, never its value.
    """
    if usual := _USUAL.fullmatch(query_string):
        q, limit_told, country_told = usual.groups()
        text = q.replace(b"+", b" ").replace(b"%20", b" ").decode("ascii")
        limit = DEFAULT_SUGGESTIONS if limit_told is None else int(limit_told)
        country = None if country_told is None else country_told.decode("ascii").upper()
        if (country is None or country in COUNTRY_CODES) and 1 <= limit <= MAX_SUGGESTIONS:
            return Typed(text, SuggestQuery(text, country, limit))
    if len(query_string) > MAX_QUERY_STRING:
        raise InvalidInputError(f"The query string may hold at most {MAX_QUERY_STRING:,} bytes.")
    given: dict[str, str] = {}
    errors: dict[str, FieldError] = {}
    for pair in filter(None, query_string.split(b"&")):
        name_part, _, value_part = pair.partition(b"=")
        name = _decoded(name_part)
        if name is not None and name.startswith(_FOREIGN):
            continue
        shown = shown_name(name or "")
        value = _decoded(value_part)
        if name not in _PARAMETERS:
            allowed = ", ".join(_PARAMETERS)
            errors[shown] = FieldError(shown, f"is not a parameter of /suggest; it takes {allowed}")
        elif name in given:
            errors[shown] = FieldError(shown, "is given more than once")
        elif value is None:
            errors[shown] = FieldError(shown, "must be UTF-8 with valid percent-escapes")
        given[name or ""] = value or ""
    return _typed(given, errors)


def lead_of(typed: Typed) -> bytes:
    """The beginning of an answer's bytes: what was asked."""
    return b'{"query":' + encode(typed.echo)


def tail_of(suggested: Suggested) -> bytes:
    """The rest of an answer's bytes: what was found. Lead and tail together are one JSON object."""
    categories = b",".join(
        [
            encode({"category": category.name, "slug": category.slug, "count": category.count})
            for category in suggested.categories
        ]
    )
    shops = b",".join([found.told or _told(found) for found in suggested.shops])
    return b',"categories":[%b],"shops":[%b]}' % (categories, shops)


def entity_tag(stamp: Stamp, typed: Typed) -> str:
    """A strong tag: the same tag, the same bytes (C1)."""
    asked = f"{stamp.generation}\n{stamp.sequence}\n{typed.query.limit}\n{typed.query.country}\n{typed.echo}"
    return f'"{blake2b(asked.encode(), digest_size=16).hexdigest()}"'


def _told(found: Suggestion) -> bytes:
    """A suggestion as it is sent, which engines that keep suggestions are asked for again and again."""
    shop, score = found.shop, suggestion_score(found.tier, found.shop.popularity)
    wire = {"id": shop.id, "name": shop.name, "domain": shop.domain, "category": shop.category, "score": score}
    # Copied, as it may be kept for long: what the encoder makes holds some four kilobytes, however short it is.
    found.told = b"%b" % encode(wire)
    return found.told


def _typed(given: dict[str, str], errors: dict[str, FieldError]) -> Typed:
    def fails(name: str, message: str) -> None:
        errors.setdefault(name, FieldError(name, message))

    echo = given.get("q")
    text = spaced(echo or "")
    if echo is None:
        fails("q", "is required; it may be empty")
    elif len(text) > MAX_Q:
        fails("q", f"may have at most {MAX_Q} characters")
    elif _CONTROL.search(text):
        fails("q", "holds a control character")
    limit = DEFAULT_SUGGESTIONS
    if asked := given.get("limit"):
        limit = int(asked) if _LIMIT.fullmatch(asked) else 0
        if not 1 <= limit <= MAX_SUGGESTIONS:
            fails("limit", f"must be a whole number from 1 to {MAX_SUGGESTIONS}")
    country = None
    if asked := given.get("country"):
        try:
            country = country_code(asked)
        except PydanticCustomError as error:
            fails("country", error.message())
    if errors:
        raise invalid(tuple(errors.values()))
    return Typed(echo=echo or "", query=SuggestQuery(text=text, country=country, limit=limit))


def _decoded(part: bytes) -> str | None:
    """Form-decoded text; None when it is not UTF-8 or an escape is broken."""
    if _BAD_ESCAPE.search(part):
        return None
    try:
        return unquote_to_bytes(part.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        return None
