"""A world in which one shop, Lumen Lamps, is in the answer of every read tool."""

from collections.abc import Mapping
from typing import Any, Final

from tests.support.catalogues import coupon, offer, program, redirect, shipping, shop, trust, upsert

LAMP: Final = {
    **shop("Lumen Lamps", "lumen.internal", id="lamp", categories=[("lamps", "Lamps"), ("home", "Home")], popularity=5),
    "version": 1,
}
_OTHERS: Final = (
    shop("Moss", "moss.internal", id="moss", categories=[("home", "Home"), ("lamps", "Lamps")]),
    shop("Larch", "larch.internal", id="larch", categories=[("home", "Zuhause")]),
    shop("Fern", "fern.internal", id="fern", categories=[("home", "Zuhause"), "garden"]),
)
_RELATED: Final[Mapping[str, list[dict[str, Any]]]] = {
    "coupons": [coupon("LIGHT", "lamp", id="c-lamp"), coupon("GREEN", "moss", id="c-moss")],
    "offers": [
        offer("o-lamp", "lamp", url="https://lumen.internal/p"),
        offer("o-moss", "moss", url="https://moss.internal/p"),
    ],
    "shipping": [shipping("lamp", destinations=["DE"], source="policy_page", checked_at="2031-05-06T07:08:09Z")],
    "trust": [trust("lamp", "registrar", "A registrar")],
    "affiliate_programs": [program("lamp", "alpha", disclosure="We may earn")],
    "redirects": [redirect("lumen.internal", "moss.internal", source="seen")],
}


def lamp_world(*, known: bool = True) -> dict[str, list[dict[str, Any]]]:
    """The catalogue, or the same without the shop."""
    versioned = [{**line, "version": 1} for line in _OTHERS]
    if known:
        return {"shops": [LAMP, *versioned], **_RELATED}
    return {
        "shops": versioned,
        **{kind: [line for line in lines if not _names_it(line)] for kind, lines in _RELATED.items()},
    }


def _names_it(line: Mapping[str, Any]) -> bool:
    return line.get("shop_id") == "lamp" or line.get("from_domain") == LAMP["domain"]


def now(visibility: str, version: int) -> dict[str, Any]:
    return upsert("shops", {**LAMP, "visibility": visibility}, version)
