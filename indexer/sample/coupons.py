"""The discount codes: of the featured shops, one of every scenario, shared codes of lookalikes, and chance elsewhere.

Codes end in 2024 or 2035 or never, so that the sample says the same for years; a code is text of A9's alphabet only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Final

from indexer.sample.chance import chance, digest, moment_before
from indexer.sample.featured import FEATURED, featured_coupons
from indexer.sample.money import amount
from indexer.sample.named_shops import EDGE_CASES, LOOKALIKES
from indexer.sample.records import Coupon, Discount, Money, Shop

SHARED_CODE: Final = "TWINS10"

_TITLES: Final = {
    "percent": ("{value}% off", "{value} % Rabatt", "-{value} %", "{value}%引き"),
    "amount": (
        "{value} {currency} off",
        "{value} {currency} Rabatt",
        "{value} {currency} de remise",
        "{value} {currency} 引き",
    ),
    "free_shipping": ("free delivery", "versandkostenfrei", "livraison offerte", "送料無料"),
    "other": ("a gift with every order", "Gratisgeschenk", "un cadeau offert", "プレゼント付き"),
}
_TONGUE_OF: Final = {"DE": 1, "AT": 1, "CH": 1, "LU": 1, "FR": 2, "BE": 2, "JP": 3}
_EVERYWHERE: Final = (
    "WELCOME10",
    "welcome10",
    "SAVE15",
    "NEWS-5",
    "HELLO!",
    "FREESHIP",
    "T&C-20",
    "#FLASH",
    "VIP@HOME",
)
_PATTERNS: Final = ("{own}{n}", "{own}-{n}", "{own}+{n}%", "$" + "{n}_{own}", "*{own}*", "{own}.{n}/2", "{n}%{own}")
_PERIODS: Final = (
    (None, None),
    (None, "2035-12-31"),
    (None, "2035-06-30T21:59:59Z"),
    ("2024-03-01", "2035-03-01"),
    ("2024-01-15T08:00:00Z", None),
    (None, "2024-11-30"),
    ("2024-02-01", "2024-08-31T23:59:59Z"),
    ("2035-05-01", "2035-12-31"),
)
_STATUSES: Final = (*("verified_applied",) * 2, *("unverified",) * 3, "verified_rejected")


def coupons(shops: Iterable[Shop]) -> tuple[Coupon, ...]:
    """Every coupon, those of hidden shops included, ordered by id."""
    every = [coupon for shop in shops for coupon in _of(shop)]
    return tuple(sorted(every, key=lambda coupon: coupon.id))


def _of(shop: Shop) -> Iterator[Coupon]:
    plain = _plain(shop)
    if shop.domain == EDGE_CASES:
        yield from _scenarios(plain)
    if any(shop.domain in pair for pair in LOOKALIKES):
        yield replace(plain, id=f"cpn_{digest(shop.id, 'shared')}", code=SHARED_CODE)
    if shop.domain in FEATURED:
        yield from featured_coupons(shop)
        return
    luck = chance("coupons", shop.id)
    least = 0 if shop.is_public and shop.domain.endswith(".internal") else 1
    for number in range(max(least, luck.choice((0, 0, 0, 0, 1, 1, 1, 2, 3, 4)))):
        yield _chosen(plain, shop, number)


def _plain(shop: Shop) -> Coupon:
    return Coupon(
        id="",
        shop_id=shop.id,
        code="",
        title=_title(shop, Discount("percent", "10")),
        discount=Discount("percent", "10"),
        min_order=None,
        countries=(),
        valid_from=None,
        valid_until=None,
        verification_status="unverified",
        last_verified_at=None,
        blocked_channels=(),
        blocked_countries=(),
        source="operator",
        version=1,
    )


def _scenarios(plain: Coupon) -> Iterator[Coupon]:
    """One coupon for every way that a code can be usable or withheld (A4, A5), named by its code."""
    tested = "2026-10-18T07:30:00Z"
    for coupon in (
        replace(plain, code="ZEBRA-APPLIED", verification_status="verified_applied", last_verified_at=tested),
        replace(plain, code="ZEBRA-REJECTED", verification_status="verified_rejected", last_verified_at=tested),
        replace(plain, code="ZEBRA-INCONCLUSIVE", last_verified_at=tested),
        replace(plain, code="ZEBRA-UNTESTED"),
        replace(plain, code="ZEBRA-BARE-DATE", valid_until="2035-12-31"),
        replace(plain, code="ZEBRA-EXPIRED", valid_until="2024-06-30T12:00:00Z"),
        replace(plain, code="ZEBRA-TOO-EARLY", valid_from="2035-01-01", valid_until="2035-12-31"),
        replace(plain, code="ZEBRA-NOT-ON-MCP", blocked_channels=("mcp", "stdio")),
        replace(plain, code="ZEBRA-NOT-ON-REST", blocked_channels=("rest",)),
        replace(plain, code="ZEBRA-NOWHERE", blocked_channels=("rest", "mcp", "stdio")),
        replace(plain, code="ZEBRA-NOT-IN-US", blocked_countries=("US",)),
        replace(plain, code="ZEBRA-GB-ONLY", countries=("GB",), min_order=Money("25.00", "GBP")),
        replace(plain, code="ZEBRA-UNSTATED", discount=None, title="a surprise: Zebra,Comma;Dash — Ltd."),
        # Two reasons at once: it counts as expired, the first of them.
        replace(
            plain,
            code="ZEBRA-EXPIRED-REJECTED",
            valid_until="2024-06-30",
            verification_status="verified_rejected",
            last_verified_at="2024-06-29T10:00:00Z",
        ),
    ):
        yield replace(coupon, id=f"cpn_{coupon.code.lower()}")


def _chosen(plain: Coupon, shop: Shop, number: int) -> Coupon:
    luck = chance("coupon", shop.id, str(number))
    discount = _discount(luck, shop)
    valid_from, valid_until = luck.choices(_PERIODS, weights=(28, 22, 14, 8, 8, 9, 6, 5))[0]
    status = luck.choice(_STATUSES)
    tested = status != "unverified" or luck.choice((True, False, False))
    return replace(
        plain,
        id=f"cpn_{digest(shop.id, str(number))}",
        code=_code(luck, shop),
        title=_title(shop, discount),
        discount=discount,
        min_order=amount(luck, shop, low=15, high=90) if luck.choice((True, False, False)) else None,
        countries=shop.countries[:2] if "WORLDWIDE" not in shop.countries and luck.choice((True, False)) else (),
        valid_from=valid_from,
        valid_until=valid_until,
        verification_status=status,
        last_verified_at=moment_before(luck, days=120) if tested else None,
        blocked_channels=luck.choices(((), ("mcp",), ("rest",), ("stdio", "mcp")), weights=(94, 2, 2, 2))[0],
        blocked_countries=luck.choices(((), ("US",), (shop.home,)), weights=(94, 3, 3))[0],
        source=luck.choice(("operator", "newsletter", "partner-feed")),
        version=luck.randint(1, 6),
    )


def _discount(luck: Random, shop: Shop) -> Discount | None:
    kind = luck.choices(("percent", "amount", "free_shipping", "other", ""), weights=(50, 22, 14, 8, 6))[0]
    if kind == "percent":
        return Discount(kind, luck.choice(("5", "10", "12.5", "15", "20", "25", "30")))
    if kind == "amount":
        off = amount(luck, shop, low=3, high=25)
        return Discount(kind, off.amount, off.currency)
    return Discount(kind) if kind else None


def _code(luck: Random, shop: Shop) -> str:
    # A hidden shop shares no code with anybody, so that its codes betray a leak.
    if shop.is_public and luck.choice((True, False, False)):
        return luck.choice(_EVERYWHERE)
    own = "".join(c for c in shop.id.removeprefix("shop_") if c.isalnum()).upper()[:14]
    return luck.choice(_PATTERNS).format(own=own, n=luck.randint(2, 60))


def _title(shop: Shop, discount: Discount | None) -> str:
    """The title in the tongue of the shop's first country; it ends with the shop's name."""
    shown = discount or Discount("other")
    text = _TITLES[shown.kind][_TONGUE_OF.get(shop.home, 0)]
    return f"{text.format(value=shown.value, currency=shown.currency)}: {shop.name}"
