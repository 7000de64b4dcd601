"""Shops that differ in nothing but visibility, and whole answers about them by every transport."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, Final, Literal
from urllib.parse import quote, urlsplit

from tests.support.catalogues import coupon, offer, policy, program, redirect, shipping, shop, trust
from tests.support.wire import ABOUT, Era

Visibility = Literal["public", "under_review", "removed"]
Records = dict[str, list[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A shop that is asked for: eight letters and four, made of nothing that another one is made of."""

    word: str
    tail: str

    @property
    def name(self) -> str:
        return f"{self.word.title()} {self.tail.title()}"

    @property
    def id(self) -> str:
        return f"shop_{self.word}"

    @property
    def domain(self) -> str:
        return f"{self.word}-{self.tail}.internal"

    @property
    def offer_id(self) -> str:
        return f"off_{self.word}"

    @property
    def code(self) -> str:
        return f"{self.word.upper()}10"

    @property
    def slug(self) -> str:
        return f"{self.word}-goods"

    @property
    def beginning(self) -> str:
        return self.word[:5]

    def blanked(self, text: bytes) -> bytes:
        """The text without the words that an answer may repeat from the question."""
        for word in (self.word, self.beginning, self.tail):
            for spelling in (word, word.title(), word.upper()):
                text = text.replace(spelling.encode(), b"?" * len(word))
        return text


PUBLIC: Final = Subject("ardentum", "pavi")
EMPTY: Final = Subject("bareloft", "quob")
UNKNOWN: Final = Subject("uvermont", "grex")
UNDER_REVIEW: Final = Subject("wexlorda", "nomp")
REMOVED: Final = Subject("zilbrack", "twif")
HIDDEN: Final = (UNDER_REVIEW, REMOVED)


def catalogue(*subjects: tuple[Subject, Visibility]) -> Records:
    """The records of these shops, and of one public shop about which nothing but its name is known."""
    records: Records = {
        "shops": [shop(EMPTY.name, EMPTY.domain, id=EMPTY.id, categories=["gifts"])],
        "coupons": [],
        "offers": [],
        "shipping": [],
        "policies": [],
        "trust": [],
        "affiliate_programs": [],
        "redirects": [],
    }
    for subject, visibility in subjects:
        for kind, lines in _records(subject, visibility).items():
            records[kind] += lines
    return records


def _records(subject: Subject, visibility: Visibility) -> Mapping[str, Iterable[Mapping[str, Any]]]:
    own = subject.id
    return {
        "shops": [
            shop(
                subject.name,
                subject.domain,
                id=own,
                visibility=visibility,
                categories=["gifts", subject.slug],
                countries=["DE"],
                popularity=7.5,
                # Were hidden shops not left out, this alias would tie them to the public ones.
                aliases=["Common House Alias"],
            )
        ],
        "coupons": [coupon(subject.code, own), coupon("SHARED10", own)],
        "offers": [
            offer(subject.offer_id, own, url=f"https://{subject.domain}/lamp", updated_at="2030-01-01T00:00:00Z")
        ],
        "shipping": [shipping(own, destinations=["DE", "AT"], destinations_exhaustive=True)],
        "policies": [policy(own, "returns", days=30), policy(own, "returns", "AT", days=14)],
        "trust": [trust(own, "tls_grade", "A")],
        "affiliate_programs": [program(own, "network")],
        "redirects": [redirect(subject.domain, EMPTY.domain), redirect(EMPTY.domain, subject.domain)],
    }


