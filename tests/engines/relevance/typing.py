"""Categories while typing (M10): names of the shipped categories, and categories that names of shops show wrongly."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from indexer.catalogue.new_catalogue import category_records
from shop_directory.search.protocol import SearchBackend
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.relevance.metrics import SHOWN

# One name in this many is typed: the synonyms alone are 27,000.
_STEPS: Final = {"own": 1, "other language": 8, "synonym": 60}
_FORMS: Final[Mapping[str, str]] = {"whole": "{}", "cut": "{}", "with shop": "{} shop"}
# Classes of queries for shops by their names, or by parts of them.
_OF_NAMES: Final = ("prefix", "exact_name", "multiword", "typo_prefix", "real_variant")
_THREE: Final = 3


@dataclass(frozen=True, slots=True)
class TypedNames:
    """The share of names with a right category first, and among the first three."""

    queries: int
    first: float
    three: float


@dataclass(frozen=True, slots=True)
class Typing:
    """Figures by kind and form of a name; and, by class of queries, the mean number of wrong categories of a query."""

    names: Mapping[str, TypedNames]
    wrong: Mapping[str, float]


async def measure_typing(backend: SearchBackend, data: Path) -> Typing:
    """Type the names of the shipped categories that some shop has, and the development queries for shops."""
    snapshot = await backend.snapshot()
    shown = {category.slug for category in await snapshot.categories()}

    def suggested(text: str, country: str | None = None) -> list[str]:
        query = SuggestQuery.of(text, country, SHOWN)
        return [category.slug for category in snapshot.suggest(query).categories]

    typed: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    right = _right(shown)
    for kind, names in _by_kind(shown).items():
        for name in names[:: _STEPS[kind]]:
            for form, pattern in _FORMS.items():
                text = pattern.format(name[: -(-len(name) * 2 // 3)] if form == "cut" else name)
                hits = [slug in right[name.casefold()] for slug in suggested(text)[:_THREE]]
                typed[f"{kind}, {form}"].append((hits[:1] == [True], any(hits)))
    figures = {
        kind: TypedNames(len(one), sum(first for first, _ in one) / len(one), sum(three for _, three in one) / len(one))
        for kind, one in typed.items()
    }
    carried = {
        line["id"]: {category["slug"] for category in line["categories"]} for line in _lines(data / "dev-shops.ndjson")
    }
    wrong: dict[str, list[int]] = {kind: [] for kind in _OF_NAMES}
    for query in _lines(data / "dev-queries.ndjson"):
        if query["kind"] in wrong:
            meant = set().union(*(carried[shop] for shop in (*query["relevant"], *query.get("acceptable", ()))))
            found = suggested(query["q"], query.get("country"))
            wrong[query["kind"]].append(sum(slug not in meant for slug in found))
    return Typing(figures, {kind: sum(counts) / len(counts) for kind, counts in wrong.items()})


def _by_kind(shown: set[str]) -> dict[str, list[str]]:
    """The distinct names of the shipped categories, those of a better kind left out of the others."""
    kinds: dict[str, dict[str, None]] = {"own": {}, "other language": {}, "synonym": {}}
    for record in category_records("shops"):
        if record["slug"] in shown:
            for kind, name in _names(record):
                kinds[kind].setdefault(name)
    kinds["other language"] = {one: None for one in kinds["other language"] if one not in kinds["own"]}
    better = {*kinds["own"], *kinds["other language"]}
    kinds["synonym"] = {one: None for one in kinds["synonym"] if one not in better}
    return {kind: sorted(names) for kind, names in kinds.items()}


def _right(shown: set[str]) -> Mapping[str, set[str]]:
    """By name in lower case, the slugs of the categories that have it."""
    right: dict[str, set[str]] = defaultdict(set)
    for record in category_records("shops"):
        if record["slug"] in shown:
            for _, name in _names(record):
                right[name.casefold()].add(record["slug"])
    return right


def _names(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "own", record["name"]
    yield from (("other language", name) for name in record.get("names", {}).values())
    synonyms: Mapping[str, Iterable[str]] = record.get("synonyms", {})
    yield from (("synonym", name) for names in synonyms.values() for name in names)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
