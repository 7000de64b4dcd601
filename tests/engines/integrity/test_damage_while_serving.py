"""Files cut short under a serving process, and damaged ones of a real node: right answers or none (E3)."""

import asyncio
import logging
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from index_mappings.embedded import COMMITTED
from index_mappings.generations import index_name
from indexer.jobs.build import BuildOptions, build
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.state.state import States
from shop_directory.search.embedded.checks import FileChecks
from shop_directory.search.failures import GenerationDamaged
from shop_directory.search.opensearch.engine import OpenSearchBackend
from shop_directory.typeahead.reading import segments
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.integrity.test_damage import damages, wrong
from tests.engines.integrity.world import UNAVAILABLE, Damage, DamagedWorld, answers, catalogue
from tests.support.real.opensearch import OpenSearchNode
from tests.support.real.plugin import NodeFactory
from tests.support.served import get, post
from tests.support.service_process import Service, serving

TRUNCATIONS: Final = int(os.environ.get("SHOP_DIRECTORY_TRUNCATIONS", "4"))
_READS: Final[tuple[tuple[str, dict[str, Any] | None], ...]] = (
    ("/suggest?q=l", None),
    ("/tool/find_shop", {"query": "lamps"}),
    ("/tool/find_shop", {"query": ""}),
    ("/tool/list_categories", {}),
    ("/tool/get_shop", {"shop_domain": "d1.internal"}),
    ("/tool/get_shipping_policy", {"shop_domain": "d2.internal"}),
)
_SUGGESTIONS: Final = tuple(f"/suggest?q={q}" for q in ("l", "lumen", "kestrle", "harbour", "ink", "moss", "d1", "zz"))
_LOG: Final = logging.getLogger(__name__)
# Stamp and cached answers are trusted for two seconds, and all files of this small generation are read in two.
_FOUND_BOUND_S: Final = 10.0

