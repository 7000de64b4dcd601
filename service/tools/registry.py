"""All tools, in the order in which every door lists them. Adding a tool is one file and one line here."""

from typing import Any, Final

from service.tools.find_shop import FIND_SHOP
from service.tools.get_shop import GET_SHOP
from service.tools.list_categories import LIST_CATEGORIES
from service.tools.tool import Tool

REGISTRY: Final[tuple[Tool[Any], ...]] = (
    FIND_SHOP,
    LIST_CATEGORIES,
    GET_SHOP,
)
