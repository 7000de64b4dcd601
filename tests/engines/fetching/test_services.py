"""From a catalogue to suggestions over a real OpenSearch: by way of documents and a folder, and what damage does."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch

from index_mappings.generations import STAMP, Stamp, alias_name, index_name
from index_mappings.opensearch import TYPEAHEAD, chunk_id
from indexer.jobs.build import build
from indexer.jobs.rollback import roll_back
from indexer.reconcile.live import VerifyOptions, verify_live
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.opensearch.typeahead import LOOK_S, MAX_WAIT_S, TypeaheadOptions
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.state import States
from service.app import create_app
from service.settings.service import Settings
from shop_directory.search.failures import BackendUnavailable
from shop_directory.search.opensearch.engine import OpenSearchBackend
from shop_directory.search.opensearch.folder import FolderLocation
from shop_directory.search.opensearch.typeahead import MISSING
from shop_directory.search.protocol import TypeaheadState
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.conftest import OpenSearchLocation
from tests.support.catalogues import shop, write_catalogue_directory
from tests.support.served import get, post, served, until, until_ready

pytestmark = pytest.mark.opensearch

READY: Final = TypeaheadState("ready")
_BOUND_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class World:
    """Both sides of one prefix; `folder` is where the service has its files, `scratch` is for catalogues."""

    client: OpenSearch
    prefix: str
    sink: OpenSearchSink
    states: States
    backend: OpenSearchBackend
    folder: Path
    scratch: Path

    def build(self, *names: str) -> Stamp:
        return build(self.catalogue(*names), self.sink, self.states).stamp

    def verify(self, *, repair: bool) -> list[tuple[str, str, int]]:
        found = verify_live(self.sink, self.states, options=VerifyOptions(repair=repair)).found
        assert found.repaired == (found.total if repair else 0)
        return [(fault.value, kind, number) for fault, kind, number in found.ordered()]

    async def names(self, text: str) -> list[str]:
        suggested = (await self.backend.snapshot()).suggest(SuggestQuery.of(text, None, 20))
        return [suggestion.shop.name for suggestion in suggested.shops]

    async def becomes(self, state: TypeaheadState) -> None:
        async with asyncio.timeout(_BOUND_S):
            while True:
                await self.backend.snapshot()
                if self.backend.typeahead_state() == state:
                    return
                await asyncio.sleep(0.1)

    async def shows(self, text: str, names: list[str]) -> None:
        async with asyncio.timeout(_BOUND_S):
            while await self.names(text) != names:
                await asyncio.sleep(0.1)

    def segments(self, stamp: Stamp) -> dict[str, dict[str, Any]]:
        index = index_name(self.prefix, TYPEAHEAD, stamp.generation)
        self.client.indices.refresh(index=index)
        hits = self.client.search(index=index, body={"size": 100})["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits if hit["_id"] != chunk_id(stamp.typeahead, 0)}

    def gets(self, stamp: Stamp) -> int:
        index = index_name(self.prefix, TYPEAHEAD, stamp.generation)
        return int(self.client.indices.stats(index=index, metric="get")["indices"][index]["total"]["get"]["total"])

    def catalogue(self, *names: str) -> NdjsonCatalogue:
        shops = [shop(name, f"{slug}.example", id=slug) for name in names for slug in [name.lower().replace(" ", "-")]]
        return NdjsonCatalogue(write_catalogue_directory(self.scratch / secrets.token_hex(4), shops=shops))


@pytest.fixture
async def world(
    request: pytest.FixtureRequest, opensearch_location: OpenSearchLocation, client: OpenSearch, tmp_path: Path
) -> AsyncIterator[World]:
    """Nothing published; a build waits for as many readers as the parameter says, by default for none."""
    url, prefix = opensearch_location.url, opensearch_location.prefix
    options = TypeaheadOptions(tmp_path / "states" / "typeahead", readers=getattr(request, "param", 0))
    sink = OpenSearchSink([url], prefix, letters=tmp_path / "letters", typeahead=options)
    backend = OpenSearchBackend([url], prefix, timeout=10.0, location=FolderLocation(tmp_path / "fetched"))
    states = States(tmp_path / "states", sink.location)
    yield World(client, prefix, sink, states, backend, tmp_path / "fetched", tmp_path)
    await backend.close()
    sink.close()


def _remove(world: World, stamp: Stamp) -> None:
    (document_id,) = world.segments(stamp)
    world.client.delete(index=index_name(world.prefix, TYPEAHEAD, stamp.generation), id=document_id)


@pytest.mark.rule("E3")
async def test_damaged_files_end_suggestions_only_until_they_are_repaired(world: World) -> None:
    _remove(world, world.build("Harbour"))
    await world.becomes(TypeaheadState("failed", MISSING))
    snapshot = await world.backend.snapshot()
    with pytest.raises(BackendUnavailable):
        snapshot.suggest(SuggestQuery.of("ha", None, 20))
    found = await snapshot.shop("harbour")
    assert found is not None
    assert found.name == "Harbour"

    assert world.verify(repair=False) == [("damaged", "typeahead", 1)]
    assert world.verify(repair=True) == [("damaged", "typeahead", 1)]
    assert world.verify(repair=False) == []
    await world.becomes(READY)
    assert await world.names("ha") == ["Harbour"]


@pytest.mark.rule("O1", "E3")
def test_ready_reports_what_is_wrong_with_the_files_and_shops_are_still_found(
    world: World, opensearch_url: str
) -> None:
    _remove(world, world.build("Harbour"))
    settings = Settings(engine="opensearch", opensearch_urls=opensearch_url, index_prefix=world.prefix)
    with served(create_app(settings)) as base:
        text = f"typeahead: {MISSING}."
        ready = until(lambda: get(base, "/ready"), lambda reply: reply.json["detail"] == text, _BOUND_S)
        assert ready.status == 503
        assert get(base, "/suggest?q=ha").status == 503
        assert post(base, "/tool/find_shop", {"query": "harbour"}).status == 503
        assert post(base, "/tool/get_shop", {"shop_domain": "harbour.example"}).status == 200
        world.verify(repair=True)
        until_ready(base)
        assert [found["name"] for found in get(base, "/suggest?q=ha").json["shops"]] == ["Harbour"]


async def test_a_folder_that_cannot_be_used_ends_suggestions_only_until_it_can(world: World) -> None:
    world.build("Harbour")
    world.folder.write_text("no folder")
    await world.becomes(TypeaheadState("failed", "the folder for its files cannot be used (EEXIST)"))
    assert await (await world.backend.snapshot()).shop("harbour") is not None
    world.folder.unlink()
    await world.becomes(READY)
    assert await world.names("ha") == ["Harbour"]


@pytest.mark.rule("G4")
async def test_a_stale_writer_changes_neither_stamp_nor_suggestions(world: World) -> None:
    stamp = world.build("Harbour", "Hazel")
    first, stale = (world.sink.edit(stamp.generation) for _ in range(2))
    for editor, gone in ((first, "hazel"), (stale, "harbour")):
        editor.write("shops", [], [gone])
        editor.show()
    first.commit(replace(stamp, sequence=stamp.sequence + 1))
    with pytest.raises(SinkError, match="the stamp could not be replaced"):
        stale.commit(replace(stamp, sequence=stamp.sequence + 1))
    assert world.sink.live() == first.stamp
    await world.shows("ha", ["Harbour"])


@pytest.mark.parametrize("world", [1], indirect=True)
async def test_an_announced_generation_is_there_when_it_is_published(world: World) -> None:
    world.build("Harbour")
    assert await world.names("ha") == ["Harbour"]
    stop = asyncio.Event()

    async def ask() -> None:
        while not stop.is_set():
            await world.names("ha")
            await asyncio.sleep(0.05)

    asking = asyncio.create_task(ask())
    second = await asyncio.to_thread(world.build, "Hazel")
    await world.shows("ha", ["Hazel"])
    # Once by the service while it was announced, and never again; the indexer reads what it wrote from its own folder.
    assert world.gets(second) == 3
    rolled = await asyncio.to_thread(roll_back, world.sink, world.states, None)
    await world.shows("ha", ["Harbour"])
    stop.set()
    await asking
    assert rolled.replaced == second.generation
    assert world.client.exists(index=alias_name(world.prefix, STAMP), id="announced") is False


def test_readers_get_time_by_their_number_and_the_size_within_bounds() -> None:
    size = 100 * 1024**2
    assert TypeaheadOptions().seconds(size) == 0.0
    assert TypeaheadOptions(readers=1).seconds(size) == LOOK_S + 2.0
    assert TypeaheadOptions(readers=10).seconds(size) == LOOK_S + 20.0
    assert TypeaheadOptions(readers=10, rate=1024.0**2).seconds(size) == MAX_WAIT_S