_NOT_MAPPED: Final = {".json", ".files"}
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def _in_last_page(path: Path) -> Damage:
    """A cut within the last page of a file: the rest of the page reads as zeros, and ends no process."""
    size = path.stat().st_size
    start = (size - 1) // _PAGE * _PAGE
    return Damage(path, (start + size) // 2, None)


@pytest.mark.rule("E3")
async def test_a_cut_of_any_open_file_of_an_index_is_found_by_the_next_call_that_reads_the_index(
    tmp_path: Path,
) -> None:
    world = DamagedWorld(tmp_path, shops=12)
    world.sink.close()
    backend = world.backend()
    right = await answers(backend)
    await backend.close()
    for path in world.files():
        if COMMITTED not in path.parts or path.suffix in _NOT_MAPPED or path.parent.name.startswith("categories-"):
            continue  # the categories are answered from the typeahead
        backend = world.backend(FileChecks(pause=60.0))  # the background thread finds nothing meanwhile
        snapshot = await backend.refresh()
        whole = path.read_bytes()
        _in_last_page(path).do()
        found = await answers(backend, snapshot)
        path.write_bytes(whole)
        await backend.close()
        assert (wrong(found, right), UNAVAILABLE in found.values()) == ([], True), path


@pytest.mark.rule("E3")
async def test_no_suggestion_comes_from_a_mapped_segment_that_was_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_MAPPED_BYTES", 0)
    world = DamagedWorld(tmp_path, shops=12)
    world.sink.close()
    (path,) = (path for path in world.files() if path.suffix == ".segment")
    backend = world.backend(FileChecks(pause=60.0))
    snapshot = await backend.refresh()
    assert snapshot.suggest(SuggestQuery.of("lumen", None, 8)).shops
    _in_last_page(path).do()
    for text in ("lumen", "nothing like it"):
        with pytest.raises(GenerationDamaged, match=f"^the file {path.name} of the typeahead is damaged$"):
            snapshot.suggest(SuggestQuery.of(text, None, 8))
    await backend.close()


class _Reading:
    def __init__(self, root: Path, folder: Path) -> None:
        self.service = Service(folder / "service", {"DATA_DIR": str(root), "STATE_DIR": str(folder / "state")})
        self.service.start()

    def answers(self) -> list[Any] | None:
        """The answer of each read, None instead of a 503; None if the process ended."""
        found = []
        for path, body in _READS:
            try:
                answer = get(self.service.base, path) if body is None else post(self.service.base, path, body)
            except (OSError, HTTPException):
                return None
            if answer.status == 503:
                assert answer.json["code"] == "backend_unavailable"
            else:
                assert answer.status == 200, (path, answer.body)
            found.append(None if answer.status == 503 else answer.json)
        return found

    def until_found(self) -> bool:
        """Wait until the service knows of a damage, or for as long as that takes; whether it still runs."""
        end = time.monotonic() + _FOUND_BOUND_S
        while time.monotonic() < end and self.service.is_running and "damaged" not in self._readiness():
            time.sleep(0.1)
        return self.service.is_running

    def _readiness(self) -> str:
        try:
            return get(self.service.base, "/ready").body.decode()
        except (OSError, HTTPException):
            return ""


@pytest.mark.rule("E3")
def test_small_files_of_the_typeahead_that_are_cut_short_while_serving_end_no_process(tmp_path: Path) -> None:
    world = DamagedWorld(tmp_path)
    world.sink.close()
    # Each request is answered from the segments, as no response is cached.
    settings = {"DATA_DIR": str(world.root), "STATE_DIR": str(tmp_path / "state"), "SUGGEST_CACHE_MB": "0"}
    with serving(tmp_path / "service", settings) as service:
        right = [get(service.base, path).json for path in _SUGGESTIONS]
        for segment in (path for path in world.files() if path.suffix == ".segment"):
            os.truncate(segment, 0)
        for path, expected in zip(_SUGGESTIONS, right, strict=True):
            try:
                answer = get(service.base, path)
            except (OSError, HTTPException):
                raise AssertionError(f"the process ended with {service.ended()}") from None
            assert answer.status == 503 or answer.json == expected, path


@pytest.mark.slow
@pytest.mark.rule("E3")
def test_no_file_that_is_cut_short_while_serving_gives_a_wrong_answer(tmp_path: Path) -> None:
    world = DamagedWorld(tmp_path)
    mapped = [path for path in world.files() if COMMITTED in path.parts and path.suffix not in _NOT_MAPPED]
    others = [path for path in world.files() if path.suffix == ".segment"]
    lost = refused = 0
    reading = _Reading(world.root, tmp_path)
    right = reading.answers()
    files = [path for pair in zip(mapped, cycle(others), strict=False) for path in pair]
    for damage in damages(files, 0, TRUNCATIONS, seed=3):
        whole = damage.path.read_bytes()
        damage.do()
        found = reading.answers() if reading.until_found() else None
        damage.path.write_bytes(whole)
        if found is None:
            assert reading.service.ended() == -signal.SIGBUS
            assert damage.path in mapped, damage
            lost += 1
            reading = _Reading(world.root, tmp_path)
            continue
        assert right is not None
        assert all(answer in (expected, None) for answer, expected in zip(found, right, strict=True)), damage
        refused += None in found
        reading.service.wait_until_ready()
    reading.service.stop()
    world.sink.close()
    _LOG.info("%d files cut short: %d times no answers, %d processes lost", TRUNCATIONS, refused, lost)
    assert refused + lost == TRUNCATIONS


# What is answered from the index whose shard is damaged.
_FAILING: Final = {"coupons", "all coupons"}
_BOUND_S: Final = 60.0
_CHANCE: Final = random.Random(5)  # noqa: S311 - the same damage each time


def _flip(path: Path) -> None:
    Damage(path, _CHANCE.randrange(path.stat().st_size // 4, path.stat().st_size // 2), 3).do()


def _cut(path: Path) -> None:
    Damage(path, path.stat().st_size // 2, None).do()


def _shard_file(node: OpenSearchNode, client: OpenSearch, index: str) -> Path:
    uuid = client.indices.get_settings(index=index)[index]["settings"]["index"]["uuid"]
    files = (node.allocation.folder / "data").glob(f"**/indices/{uuid}/*/index/*")
    return max(files, key=lambda path: path.stat().st_size)


async def _settled(client: OpenSearch) -> None:
    async with asyncio.timeout(_BOUND_S):
        while True:
            try:
                health = await asyncio.to_thread(client.cluster.health)
            except OpenSearchException:
                health = None
            if health and health["status"] == "red" and not health["initializing_shards"]:
                return
            await asyncio.sleep(0.2)


@pytest.mark.opensearch
@pytest.mark.slow
@pytest.mark.rule("E3")
async def test_a_node_that_starts_on_damaged_shard_files_gives_no_wrong_answer(
    opensearch_node: NodeFactory, tmp_path: Path
) -> None:
    node = opensearch_node()
    await asyncio.to_thread(node.start)
    with OpenSearch([node.url]) as client:
        worlds = [await _built(node, client, tmp_path, damage) for damage in (_flip, _cut, Path.unlink)]
        await asyncio.to_thread(node.stop)
        for world in worlds:
            world.damage(world.path)
        node.launch()
        await _settled(client)
    for world in worlds:
        await world.assert_no_wrong_answer()


@dataclass(frozen=True, slots=True)
class _World:
    """A published generation: its prefix, its backend and right answers, the file that is damaged, and how."""

    prefix: str
    backend: OpenSearchBackend
    right: dict[str, str]
    path: Path
    damage: Callable[[Path], None]

    async def assert_no_wrong_answer(self) -> None:
        expected = {name: UNAVAILABLE if name in _FAILING else answer for name, answer in self.right.items()}
        async with asyncio.timeout(_BOUND_S):
            # A node that has just started may not answer in time.
            while (found := await answers(self.backend)) != expected:
                assert all(answer in {self.right[name], UNAVAILABLE} for name, answer in found.items()), self.prefix
        await self.backend.close()


async def _built(node: OpenSearchNode, client: OpenSearch, folder: Path, damage: Callable[[Path], None]) -> _World:
    prefix = f"damaged-{damage.__name__.strip('_')}"
    sink = OpenSearchSink([node.url], prefix, shards=2)
    states = States(folder / prefix, sink.location)
    summary = await asyncio.to_thread(build, catalogue(folder, 60), sink, states, BuildOptions())
    sink.close()
    backend = OpenSearchBackend([node.url], prefix)
    right = await answers(backend)
    assert UNAVAILABLE not in right.values()
    index = index_name(prefix, "coupons", summary.stamp.generation)
    return _World(prefix, backend, right, _shard_file(node, client, index), damage)
