"""Amounts of money, and the shop that a row belongs to, as several tools show them."""

from typing import Annotated

from pydantic import Field

from service.tools.tool import ToolResponse


class Money(ToolResponse):
    """An amount."""

    amount: Annotated[str, Field(description="A decimal number as a string, such as 19.99.")]
    currency: Annotated[str, Field(description="ISO 4217 code.")]


class ShopKey(ToolResponse):
    """The shop that something belongs to."""

    id: Annotated[str, Field(description="The directory's id of the shop.")]
    domain: Annotated[str, Field(description="The shop's domain.")]


class NamedShop(ToolResponse):
    """The shop that something belongs to, with its name."""

    id: Annotated[str, Field(description="The directory's id of the shop.")]
    domain: Annotated[str, Field(description="The shop's domain.")]
    name: Annotated[str, Field(description="Display name.")]
