"""Calls of all thirteen tools by seeded chance: most of them right, the others wrong in every way that callers are."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from index_mappings.tiers import rank_key
from service.errors import InvalidInputError
from service.search.protocol import Position
from service.tools.find_shop import FindShopRequest, cursor_of
from service.tools.report_code import REASONS as CODE_REASONS
from service.tools.report_issue import ALL_REASONS
from service.tools.request import validated
from tests.support.sample import records

Call = tuple[str, dict[str, Any]]

_JUNK: Final[tuple[Any, ...]] = (
    None, "", " ", "qqxx", "???", "a" * 300, "x" * 2_049, "\u0001", "Zoë’s 厨房", 0, -1, 7, 2.5, 50.0, 1e300, 101, True,
    False, [], ["a"], {}, {"a": None}, "shop", "fact", "invalid", "www.", "a..b", "none.internal", "no id",
)  # fmt: skip
_NAMES: Final = (
    "shop_domain",
    "shop_id_or_domain",
    "colour",
    "Query",
    "limit",
    "country",
    "offer_id",
    "affiliate",
    "q",
)
_COUNTRIES: Final = ("DE", "at", "CH", "FR", "GB", "US", "JP", "XK", "UK", "XX", "DEU", "")


class GeneratedCalls:
    """What chance makes of a catalogue; the same for the same seed."""

    def __init__(self, catalogue: Path, seed: int) -> None:
        self._chance = Random(seed)  # noqa: S311 - a repeatable test
        shops = records(catalogue / "shops.ndjson")
        self._ids = [shop["id"] for shop in shops]
        self._domains = [shop["domain"] for shop in shops]
        self._words = [word for shop in shops for word in shop["name"].split()]
        self._slugs = sorted({category["slug"] for shop in shops for category in shop["categories"]})
        self._offers = [offer["id"] for offer in records(catalogue / "offers.ndjson")]
        self._codes = [coupon["code"] for coupon in records(catalogue / "coupons.ndjson")]
        self._pairs = [(one["from_domain"], one["to_domain"]) for one in records(catalogue / "redirects.ndjson")]
        self._makers: dict[str, Callable[[], dict[str, Any]]] = {
            "find_shop": self._find_shop,
            "list_categories": dict,
            "get_shop": lambda: self._shop() | self._maybe(0.2, "offers_offset", (0, 1, 100, 100_000)),
            "get_shops": self._shops,
            "list_coupons": self._list_coupons,
            "get_shipping_policy": lambda: self._shop_or_shops() | self._maybe(0.6, "country", _COUNTRIES),
            "get_shop_policies": lambda: self._shop_or_shops() | self._maybe(0.6, "country", _COUNTRIES),
            "get_trust": self._shop,
            "report_code": lambda: self._shop() | {"code": self._of(self._codes), "reason": self._of(CODE_REASONS)},
            "report_issue": lambda: (
                self._shop() | {"subject_type": self._of(("shop", "fact")), "reason": self._of(ALL_REASONS)}
            ),
            "monetize_offer": self._offer,
            "resolve_checkout_url": self._offer,
            "resolve_conflict": self._resolve_conflict,
        }

    def take(self, count: int) -> list[Call]:
        tools = list(self._makers)
        return [(tool, self._spoilt(self._makers[tool]())) for tool in (tools * (count // len(tools) + 1))[:count]]

    def _find_shop(self) -> dict[str, Any]:
        words = self._chance.sample(self._words, self._chance.randint(0, 2))
        query = " ".join(word[: self._chance.randint(2, 12)] for word in words)
        goods = self._of(self._slugs).replace("-", " ")
        wish = self._of(("{} shop", "best {} shops for me", "{} in Germany", "{} austria", "{} store " + query))
        asked = (query, query, query, self._of(self._domains), f"{query} qqxx", wish.format(goods), wish.format(query))
        arguments = {
            "query": self._of(asked),
            **self._maybe(0.3, "country", _COUNTRIES),
            **self._maybe(0.3, "category", (*self._slugs, *["unknown"] * 4)),
            **self._maybe(0.15, "countries", (["AT", "de"], ["GB"], ["FR", "UK"])),
            **self._maybe(0.15, "categories", (self._slugs[:2], self._slugs[-20:], [self._of(self._slugs), "unknown"])),
            **self._maybe(0.3, "facets", (["category"], ["country", "category"], ["city"])),
            **self._maybe(0.7, "limit", (1, 3, 10, 100)),
            **self._maybe(0.3, "offset", (0, 1, 20, 99_990, 100_000)),
            **self._maybe(0.4, "ships_to", _COUNTRIES),
            **self._maybe(0.2, "include_unsettled", (True, True, False)),
            **self._maybe(0.3, "has_code", (True, True, False)),
            **self._maybe(0.2, "verified_code", (True, True, False)),
        }
        return arguments | self._maybe(0.2, "cursor", (self._cursor(arguments), self._cursor({"query": query})))

    def _cursor(self, arguments: dict[str, Any]) -> str:
        """A cursor of a search, behind any shop; an empty one where the search is refused."""
        try:
            request = validated(FindShopRequest, arguments)
        except InvalidInputError:
            return ""
        rank = rank_key(self._of((None, 0.2, 0.5, 0.8)), self._of(self._ids))
        return cursor_of(request, Position(self._of(range(16)), rank))

    def _shop(self) -> dict[str, Any]:
        name = "shop_domain" if self._chance.random() < 0.8 else "shop_id_or_domain"
        return {name: self._reference()}

    def _shop_or_shops(self) -> dict[str, Any]:
        return self._shop() if self._chance.random() < 0.7 else self._shops()

    def _shops(self) -> dict[str, Any]:
        # Over 20 some tools refuse.
        count = self._of((1, 2, 10, 20, 25))
        return {"shop_domains": [self._reference() for _ in range(count)]}

    def _list_coupons(self) -> dict[str, Any]:
        # All coupons of all shops are a long answer: now and then only.
        return {} if self._chance.random() < 0.1 else self._shop_or_shops()

    def _offer(self) -> dict[str, Any]:
        return {"offer_id": self._of(self._offers)} | self._maybe(0.6, "affiliate", (True, False))

    def _resolve_conflict(self) -> dict[str, Any]:
        if self._chance.random() < 0.3:
            pair = self._of(self._pairs)
            return {"from_shop_id": pair[0], "to_shop_id": pair[1]}
        to = {"to_shop_id": self._reference()} if self._chance.random() < 0.6 else {}
        return {"from_shop_id": self._reference()} | to

    def _reference(self) -> str:
        domain = self._of(self._domains)
        spelling = self._of(("{}", "https://www.{}/new?x=1#y", "USER@{}:8443", "{}.", "sub.{}"))
        return str(self._of((self._of(self._ids), self._of(self._ids), domain, spelling.format(domain.upper()))))

    def _spoilt(self, arguments: dict[str, Any]) -> dict[str, Any]:
        spoilt = dict(arguments)
        if self._chance.random() < 0.15 and spoilt:
            spoilt[self._of(list(spoilt))] = self._of(_JUNK)
        if self._chance.random() < 0.06 and spoilt:
            del spoilt[self._of(list(spoilt))]
        if self._chance.random() < 0.1:
            spoilt[self._of(_NAMES)] = self._of(_JUNK)
        return spoilt

    def _maybe(self, share: float, name: str, values: Sequence[Any]) -> dict[str, Any]:
        return {name: self._of(values)} if self._chance.random() < share else {}

    def _of(self, values: Sequence[Any]) -> Any:  # noqa: ANN401 - any JSON value
        return self._chance.choice(values)
