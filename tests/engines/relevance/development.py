"""The development queries, asked of the service itself: /suggest and find_shop over an engine with the real shops."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import Any, Final

import httpx2

from indexer.catalogue.new_catalogue import category_records
from indexer.sinks.embedded.sink import EmbeddedSink
from service.app import create_app
from service.limits.policy import QuotaClass
from service.search.embedded.engine import EmbeddedBackend
from service.search.protocol import FindQuery, SearchBackend
from service.settings.service import Settings
from tests.engines.relevance.metrics import DEPTH, SHOWN, Quality, by_kind, keystrokes_until, rank_of_first
from tests.support.catalogues import build_into

_PLENTY: Final = QuotaClass(1_000_000_000, 1_000_000_000, 0)


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one engine, kind by kind of query.

    `keystrokes` is the mean number until the target is among the first eight of /suggest.
    """

    suggest: Mapping[str, Quality]
    find: Mapping[str, Quality]
    keystrokes: float


@asynccontextmanager
async def embedded_engine(catalogue: Path, directory: Path) -> AsyncIterator[SearchBackend]:
    build_into(EmbeddedSink(directory), catalogue)
    backend = EmbeddedBackend(directory)
    try:
        yield backend
    finally:
        await backend.close()


@dataclass(frozen=True, slots=True)
class Wishes:
    """The wishes that find nothing, and those whose first shop carries none of the right categories, of `queries`."""

    queries: int
    empty: tuple[str, ...]
    wrong: tuple[str, ...]


def wishes_catalogue(data: Path, directory: Path) -> Path:
    """A catalogue of the real shops, with the categories of `catalogue init --categories shops`."""
    directory.mkdir()
    copyfile(data / "dev-shops.ndjson", directory / "shops.ndjson")
    lines = (json.dumps(record, ensure_ascii=False) for record in category_records("shops"))
    (directory / "categories.ndjson").write_text("\n".join(lines), encoding="utf-8")
    return directory


async def measure_wishes(backend: SearchBackend, data: Path) -> Wishes:
    """Ask what people type who want something; broader queries do not count."""
    snapshot = await backend.snapshot()
    lines = (data / "dev-wishes.txt").read_text(encoding="utf-8").splitlines()
    empty, wrong = [], []
    for query, _, slugs in (line.partition("|") for line in lines):
        found = (await snapshot.find(FindQuery(query, (), (), 0, 1))).shops
        if not found:
            empty.append(query)
        elif not set(slugs.split()) & set(found[0].categories):
            wrong.append(query)
    return Wishes(len(lines), tuple(empty), tuple(wrong))


async def measure(backend: SearchBackend, data: Path) -> Report:
    # More is asked than one address may: `make relevance` has no settings of a test run around it.
    app = create_app(Settings(request_timeout=10.0, quota_anonymous=_PLENTY), search=backend)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://shops.internal") as client:
        queries = list(_lines(data / "dev-queries.ndjson"))
        return Report(
            suggest=by_kind([(query["kind"], _rank(await _suggest(client, query), query)) for query in queries]),
            find=by_kind([(query["kind"], _rank(await _find(client, query), query)) for query in queries]),
            keystrokes=await _mean_keystrokes(client, list(_lines(data / "dev-sessions.ndjson"))),
        )


async def _mean_keystrokes(client: httpx2.AsyncClient, sessions: list[dict[str, Any]]) -> float:
    counts = []
    for session in sessions:
        shown = [await _suggest(client, {"q": typed}, SHOWN) for typed in session["keystrokes"]]
        counts.append(keystrokes_until(shown, session["target"]))
    return sum(counts) / len(counts)


async def _suggest(client: httpx2.AsyncClient, query: Mapping[str, Any], limit: int = DEPTH) -> list[str]:
    country = {"country": query["country"]} if "country" in query else {}
    answer = await client.get("/suggest", params={"q": query["q"], "limit": limit, **country})
    return _ids(answer, "shops")


async def _find(client: httpx2.AsyncClient, query: Mapping[str, Any]) -> list[str]:
    country = {"country": query["country"]} if "country" in query else {}
    answer = await client.post("/tool/find_shop", json={"query": query["q"], "limit": DEPTH, **country})
    return _ids(answer, "results")


def _ids(answer: httpx2.Response, field: str) -> list[str]:
    # A failure is never an empty list, here neither.
    answer.raise_for_status()
    return [shop["id"] for shop in answer.json()[field]]


def _rank(answer: list[str], query: Mapping[str, Any]) -> int | None:
    return rank_of_first(answer, frozenset(query["relevant"]), frozenset(query.get("acceptable", ())))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
