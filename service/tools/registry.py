"""All tools, in the order in which every transport lists them. A new tool is one file and one line here."""

from typing import Any, Final

from service.tools.find_shop import FIND_SHOP
from service.tools.get_shipping_policy import GET_SHIPPING_POLICY
from service.tools.get_shop import GET_SHOP
from service.tools.get_shop_policies import GET_SHOP_POLICIES
from service.tools.get_shops import GET_SHOPS
from service.tools.get_trust import GET_TRUST
from service.tools.list_categories import LIST_CATEGORIES
from service.tools.list_coupons import LIST_COUPONS
from service.tools.monetize_offer import MONETIZE_OFFER
from service.tools.report_code import REPORT_CODE
from service.tools.report_issue import REPORT_ISSUE
from service.tools.resolve_checkout_url import RESOLVE_CHECKOUT_URL
from service.tools.resolve_conflict import RESOLVE_CONFLICT
from service.tools.tool import Tool

REGISTRY: Final[tuple[Tool[Any], ...]] = (
    FIND_SHOP,
    LIST_CATEGORIES,
    GET_SHOP,
    GET_SHOPS,
    LIST_COUPONS,
    GET_SHIPPING_POLICY,
    GET_SHOP_POLICIES,
    GET_TRUST,
    REPORT_CODE,
    REPORT_ISSUE,
    MONETIZE_OFFER,
    RESOLVE_CHECKOUT_URL,
    RESOLVE_CONFLICT,
)
