"""Servers whose /suggest is wrong in one way."""

from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp

from tests.people.check.breaking import Asked, Breakage, Changed, Document, backwards, more, put, rewriting, turn

SUGGEST: Final = "/suggest"


def retyping(change: Callable[[bytes], bytes]) -> Callable[[ASGIApp], ASGIApp]:
    """A server that takes another query string of /suggest than it was given."""

    def before(asked: Asked) -> None:
        if asked.path == SUGGEST:
            asked.query = change(asked.query)

    return lambda app: Changed(app, before=before)


def _without(*pairs: bytes) -> Callable[[bytes], bytes]:
    return lambda query: b"&".join(pair for pair in query.split(b"&") if pair not in pairs)


def _country_ignored(query: bytes) -> bytes:
    pairs = query.split(b"&")
    country = [pair for pair in pairs if pair.startswith(b"country=")]
    return query if len(country) != 1 or country == [b"country=XX"] else _without(*country)(query)


def _only_lower_case_is_wrong(query: bytes) -> bytes:
    pairs = query.split(b"&")
    return b"&".join(b"country=XX" if pair.startswith(b"country=") and pair[8:].islower() else pair for pair in pairs)


def _first_only(query: bytes) -> bytes:
    first = {pair.partition(b"=")[0]: pair for pair in reversed(query.split(b"&"))}
    return b"&".join(pair for pair in query.split(b"&") if first[pair.partition(b"=")[0]] == pair)


def _no_typos(answer: Document) -> None:
    answer["shops"] = [shop for shop in answer["shops"] if shop["score"] >= 4 or not answer["query"]]


def _whole_names_only(answer: Document) -> None:
    answer["shops"] = [shop for shop in answer["shops"] if shop["score"] >= 8 or not answer["query"]]


def _popularity_not_looked_at(answer: Document) -> None:
    answer["shops"].sort(key=lambda shop: (-int(shop["score"]), shop["id"]))


BREAKAGES: Final = (
    Breakage("I68", "takes a missing q for a blank one", retyping(lambda query: query if b"q=" in query else b"q=")),
    Breakage("I69", "forgives no typing errors", rewriting(SUGGEST, _no_typos)),
    Breakage("I69", "finds whole names only", rewriting(SUGGEST, _whole_names_only)),
    Breakage("I69", "puts the least popular first", rewriting(SUGGEST, turn("shops", backwards))),
    Breakage("I69", "orders by id", rewriting(SUGGEST, _popularity_not_looked_at)),
    Breakage("I70", "gives ten", retyping(lambda query: query if b"limit=" in query else query + b"&limit=10")),
    Breakage("I70", "gives one at least four", retyping(lambda query: query.replace(b"limit=3", b"limit=4"))),
    Breakage("I71", "does not look at the country", retyping(_country_ignored)),
    Breakage("I71", "takes a country that there is not", retyping(_without(b"country=XX"))),
    Breakage("I71", "refuses a country in small letters", retyping(_only_lower_case_is_wrong)),
    Breakage("I72", "echoes the folded q", rewriting(SUGGEST, turn("query", lambda query: query.strip().lower()))),
    Breakage("I72", "shows a field more", rewriting(SUGGEST, put("shops.*.popularity", 1.0))),
    Breakage("I72", "sends scores as text", rewriting(SUGGEST, turn("shops.*.score", str))),
    Breakage("M10", "cuts a limit of 21", retyping(lambda query: query.replace(b"limit=21", b"limit=20"))),
    Breakage("M10", "takes a limit of 0", retyping(_without(b"limit=0"))),
    Breakage("M10", "counts otherwise than list_categories", rewriting(SUGGEST, turn("categories.*.count", more))),
    Breakage("R3.query_string", "drops what it does not know", retyping(_without(b"contry=DE"))),
    Breakage("R3.query_string", "takes the first of two", retyping(_first_only)),
    Breakage("R3.query_string", "refuses a campaign's mark", retyping(lambda query: query.replace(b"utm_", b"mtm_"))),
)
