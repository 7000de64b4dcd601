"""The shops that README, hints and docs link to, written by hand to look like real shops.

Each has different offers, with URLs below its own domain, and plausible codes. Edge cases of a catalogue are at other
shops, such as `named_shops.EDGE_CASES`.
"""

from typing import Final

from indexer.sample.records import Coupon, DeliveryTime, Discount, Money, Offer, Shipping, Shop

#: Offers, one a line: id | title | path | price | availability. Codes, one a line: code | kind | value | minimum |
#: countries | until | verification. "-" means none; amounts are in the currency of the shop.
_TABLES: Final = {
    "lumen-larch.internal": (
        "GBP",
        """
        lumen-arc-floor-lamp | Arc floor lamp, oak and brass | lamps/arc-floor-lamp | 189.00 | in_stock
        lumen-larch-desk-lamp | Larch desk lamp with dimmer | lamps/larch-desk-lamp | 79.00 | in_stock
        lumen-paper-pendant | Washi paper pendant, 45 cm | lamps/paper-pendant | 64.00 | in_stock
        lumen-wall-light | Bathroom wall light, IP44 | lamps/bathroom-wall-light | 52.50 | out_of_stock
        lumen-bedside-table | Larch bedside table, one drawer | furniture/bedside-table | 145.00 | preorder
        lumen-filament-bulb | LED filament bulb E27, 2700 K | bulbs/filament-e27 | 7.90 | in_stock
        """,
        """
        WELCOME10 | percent | 10 | - | - | - | verified_applied
        WINTER15 | percent | 15 | 90.00 | GB IE | 2035-12-31 | verified_applied
        FREESHIP | free_shipping | - | 40.00 | GB IE | - | unverified
        LAMPS5 | amount | 5 | 50.00 | - | - | unverified
        SUMMER20 | percent | 20 | - | - | 2024-08-31 | unverified
        STUDENT25 | percent | 25 | - | - | - | verified_rejected
        """,
    ),
    "kiefernhaus.internal": (
        "EUR",
        """
        kiefernhaus-esstisch | Esstisch Kiefer massiv, 160 × 90 cm | tische/esstisch-160 | 449.00 | in_stock
        kiefernhaus-regal | Bücherregal mit sechs Böden | regale/buecherregal-6 | 219.00 | in_stock
        kiefernhaus-bett | Bettgestell 140 × 200 cm, geölt | betten/bettgestell-140 | 389.00 | preorder
        kiefernhaus-hocker | Tritthocker, zwei Stufen | kleinmoebel/tritthocker | 39.90 | in_stock
        kiefernhaus-garderobe | Garderobenleiste mit fünf Haken | flur/garderobenleiste | 29.90 | out_of_stock
        """,
        """
        WILLKOMMEN10 | percent | 10 | 100.00 | - | - | verified_applied
        VERSANDFREI | free_shipping | - | 150.00 | DE | 2035-12-31 | verified_applied
        NEWSLETTER5 | amount | 5 | 50.00 | - | - | unverified
        OSTERN15 | percent | 15 | - | - | 2024-04-02 | unverified
        """,
    ),
    "encre-ondine.internal": (
        "EUR",
        """
        ondine-carnet | Carnet relié, 192 pages, papier ivoire | carnets/relie-192 | 18.50 | in_stock
        ondine-plume | Stylo plume, bec fin | stylos/plume-fin | 42.00 | in_stock
        ondine-encre | Encre bleu nuit, flacon de 50 ml | encres/bleu-nuit-50 | 12.90 | in_stock
        ondine-papier | Papier à lettres, 40 feuilles | papiers/lettres-40 | 9.80 | out_of_stock
        """,
        """
        BIENVENUE10 | percent | 10 | 30.00 | - | - | verified_applied
        PORTOFFERT | free_shipping | - | 45.00 | FR BE | 2035-12-31 | unverified
        RENTREE20 | percent | 20 | - | - | 2024-09-15 | unverified
        """,
    ),
    "northpine.internal": (
        "USD",
        """
        northpine-trail-boot | Waterproof trail boot | boots/trail-waterproof | 139.00 | in_stock
        northpine-day-pack | Day pack, 24 liters | packs/day-24 | 84.00 | in_stock
        northpine-rain-shell | Three-layer rain shell | jackets/rain-shell | 219.00 | preorder
        northpine-wool-socks | Merino hiking socks, two pairs | socks/merino-2 | 27.50 | in_stock
        northpine-headlamp | Rechargeable headlamp, 400 lumens | gear/headlamp-400 | 49.00 | in_stock
        """,
        """
        WELCOME15 | percent | 15 | - | - | - | verified_applied
        TRAIL20 | amount | 20 | 150.00 | US | 2035-12-31 | verified_applied
        SHIPFREE | free_shipping | - | 75.00 | US CA | - | unverified
        SPRING25 | percent | 25 | - | - | 2024-05-31 | unverified
        """,
    ),
    "midori-shoten.internal": (
        "JPY",
        """
        midori-sencha | 深蒸し煎茶 100g | tea/sencha-100 | 1280 | in_stock
        midori-miso | 米味噌 500g | grocery/kome-miso-500 | 890 | in_stock
        midori-bouquet | 季節の花束 | flowers/seasonal-bouquet | 3980 | preorder
        midori-furoshiki | 風呂敷包みの贈り物セット | gifts/furoshiki-set | 5400 | in_stock
        """,
        """
        HAJIMETE10 | percent | 10 | 3000 | JP | - | verified_applied
        SORYOMURYO | free_shipping | - | 5000 | JP | 2035-12-31 | unverified
        NATSU500 | amount | 500 | - | JP | 2024-08-31 | unverified
        """,
    ),
}
_SHIPPING: Final = {
    "lumen-larch.internal": (
        ("GB", "IE", "DE", "US", "JP"),
        (),
        True,
        (2, 4, "2 to 4 working days in the UK"),
        "60.00",
    ),
    "kiefernhaus.internal": (("DACH",), (), True, (3, 7, "3–7 Werktage, Möbel per Spedition"), "250.00"),
    "encre-ondine.internal": (("EU", "CH"), ("CY", "MT"), True, (2, 5, "2 à 5 jours ouvrés"), "45.00"),
    "northpine.internal": (("US", "CA"), (), True, (3, 6, "3-6 business days"), "75.00"),
    "midori-shoten.internal": (("JP",), (), True, (1, 2, "翌日または翌々日お届け"), "5000"),
}
_TITLES: Final = {
    "percent": "{value}% off",
    "amount": "{value} {currency} off",
    "free_shipping": "Free delivery",
}
_VERIFIED_AT: Final = "2026-10-28T07:30:00Z"
_UPDATED_AT: Final = "2026-10-30T06:00:00Z"
_NOTHING: Final = "-"

