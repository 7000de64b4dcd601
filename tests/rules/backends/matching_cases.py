"""Reads the cases that people wrote by hand: what is typed, and which shop is expected first."""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from tests.support.catalogues import shop

CASES: Final = Path(__file__).with_name("matching_cases.toml")
_STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True)


class CasesError(Exception):
    """The file is not as its first lines say; the message has the section and the row."""


class Case(NamedTuple):
    """What is typed.

    Attributes:
        language: the section.
        q: as typed.
        find_shop: id of the first shop of a search, or "" where none is found.
        suggest: the same of the suggestions.
        country: the filter.
    """

    language: str
    q: str
    find_shop: str
    suggest: str
    country: str | None


class Cases(NamedTuple):
    """The whole file.

    Attributes:
        shops: lines of `shops` of all sections, one directory.
        cases: of all sections, in order.
    """

    shops: Sequence[Mapping[str, Any]]
    cases: Sequence[Case]


class _Shop(BaseModel):
    model_config = _STRICT
    id: str
    name: str
    domain: str | None = None
    aliases: list[str] = []
    popularity: float | None = None
    countries: list[str] = []
    categories: list[str] = ["things"]


class _Row(BaseModel):
    model_config = _STRICT
    q: str
    first: str | None = None
    find_shop: str | None = None
    suggest: str | None = None
    country: str | None = None

    @model_validator(mode="after")
    def _says_each_once(self) -> "_Row":
        given = (self.find_shop is not None, self.suggest is not None)
        if given != ((False, False) if self.first is not None else (True, True)):
            raise ValueError("must have `first`, or `find_shop` and `suggest`")
        return self


class _Section(BaseModel):
    model_config = _STRICT
    shops: Annotated[list[_Shop], Field(min_length=1)]
    cases: Annotated[list[_Row], Field(min_length=1)]


def read_cases(path: Path = CASES) -> Cases:
    """Read and check the file.

    Raises:
        CasesError: it is not as its first lines say.
    """
    try:
        sections = TypeAdapter(dict[str, _Section]).validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise CasesError(f"{path.name} is no TOML: {error}") from error
    except ValidationError as error:
        raise CasesError("\n".join(map(_described, error.errors(include_url=False)))) from error
    shops = [line for section in sections.values() for line in section.shops]
    ids = Counter(line.id for line in shops)
    if repeated := [shop_id for shop_id, times in ids.items() if times > 1]:
        raise CasesError(f"two shops have one id: {', '.join(repeated)}")
    cases = [_case(language, row) for language, section in sections.items() for row in section.cases]
    for case in cases:
        if unknown := {case.find_shop, case.suggest} - ids.keys() - {""}:
            raise CasesError(f"[{case.language}] {case.q!r} expects a shop that is not there: {', '.join(unknown)}")
    typed = Counter((case.q, case.country) for case in cases)
    if repeated := [q for (q, _), times in typed.items() if times > 1]:
        raise CasesError(f"two cases have one q and country: {', '.join(map(repr, repeated))}")
    return Cases([shop(line.name, line.domain, **line.model_dump(exclude={"name", "domain"})) for line in shops], cases)


def _case(language: str, row: _Row) -> Case:
    first = row.first or ""
    find_shop = first if row.find_shop is None else row.find_shop
    return Case(language, row.q, find_shop, first if row.suggest is None else row.suggest, row.country)


def _described(error: Mapping[str, Any]) -> str:
    section, *location = error["loc"]
    row = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in location)
    return f"[{section}] {row}: {error['msg']}"
