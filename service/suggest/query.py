"""Strict parsing of the query string of /suggest (R3)."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from pydantic_core import PydanticCustomError

from index_mappings.countries import COUNTRY_CODES
from service.errors import FieldError, InvalidInputError
from service.search.protocol import SuggestQuery
from service.tools.request import country_code, invalid, shown_name, spaced

MAX_Q: Final = 256
MAX_SUGGESTIONS: Final = 20
MAX_QUERY_STRING: Final = 16 * 1024
DEFAULT_SUGGESTIONS: Final = 8

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


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A valid query string.

    Attributes:
        echo: q as sent, decoded.
        query: the query for the search.
    """

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
    elif len(text) > MAX_Q:
        add_error("q", f"may have at most {MAX_Q} characters")
    elif _CONTROL.search(text):
        add_error("q", "holds a control character")
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


def _decode(part: bytes) -> str | None:
    """Form-decoded text; None when it is not UTF-8 or an escape is malformed."""
    if _BAD_ESCAPE.search(part):
        return None
    try:
        return unquote_to_bytes(part.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        return None
