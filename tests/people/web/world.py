"""A world for the page: a shop of which much is known, one of which nothing is, a hidden one, and names of every kind.

Names, titles, codes and categories come from others. Some here are markup, some run from right to left, some are as
long as the catalogue lets them be: a page shows each as the text that it is.
"""

from pathlib import Path
from typing import Any, Final

from tests.support.catalogues import Lines, coupon, offer, policy, shipping, shop, trust
from tests.support.worlds import embedded_world

MARKUP: Final = "<img src=x onerror=document.title='broken'>"
SCRIPT: Final = '"><script>document.title="broken"</script>'
LONG: Final = "Unbreakable" * 20
ARABIC: Final = "متجر الغيمة"
HEBREW: Final = "בית הרימון (Rimona) 24"
JAPANESE: Final = "森の本屋さん"

BOOKS: Final = shop(
    "Harbour Lane Books",
    "harbour-lane-books.internal",
    id="shop_books",
    categories=["books", "stationery"],
    countries=["DE", "FR"],
    popularity=9.0,
    aliases=["HLB"],
)
BARE: Final = shop("Moss & Fern", "moss-and-fern.internal", id="shop_bare", categories=["garden"])
HIDDEN: Final = shop(
    "Quietly Hidden Goods",
    "quietly-hidden.internal",
    id="shop_hidden",
    categories=["secrets"],
    visibility="under_review",
    popularity=99.0,
)
NAMED: Final = (
    shop(ARABIC, "ghaima.internal", id="shop_arabic", categories=[("souq", "سوق")], aliases=["Ghaima Shop"]),
    shop(HEBREW, "rimona.internal", id="shop_hebrew", categories=["garden"]),
    shop(JAPANESE, "mori-books.internal", id="shop_japanese", categories=["books"]),
    shop(LONG, "unbreakable.internal", id="shop_long", categories=["things"], aliases=[LONG[::-1]]),
    shop(
        MARKUP, "markup.internal", id="shop_markup", categories=[("markup", SCRIPT)], aliases=[SCRIPT], popularity=5.0
    ),
)
_MANY: Final = tuple(
    shop(f"Paper Mill {number:03}", f"paper-mill-{number:03}.internal", categories=["paper"], countries=["DE"])
    for number in range(120)
)
SHOPS: Final = (BOOKS, BARE, HIDDEN, *NAMED, *_MANY)

_TESTED: Final = "2026-10-18T07:30:00Z"
_COUPONS: Final = (
    coupon(
        "WORKED-10",
        "shop_books",
        title="A tenth off",
        discount={"kind": "percent", "value": "10", "currency": None},
        verification_status="verified_applied",
        last_verified_at=_TESTED,
        valid_until="2035-06-30T12:00:00Z",
        min_order={"amount": "25.00", "currency": "EUR"},
        countries=["DE"],
    ),
    coupon("NEVER-TESTED", "shop_books"),
    coupon("INCONCLUSIVE", "shop_books", last_verified_at=_TESTED),
    coupon("LONG-GONE", "shop_books", valid_until="2024-06-30T12:00:00Z"),
    coupon("REFUSED-A", "shop_books", verification_status="verified_rejected", last_verified_at=_TESTED),
    coupon("REFUSED-B", "shop_books", verification_status="verified_rejected", last_verified_at=_TESTED),
    coupon("HELD-BACK", "shop_books", blocked_channels=["rest"]),
    coupon("%3Cscript%3E&lt", "shop_markup", title=SCRIPT),
    coupon("HIDDEN-CODE", "shop_hidden"),
)
_OFFERS: Final = (
    offer(
        "off_lamp",
        "shop_books",
        title="Reading Lamp",
        url="https://harbour-lane-books.internal/lamp?size=2",
        price={"amount": "89.00", "currency": "EUR"},
        availability="in_stock",
        updated_at="2026-10-20T09:00:00Z",
    ),
    offer("off_gone", "shop_books", title="Sold Out", availability="out_of_stock"),
    offer("off_silent", "shop_books", title="Something Unsaid"),
    offer("off_markup", "shop_markup", title=MARKUP),
    offer("off_hidden", "shop_hidden"),
)
_SHIPPING: Final = (
    shipping(
        "shop_books",
        destinations=["DE", "FR", "AT"],
        excluded=["AT"],
        destinations_exhaustive=False,
        delivery_time={"min_days": 3, "max_days": 5, "as_stated": "3 à 5 jours ouvrés"},
        free_shipping_threshold={"amount": "33.00", "currency": "EUR"},
        checked_at="2026-06-06T03:10:42Z",
        source="policy_page",
    ),
    shipping("shop_hidden", destinations=["DE"]),
)
_POLICIES: Final = (policy("shop_books", "returns", days=14, counted_from="delivered", countries=["DE"]),)
_TRUST: Final = (
    trust("shop_books", "tls_issuer", "Invented Authority R3", source="tls_handshake"),
    trust("shop_books", "hosting_country", "DE", source="ip_registry", checked_at="2031-05-08T00:00:00Z"),
    trust(
        "shop_books", "payment_methods", ["invoice", "card"], source="checkout_page", checked_at="2031-05-01T00:00:00Z"
    ),
    # An event of its own time, whenever it was looked up.
    trust("shop_books", "domain_registered_at", "2009-04-01T00:00:00Z", checked_at="2031-05-09T00:00:00Z"),
    trust("shop_books", "registrar"),
    trust("shop_markup", "registrar", MARKUP, source=SCRIPT),
    trust("shop_hidden", "tls_grade", "A"),
)


def web_world(directory: Path, shops: Lines = SHOPS) -> Path:
    related_records: dict[str, Any] = {
        "coupons": _COUPONS, "offers": _OFFERS, "shipping": _SHIPPING, "policies": _POLICIES, "trust": _TRUST,
    }  # fmt: skip
    return embedded_world(directory, shops, **related_records)
