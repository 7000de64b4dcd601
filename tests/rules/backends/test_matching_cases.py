"""What people of many languages type, each case written by hand: the shop that they mean comes first."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

from service.search.protocol import Snapshot
from tests.rules.backends.asking import find, suggest
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shop
from tests.support.sample import SAMPLE, records

CASES: Final = Path(__file__).with_name("matching_cases.toml")


class _Strict(BaseModel):
    """A table of the file, whose first lines say what it may hold."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Shop(_Strict):
    id: str
    name: str
    domain: str | None = None
    aliases: list[str] = []
    popularity: float | None = None
    countries: list[str] = []
    categories: list[str] = ["things"]


class _Case(_Strict):
    q: str
    find_shop: str
    suggest: str
    country: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _first_is_both(cls, row: dict[str, Any]) -> dict[str, Any]:
        if "first" not in row:
            return row
        if row.keys() & {"find_shop", "suggest"}:
            raise ValueError("must have `first`, or `find_shop` and `suggest`")
        first = {"find_shop": row["first"], "suggest": row["first"]}
        return first | {name: value for name, value in row.items() if name != "first"}


class _Section(_Strict):
    shops: list[_Shop]
    cases: list[_Case]


class Wish(_Strict):
    """A query of find_shop and its answer: shops by id in a world of the file, else by name."""

    q: str
    first: str
    total: int
    ignored: list[str] = []
    meant: list[str] = []


class Wishes(_Strict):
    """Wishes about shops of the file, or of a catalogue that is known elsewhere."""

    shops: list[_Shop] = []
    categories: list[dict[str, Any]] = []
    cases: list[Wish]


def _sections() -> dict[str, _Section]:
    """The file by language; a mistake in it is an error that names the section and the row."""
    tables = tomllib.loads(CASES.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, _Section]).validate_python({name: tables[name] for name in tables.keys() - {"wishes"}})


def wishes() -> dict[str, Wishes]:
    """The wishes of the file by catalogue."""
    tables = tomllib.loads(CASES.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, Wishes]).validate_python(tables["wishes"])


async def wrong_answers(world: Snapshot, cases: Iterable[Wish], *, by_id: bool = False) -> list[str]:
    """The wishes that are not answered as they say."""
    wrong = []
    for case in cases:
        found = await find(world, case.q, limit=1)
        shown = [[one.id if by_id else one.name for one in some] for some in (found.shops, found.did_you_mean)]
        answer = Wish(q=case.q, first="".join(shown[0]), total=found.total, ignored=[*found.ignored], meant=shown[1])
        if answer != case:
            wrong.append(f"{answer}, expected {case}")
    return wrong


@pytest.mark.rule("X1", "X2", "X2.articles", "X2.unspaced", "X3", "M4", "M9")
async def test_the_expected_shop_is_first_in_a_search_and_among_suggestions(directory: Directory) -> None:
    sections = _sections()
    shops = [one for section in sections.values() for one in section.shops]
    world = await directory([shop(one.name, one.domain, **one.model_dump(exclude={"name", "domain"})) for one in shops])
    wrong = []
    for language, case in ((language, case) for language, section in sections.items() for case in section.cases):
        found = (await find(world, case.q, country=case.country)).shops
        suggested = (await suggest(world, case.q, country=case.country)).shops
        answered = (found[0].id if found else "", suggested[0].shop.id if suggested else "")
        if answered != (case.find_shop, case.suggest):
            wrong.append(f"[{language}] {case.q!r}: {answered}, expected {(case.find_shop, case.suggest)}")
    assert wrong == []


def test_there_are_cases_of_many_languages_each_once_and_of_shops_that_are_there() -> None:
    sections = _sections().values()
    cases = [case for section in sections for case in section.cases]
    ids = [one.id for section in sections for one in section.shops]
    assert (len(sections) >= 20, len(cases) >= 120) == (True, True)
    assert (len({(case.q, case.country) for case in cases}), len(set(ids))) == (len(cases), len(ids))
    assert {shop_id for case in cases for shop_id in (case.find_shop, case.suggest)} - {*ids, ""} == set()


@pytest.mark.rule("M3.labels", "M3.wishes", "M3.hosts", "M4.first_category", "M5.stems", "M5.runs", "M6.ignored")
async def test_wishes_in_words_and_countries_and_hosts_are_understood(directory: Directory) -> None:
    awkward = wishes()["awkward"]
    lines = [shop(one.name, one.domain, **one.model_dump(exclude={"name", "domain"})) for one in awkward.shops]
    world = await directory(lines, categories=awkward.categories)
    assert await wrong_answers(world, awkward.cases, by_id=True) == []


@pytest.mark.rule("M3.wishes", "M5", "M5.stems", "M5.runs", "M6.did_you_mean")
async def test_wishes_about_the_shops_of_the_sample_are_understood(directory: Directory) -> None:
    shops, categories = (records(SAMPLE / f"{kind}.ndjson") for kind in ("shops", "categories"))
    assert await wrong_answers(await directory(shops, categories=categories), wishes()["sample"].cases) == []


def test_there_are_eighty_wishes_each_once_in_its_catalogue() -> None:
    cases = {name: [case.q for case in found.cases] for name, found in wishes().items()}
    assert {name: len(queries) - len(set(queries)) for name, queries in cases.items()} == dict.fromkeys(cases, 0)
    assert sum(map(len, cases.values())) >= 80
