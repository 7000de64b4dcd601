"""What the rows of a list say of each shop besides the answer of find_shop: a code that worked, shipping, returns.

It comes from the answers of list_coupons and get_shop_policies for the shops of the list, so it follows their rules: a
code counts while that tool lists it. `rows.js` does the same where the script makes the list.
"""

from collections.abc import Mapping
from typing import Any

from service.web.site import is_elsewhere


def row_facts(
    coupons: Mapping[str, Any] | None, policies: Mapping[str, Any] | None, country: str | None
) -> dict[str, dict[str, Any]]:
    """What is known, by the shops' ids as they were sent; None stands for an answer that failed.

    `worked` is whether a code worked in a real checkout that is not for other countries only, `ships_to` the verdict on
    the country (absent without one), and `returns` the period: its category and days.
    """
    facts: dict[str, dict[str, Any]] = {}
    for entry in coupons["shops"] if coupons else ():
        if any(_worked(coupon, country) for coupon in (entry["coupons"] or {"results": ()})["results"]):
            facts.setdefault(entry["shop_domain"], {})["worked"] = True
    for entry in policies["shops"] if policies else ():
        if (stated := entry["policies"]) is None:
            continue
        shop = facts.setdefault(entry["shop_domain"], {})
        if country is not None:
            shop["ships_to"] = stated["shipping"]["ships_to"]
        if (returns := stated["returns"]) is not None:
            shop["returns"] = {"category": returns["category"], "days": returns["days"]}
    return facts


def _worked(coupon: Mapping[str, Any], country: str | None) -> bool:
    return coupon["verificationStatus"] == "verified_applied" and not is_elsewhere(coupon, country)
