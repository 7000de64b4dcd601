"""What `bench.cost` asks: requests of each kind about the shops of one catalogue, from many callers behind a proxy.

Every request is a caller's of its own, as a shared limiter has more to do for one caller who asks all the time
(`bench.quotas`).
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from index_mappings.text import fold
from tests.processes.load.plan import NUMBER, Question
from tests.processes.load.questions import http, mcp, suggestion, tool
from tests.support.rpc import Era

_EACH: Final = 1_000
_SEED: Final = 20_261_205
_HOST: Final = "host: 127.0.0.1"
# What a directory may be asked, of a hundred requests; nobody's traffic was looked at.
MIX: Final = {
    "suggest, 2 letters": 30,
    "suggest, 6 letters": 45,
    "suggest, misspelt": 15,
    "find_shop, a page of 10": 4,
    "get_shop over REST": 2,
    "list_coupons of a shop": 2,
    "get_shipping_policy": 1,
    "get_shop over MCP, modern": 1,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Requests that cost alike.

    Attributes:
        title: of them.
        questions: as they are sent, in turns by chance.
        status: that every answer has.
    """

    title: str
    questions: tuple[Question, ...]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Named:
    """A public shop as callers name it."""

    name: str
    domain: str


class Catalogue:
    """The public shops of a catalogue's directory, and which of them have what."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.shops = {
            line["id"]: Named(fold(line["name"]), line["domain"])
            for line in lines(directory / "shops.ndjson")
            if line["visibility"] == "public"
        }

    def having(self, belonging: str) -> list[Named]:
        """The shops with coupons, or another file's name."""
        ids = {line["shop_id"] for line in lines(self._directory / f"{belonging}.ndjson")}
        return [shop for key, shop in self.shops.items() if key in ids]


def kinds(catalogue: Catalogue, token: str) -> Iterator[Kind]:
    """Every kind; `token` is that of the reports."""
    chance = random.Random(_SEED)
    every = list(catalogue.shops.values())
    long = [shop.name for shop in every if len(shop.name.split()[0]) >= 7]

    def some(title: str, source: Sequence[Any], question: Callable[[Any], Question]) -> Kind:
        return Kind(title, from_many_callers(question(one) for one in chance.choices(source, k=_EACH)))

    yield some("suggest, 2 letters", long, lambda name: typed(name[:2]))
    yield some("suggest, 6 letters", long, lambda name: typed(name[:6]))
    yield some("suggest, misspelt", long, lambda name: typed(f"{name[:2]}{name[3]}{name[2]}{name[4:7]}"))
    for limit in (10, 50):
        yield some(f"find_shop, a page of {limit}", long, partial(_page, letters=3, limit=limit))
    yield some("find_shop, one letter, 50", long, partial(_page, letters=1, limit=50))
    yield some("get_shop over REST", every, lambda shop: tool("get_shop", {"shop_domain": shop.domain}))
    for title, era in (("modern", Era.STATELESS), ("older", Era.HANDSHAKE)):
        yield some(f"get_shop over MCP, {title}", every, partial(_by_mcp, era))
    yield some(
        "list_coupons of a shop",
        catalogue.having("coupons"),
        lambda shop: tool("list_coupons", {"shop_domain": shop.domain}),
    )
    yield some(
        "get_shipping_policy",
        catalogue.having("shipping"),
        lambda shop: tool("get_shipping_policy", {"shop_domain": shop.domain, "country": "DE"}),
    )
    yield some("report_code", every, lambda shop: _report(shop.domain, token))


def mixed(asked: Iterable[Kind]) -> Kind:
    """Kinds together, as often as `MIX` says."""
    weighed = (
        replace(question, weight=MIX[kind.title]) for kind in asked if kind.title in MIX for question in kind.questions
    )
    return Kind("the mix", tuple(weighed))


def known_already(port: int, kind: Kind) -> Kind:
    """The requests of a kind as those send them who have its answers: each is answered 304."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    asked = []
    for question in kind.questions:
        connection.request("GET", question.raw.split()[1])
        answer = connection.getresponse()
        answer.read()
        named = f"if-none-match: {answer.headers['etag']}\r\n{_HOST}"
        asked.append(replace(question, raw=question.raw.replace(_HOST, named, 1)))
    connection.close()
    return Kind(f"{kind.title}, 304", tuple(asked), 304)


def bare() -> Kind:
    """What `bench.bare` is asked."""
    return Kind("bare ASGI answer", (Question("bare", http("GET", "/")),))


def typed(query: str) -> Question:
    """Typeahead."""
    return suggestion(f"q={quote(query)}")


def from_many_callers(questions: Iterable[Question]) -> tuple[Question, ...]:
    """Each as a proxy hands it on from an address of its own."""
    return tuple(
        replace(question, raw=question.raw.replace(_HOST, f"x-forwarded-for: 10.0.{n // 250}.{n % 250}\r\n{_HOST}", 1))
        for n, question in enumerate(questions)
    )


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of NDJSON."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _page(name: str, letters: int, limit: int) -> Question:
    return tool("find_shop", {"query": name[:letters], "limit": limit})


def _by_mcp(era: Era, shop: Named) -> Question:
    return mcp(era, "get_shop", {"shop_domain": shop.domain})


def _report(domain: str, token: str) -> Question:
    return tool("report_code", {"shop_domain": domain, "code": f"CODE-{NUMBER}", "reason": "invalid"}, token)
