"""One line of a file of acceptance queries, within the bounds that callers have (M8, M9).

As with records, a reason never repeats the value that is wrong (V1).
"""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from index_mappings.countries import COUNTRY_CODES
from index_mappings.forms import query_forms
from index_mappings.hosts import MAX_REFERENCE, has_dot, reduce_host
from indexer.records.shop import Slug, clean
from shop_directory.acceptance import (
    FIRST_PAGE,
    LARGEST_PAGE,
    MAX_FIND_QUERY,
    MAX_FIND_WORDS,
    MAX_SUGGEST_QUERY,
    AcceptanceQuery,
    AcceptanceTool,
)

_ID: Final = re.compile("[A-Za-z0-9_-]{1,64}")


def _country(code: str) -> str:
    if code not in COUNTRY_CODES:
        raise ValueError("must be an assigned ISO 3166-1 alpha-2 code (or XK) in capitals")
    return code


def _shop(text: str) -> str:
    """A shop's id, or its domain reduced in the same way as a caller's (R1)."""
    name = clean(text).strip()
    if not has_dot(name):
        if _ID.fullmatch(name):
            return name
    elif (host := reduce_host(name)) is not None and has_dot(host):
        return host
    raise ValueError("must be the id or the domain of a shop")


_Shops = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_REFERENCE), AfterValidator(_shop)], ...], Field(strict=False)
]


class AcceptanceLine(BaseModel):
    """An acceptance query as an operator writes it. A field is checked against the fields above it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    tool: Literal["find_shop", "suggest"]
    query: Annotated[str, AfterValidator(clean)]
    country: Annotated[str, AfterValidator(_country)] | None = None
    category: Slug | None = None
    expect: _Shops = ()
    within: Annotated[int, Field(ge=1)] | None = None
    absent: _Shops = ()
    minimum_total: Annotated[int, Field(ge=1)] | None = None

    def to_query(self, location: str) -> AcceptanceQuery:
        """The query of this line, whose file and line number are its location."""
        tool = AcceptanceTool(self.tool)
        return AcceptanceQuery(
            location=location,
            tool=tool,
            query=self.query,
            country=self.country,
            category=self.category,
            expect=self.expect,
            within=self.within or FIRST_PAGE[tool],
            absent=self.absent,
            minimum_total=self.minimum_total,
        )

    @field_validator("query")
    @classmethod
    def _as_callers_may(cls, query: str, info: ValidationInfo) -> str:
        tool = info.data.get("tool")
        most = MAX_SUGGEST_QUERY if tool == AcceptanceTool.SUGGEST else MAX_FIND_QUERY
        if tool is not None and len(query) > most:
            raise ValueError(f"is longer than {most} characters")
        if tool == AcceptanceTool.FIND_SHOP and len(query_forms(query).words) > MAX_FIND_WORDS:
            raise ValueError(f"has more than {MAX_FIND_WORDS} words")
        return query

    @field_validator("category", "minimum_total")
    @classmethod
    def _of_find_shop(cls, value: str | int | None, info: ValidationInfo) -> str | int | None:
        if value is not None and info.data.get("tool") == AcceptanceTool.SUGGEST:
            raise ValueError("is for find_shop only")
        return value

    @field_validator("within")
    @classmethod
    def _on_one_page(cls, within: int | None, info: ValidationInfo) -> int | None:
        tool = info.data.get("tool")
        if within is not None and tool is not None and within > (most := LARGEST_PAGE[tool]):
            raise ValueError(f"must be at most {most}")
        return within

    @field_validator("absent")
    @classmethod
    def _not_expected(cls, absent: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not set(absent).isdisjoint(info.data.get("expect", ())):
            raise ValueError("names a shop that expect names")
        return absent

    @model_validator(mode="after")
    def _states_something(self) -> Self:
        if not (self.expect or self.absent or self.minimum_total):
            raise ValueError("states nothing to check: give expect, absent or minimum_total")
        if len(set(self.expect)) > (self.within or FIRST_PAGE[AcceptanceTool(self.tool)]):
            raise ValueError("expects more shops than within allows")
        return self
