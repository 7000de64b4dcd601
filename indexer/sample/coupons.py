"""The discount codes: of the featured shops, of every scenario, shared codes of lookalikes, and random ones.

Codes expire in 2024, in 2035 or never, so the sample stays valid for years; a code uses A9's alphabet only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Final

from indexer.sample.featured import FEATURED, featured_coupons
from indexer.sample.money import amount
from indexer.sample.named_shops import EDGE_CASES, LOOKALIKES
from indexer.sample.records import Coupon, Discount, Money, Shop
from indexer.sample.seeded_random import digest, seeded_random, time_before

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
_LANGUAGE_OF: Final = {"DE": 1, "AT": 1, "CH": 1, "LU": 1, "FR": 2, "BE": 2, "JP": 3}
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
    created = [coupon for shop in shops for coupon in _coupons_of(shop)]
    return tuple(sorted(created, key=lambda coupon: coupon.id))


def _coupons_of(shop: Shop) -> Iterator[Coupon]:
    plain = _plain(shop)
    if shop.domain == EDGE_CASES:
        yield from _scenarios(plain)
    if any(shop.domain in pair for pair in LOOKALIKES):
        yield replace(plain, id=f"cpn_{digest(shop.id, 'shared')}", code=SHARED_CODE)
    if shop.domain in FEATURED:
        yield from featured_coupons(shop)
        return
    rng = seeded_random("coupons", shop.id)
    least = 0 if shop.is_public and shop.domain.endswith(".internal") else 1
    for number in range(max(least, rng.choice((0, 0, 0, 0, 1, 1, 1, 2, 3, 4)))):
        yield _random_coupon(plain, shop, number)


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
    """One coupon for every way in which a code can be usable or withheld (A4, A5), named by its code."""
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
        # It has two reasons, and counts as expired, the first of them.
        replace(
            plain,
            code="ZEBRA-EXPIRED-REJECTED",
            valid_until="2024-06-30",
            verification_status="verified_rejected",
            last_verified_at="2024-06-29T10:00:00Z",
        ),
    ):
        yield replace(coupon, id=f"cpn_{coupon.code.lower()}")


def _random_coupon(plain: Coupon, shop: Shop, number: int) -> Coupon:
    rng = seeded_random("coupon", shop.id, str(number))
    discount = _discount(rng, shop)
    valid_from, valid_until = rng.choices(_PERIODS, weights=(28, 22, 14, 8, 8, 9, 6, 5))[0]
    status = rng.choice(_STATUSES)
    tested = status != "unverified" or rng.choice((True, False, False))
    return replace(
        plain,
        id=f"cpn_{digest(shop.id, str(number))}",
        code=_code(rng, shop),
        title=_title(shop, discount),
        discount=discount,
        min_order=amount(rng, shop, low=15, high=90) if rng.choice((True, False, False)) else None,
        countries=shop.countries[:2] if "WORLDWIDE" not in shop.countries and rng.choice((True, False)) else (),
        valid_from=valid_from,
        valid_until=valid_until,
        verification_status=status,
        last_verified_at=time_before(rng, days=120) if tested else None,
        blocked_channels=rng.choices(((), ("mcp",), ("rest",), ("stdio", "mcp")), weights=(94, 2, 2, 2))[0],
        blocked_countries=rng.choices(((), ("US",), (shop.home,)), weights=(94, 3, 3))[0],
        source=rng.choice(("operator", "newsletter", "partner-feed")),
        version=rng.randint(1, 6),
    )


def _discount(rng: Random, shop: Shop) -> Discount | None:
    kind = rng.choices(("percent", "amount", "free_shipping", "other", ""), weights=(50, 22, 14, 8, 6))[0]
    if kind == "percent":
        return Discount(kind, rng.choice(("5", "10", "12.5", "15", "20", "25", "30")))
    if kind == "amount":
        off = amount(rng, shop, low=3, high=25)
        return Discount(kind, off.amount, off.currency)
    return Discount(kind) if kind else None


def _code(rng: Random, shop: Shop) -> str:
    # A hidden shop shares no code with another shop, so that its codes reveal a leak.
    if shop.is_public and rng.choice((True, False, False)):
        return rng.choice(_EVERYWHERE)
    own = "".join(c for c in shop.id.removeprefix("shop_") if c.isalnum()).upper()[:14]
    return rng.choice(_PATTERNS).format(own=own, n=rng.randint(2, 60))


def _title(shop: Shop, discount: Discount | None) -> str:
    """The title in the language of the shop's first country; it ends with the shop's name."""
    shown = discount or Discount("other")
    text = _TITLES[shown.kind][_LANGUAGE_OF.get(shop.home, 0)]
    return f"{text.format(value=shown.value, currency=shown.currency)}: {shop.name}"
