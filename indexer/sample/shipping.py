"""The shipping statements of about two thirds of the shops; for the others nothing was gathered (A7)."""

from collections.abc import Iterable
from random import Random
from typing import Final

from indexer.sample.featured import FEATURED, featured_shipping
from indexer.sample.money import amount
from indexer.sample.records import DeliveryTime, Shipping, Shop
from indexer.sample.seeded_random import seeded_random, time_before

_GATHERED: Final = 0.68
_CLAIMS: Final = (
    DeliveryTime(1, 2, "next working day, 2 days at most"),
    DeliveryTime(2, 4, "2–4 Werktage"),
    DeliveryTime(3, 5, "3 à 5 jours ouvrés"),
    DeliveryTime(5, 10, "5-10 days, depending on the parcel service"),
    DeliveryTime(0, 1, "当日または翌日お届け"),
    DeliveryTime(14, 21, "made to order: two to three weeks"),
)
#: Groups, and countries excluded from them; () means the shop's own countries.
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
    stated = [shop for shop in shops if not shop.is_public or shop.domain in FEATURED or _gathered(shop)]
    return tuple(_statement(shop) for shop in sorted(stated, key=lambda shop: shop.id))


def _gathered(shop: Shop) -> bool:
    return seeded_random("gathered", shop.id).random() < _GATHERED


def _statement(shop: Shop) -> Shipping:
    if shop.domain in FEATURED:
        return featured_shipping(shop)
    rng = seeded_random("shipping", shop.id)
    destinations, excluded = _reach(rng, shop)
    # A few statements lack time and source, as if gathered before these were recorded.
    dated = rng.choice((True,) * 14 + (False,))
    return Shipping(
        shop_id=shop.id,
        destinations=destinations,
        excluded=excluded,
        destinations_exhaustive=destinations is not None and rng.choice((True, False)),
        delivery_time=rng.choice((*_CLAIMS, None, None)),
        free_shipping_threshold=amount(rng, shop, low=20, high=120) if rng.choice((True, False)) else None,
        checked_at=time_before(rng, days=200) if dated else None,
        source=rng.choice(("policy_page", "policy_page", "structured_data")) if dated else None,
    )


def _reach(rng: Random, shop: Shop) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Destinations, None when the shop states none, and exclusions."""
    if rng.choice((True,) + (False,) * 11):
        return None, ()
    groups, excluded = rng.choice(_REACHES)
    return groups or shop.countries or ("EU",), excluded
