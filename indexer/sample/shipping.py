"""What about two thirds of the shops say about shipping; for the others nothing was gathered (A7)."""

from collections.abc import Iterable
from random import Random
from typing import Final

from indexer.sample.chance import chance, moment_before
from indexer.sample.featured import FEATURED, featured_shipping
from indexer.sample.money import amount
from indexer.sample.records import DeliveryTime, Shipping, Shop

_GATHERED: Final = 0.68
_CLAIMS: Final = (
    DeliveryTime(1, 2, "next working day, 2 days at most"),
    DeliveryTime(2, 4, "2–4 Werktage"),
    DeliveryTime(3, 5, "3 à 5 jours ouvrés"),
    DeliveryTime(5, 10, "5-10 days, depending on the parcel service"),
    DeliveryTime(0, 1, "当日または翌日お届け"),
    DeliveryTime(14, 21, "made to order: two to three weeks"),
)
#: Groups with what is left out of them; () adds the shop's own countries instead.
_REACHES: Final = (
    ((), ()),
    ((), ()),
    (("EU",), ()),
    (("EU",), ("CY", "MT")),
    (("EEA", "CH"), ()),
    (("DACH",), ()),
    (("DACH", "LI"), ()),
    (("WORLDWIDE",), ()),
    (("WORLDWIDE",), ("US", "CA")),
)


def shipping(shops: Iterable[Shop]) -> tuple[Shipping, ...]:
    """The shipping statements, one a shop at most, ordered by shop id; every hidden shop has one."""
    told = [shop for shop in shops if not shop.is_public or shop.domain in FEATURED or _gathered(shop)]
    return tuple(_statement(shop) for shop in sorted(told, key=lambda shop: shop.id))


def _gathered(shop: Shop) -> bool:
    return chance("gathered", shop.id).random() < _GATHERED


def _statement(shop: Shop) -> Shipping:
    if shop.domain in FEATURED:
        return featured_shipping(shop)
    luck = chance("shipping", shop.id)
    destinations, excluded = _reach(luck, shop)
    # A few statements were gathered before time and place were kept.
    dated = luck.choice((True,) * 14 + (False,))
    return Shipping(
        shop_id=shop.id,
        destinations=destinations,
        excluded=excluded,
        destinations_exhaustive=destinations is not None and luck.choice((True, False)),
        delivery_time=luck.choice((*_CLAIMS, None, None)),
        free_shipping_threshold=amount(luck, shop, low=20, high=120) if luck.choice((True, False)) else None,
        checked_at=moment_before(luck, days=200) if dated else None,
        source=luck.choice(("policy_page", "policy_page", "structured_data")) if dated else None,
    )


def _reach(luck: Random, shop: Shop) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Destinations, null when the shop names none, and exclusions."""
    if luck.choice((True,) + (False,) * 11):
        return None, ()
    groups, excluded = luck.choice(_REACHES)
    return groups or shop.countries or ("EU",), excluded