def calls(subject: Subject) -> list[tuple[str, dict[str, Any]]]:
    named: list[dict[str, Any]] = [{"shop_domain": subject.id}, {"shop_domain": subject.domain}]
    named += [{"shop_id_or_domain": f"https://www.{subject.domain.upper()}/sale?x=1"}]
    about = [
        (tool, {**given, **fields})
        for tool, fields in (
            ("get_shop", {}),
            ("list_coupons", {}),
            ("get_shipping_policy", {"country": "AT"}),
            ("get_shop_policies", {"country": "AT"}),
            ("get_trust", {}),
            ("report_code", {"code": subject.code, "reason": "invalid"}),
            ("report_issue", {"subject_type": "shop", "reason": "unreachable"}),
            ("report_issue", {"subject_type": "fact", "reason": "shipping_cost"}),
        )
        for given in named
    ]
    both = {"shop_domains": [EMPTY.id, subject.id, f"https://www.{subject.domain.upper()}/sale?x=1", EMPTY.id]}
    queries = (subject.name, subject.domain, subject.id, subject.beginning, f"{subject.name} gifts")
    searches: list[tuple[str, dict[str, Any]]] = [("find_shop", {"query": query}) for query in queries]
    searches += [
        ("find_shop", {"query": subject.name, "category": "gifts", "country": "DE"}),
        ("find_shop", {"query": "", "category": subject.slug}),
    ]
    audits = [{"from_shop_id": subject.id}, {"from_shop_id": subject.domain, "to_shop_id": EMPTY.id}]
    audits += [{"from_shop_id": EMPTY.id, "to_shop_id": subject.domain}]
    offers = [
        (tool, {"offer_id": subject.offer_id, "affiliate": affiliate})
        for tool in ("monetize_offer", "resolve_checkout_url")
        for affiliate in (True, False)
    ]
    lists = [(tool, both) for tool in ("get_shops", "list_coupons", "get_shipping_policy", "get_shop_policies")]
    return [*about, *lists, *searches, *(("resolve_conflict", audit) for audit in audits), *offers]


def typed(subject: Subject) -> list[str]:
    return [subject.name, subject.domain, subject.word[:3], subject.word, subject.word[1:], subject.slug]


def addresses(subject: Subject) -> list[str]:
    """The addresses of pages of a shop, of its own category, and of searches for it."""
    shops = (subject.id, subject.domain, f"https://www.{subject.domain.upper()}/sale")
    return [
        *(f"/?shop={quote(shop)}&country=AT" for shop in shops),
        f"/?category={subject.slug}",
        *(f"/?q={quote(query)}" for query in (subject.name, subject.domain, f"{subject.name} gifts")),
    ]


_DIFFERENT_EACH_TIME: Final = {"date", "x-request-id"}
_REQUEST_ID: Final = re.compile(rb'("x-request-id":")[0-9a-f]{32}"')
_LEFT: Final = re.compile(r";[rt]=\d+")


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer; header names as sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """The one header of a lower-case name."""
        (value,) = (value for key, value in self.headers if key.lower() == name)
        return value

    def settled(self, blank: Callable[[bytes], bytes]) -> "Whole":
        """Without what differs each time, and with the question's words blanked; every header's name stays."""
        headers = tuple(
            (name, "-" if name.lower() in _DIFFERENT_EACH_TIME else _LEFT.sub(";-", value))
            for name, value in self.headers
        )
        return Whole(self.status, headers, settled_text(self.body, blank))

    def without(self, name: str) -> "Whole":
        headers = tuple((key, "-" if key.lower() == name else value) for key, value in self.headers)
        return Whole(self.status, headers, self.body)


def settled_text(text: bytes, blank: Callable[[bytes], bytes]) -> bytes:
    return blank(_REQUEST_ID.sub(rb'\1-"', text))


@dataclass(frozen=True, slots=True)
class Service:
    base: str
    token: str

    def rest(self, tool: str, arguments: Mapping[str, Any]) -> Whole:
        return self._ask("POST", f"/tool/{tool}", arguments, {})

    def mcp_modern(self, tool: str, arguments: Mapping[str, Any]) -> Whole:
        headers = {"mcp-protocol-version": Era.STATELESS, "mcp-method": "tools/call", "mcp-name": tool}
        return self._ask("POST", "/mcp", message(tool, {**arguments}, 7, _meta=ABOUT), headers)

    def mcp_older(self, tool: str, arguments: Mapping[str, Any]) -> Whole:
        return self._ask("POST", "/mcp", message(tool, {**arguments}, 7), {"mcp-protocol-version": Era.HANDSHAKE})

    def suggest(self, text: str) -> Whole:
        return self.get(f"/suggest?q={quote(text)}")

    def get(self, path: str) -> Whole:
        return self._ask("GET", path, None, {})

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> Whole:
        given = {"content-type": "application/json", "accept": "application/json", "x-api-token": self.token, **headers}
        connection = HTTPConnection(urlsplit(self.base).netloc, timeout=20)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), given)
            response = connection.getresponse()
            return Whole(response.status, tuple(response.getheaders()), response.read())
        finally:
            connection.close()


def message(tool: str, arguments: dict[str, Any], message_id: int, **params: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    called = {"name": tool, "arguments": arguments, **params}
    return {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": called}