FEATURED: Final = tuple(_TABLES)


def featured_offers(shop: Shop) -> tuple[Offer, ...]:
    """The offers of a featured shop; KeyError for another shop."""
    currency, table, _ = _TABLES[shop.domain]
    return tuple(
        Offer(
            id=f"off_{offer_id}",
            shop_id=shop.id,
            title=title,
            url=f"https://{shop.domain}/{path}",
            price=Money(price, currency),
            availability=availability,
            updated_at=_UPDATED_AT,
        )
        for offer_id, title, path, price, availability in _rows(table)
    )


def featured_coupons(shop: Shop) -> tuple[Coupon, ...]:
    """The codes of a featured shop; KeyError for another shop."""
    currency, _, table = _TABLES[shop.domain]
    return tuple(_coupon(shop, currency, columns) for columns in _rows(table))


def featured_shipping(shop: Shop) -> Shipping:
    """The shipping statement of a featured shop; KeyError for another shop."""
    currency, *_ = _TABLES[shop.domain]
    destinations, excluded, exhaustive, (least, most, stated), free_from = _SHIPPING[shop.domain]
    return Shipping(
        shop_id=shop.id,
        destinations=destinations,
        excluded=excluded,
        destinations_exhaustive=exhaustive,
        delivery_time=DeliveryTime(least, most, stated),
        free_shipping_threshold=Money(free_from, currency),
        checked_at=_VERIFIED_AT,
        source="policy_page",
    )


def _rows(table: str) -> list[list[str]]:
    return [[column.strip() for column in line.split("|")] for line in table.strip().splitlines()]


def _coupon(shop: Shop, currency: str, columns: list[str]) -> Coupon:
    code, kind, value, minimum, countries, until, verification = columns
    has_value = value != _NOTHING
    return Coupon(
        id=f"cpn_{shop.id.removeprefix('shop_')}-{code.lower()}",
        shop_id=shop.id,
        code=code,
        title=f"{_TITLES[kind].format(value=value, currency=currency)}: {shop.name}",
        discount=Discount(kind, value if has_value else None, currency if kind == "amount" else None),
        min_order=None if minimum == _NOTHING else Money(minimum, currency),
        countries=() if countries == _NOTHING else tuple(countries.split()),
        valid_from=None,
        valid_until=None if until == _NOTHING else until,
        verification_status=verification,
        last_verified_at=None if verification == "unverified" else _VERIFIED_AT,
        blocked_channels=(),
        blocked_countries=(),
        source="operator",
        version=1,
    )
