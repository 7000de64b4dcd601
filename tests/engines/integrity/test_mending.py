"""What operators see of a damaged file, and what mends it: the next build, a rollback, the file itself (E3, V1)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS
from index_mappings.embedded import (
    COMMITTED,
    FilesManifest,
    files_manifest_path,
    generation_directory,
    index_directory,
    stamp_path,
)
from index_mappings.generations import Stamp
from indexer.reconcile.findings import Fault, FaultCount
from indexer.reconcile.live import VerifyOptions, verify_live
from indexer.sinks.failures import SinkError
from service.app import create_app
from service.search.embedded.checks import FileChecks
from service.search.embedded.engine import TantivyEngine
from service.search.engine import SearchRequest
from service.search.failures import GenerationDamaged, GenerationGone
from service.search.plan import MATCH_ALL, Plan
from service.settings.service import Settings
from tests.engines.integrity.world import UNAVAILABLE, Damage, DamagedWorld, answers
from tests.support.served import get, served

_BOUND_S: Final = 30.0
_BROWSE: Final = SearchRequest(Plan("offers", ((0, MATCH_ALL),)), 3)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DamagedWorld]:
    world = DamagedWorld(tmp_path, shops=12)
    yield world
    world.sink.close()


def _manifest(world: DamagedWorld, stamp: Stamp) -> FilesManifest:
    directory = generation_directory(world.root, stamp.generation)
    return FilesManifest.from_bytes(files_manifest_path(directory, stamp.files).read_bytes(), stamp.files)


def _file(world: DamagedWorld, kind: str, suffix: str) -> Path:
    """A file of an index as the live stamp has it."""
    index = _manifest(world, world.stamp).indices[kind]
    name = next(name for name in sorted(index.files) if name.endswith(suffix))
    return generation_directory(world.root, world.stamp.generation) / COMMITTED / index.folder / name


def _spoil(path: Path) -> None:
    Damage(path, path.stat().st_size // 2, 3).do()


@pytest.mark.rule("E3")
@pytest.mark.parametrize("mending", ["build", "rollback", "restored"])
async def test_a_service_whose_generation_is_damaged_is_mended_without_a_restart(
    world: DamagedWorld, mending: str
) -> None:
    before = world.stamp
    world.build()
    checks = FileChecks(rate=1e9, pause=0.01)
    backend = world.backend(checks)
    right = await answers(backend)
    path = _file(world, "offers", ".store")
    _spoil(path)
    async with asyncio.timeout(_BOUND_S):
        while set((await answers(backend)).values()) != {UNAVAILABLE}:
            await asyncio.sleep(0.01)
    with pytest.raises(GenerationDamaged) as refused:
        await backend.refresh()
    expected = f"the file offers/{path.name} of generation {world.stamp.generation} is damaged"
    assert str(refused.value) == expected
    match mending:
        case "build":
            world.build()
        case "rollback":
            world.sink.publish(before.generation, world.stamp.generation)
        case _:
            _spoil(path)
    async with asyncio.timeout(_BOUND_S):
        while await answers(backend) != right:
            await asyncio.sleep(0.01)
    await backend.close()


@pytest.mark.rule("E3", "O1")
def test_a_service_that_starts_on_a_damaged_generation_names_the_file_and_answers_nothing(world: DamagedWorld) -> None:
    path = _file(world, "coupons", ".store")
    _spoil(path)
    app = create_app(Settings(engine="embedded", data_dir=world.root))
    with served(app) as url:
        for _ in range(2):
            ready = get(url, "/ready")
            assert (ready.status, ready.json["code"]) == (503, "not_ready")
            assert (
                f"the file coupons/{path.name} of generation {world.stamp.generation} is damaged"
                in ready.json["detail"]
            )
        shop = get(url, "/suggest?q=l")
        assert (shop.status, shop.json["code"]) == (503, "backend_unavailable")


@pytest.mark.rule("V1")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_verify_finds_a_damaged_file_of_each_index_and_compares_nothing_with_it(
    world: DamagedWorld, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = _file(world, kind, ".term")
    assert verify_live(world.sink, world.states).found.total == 0
    _spoil(path)
    for repair in (False, True):
        found = verify_live(world.sink, world.states, options=VerifyOptions(repair=repair)).found
        assert (found.faults, found.remaining, found.checked) == ((FaultCount(Fault.DAMAGED, kind, 1),), 1, 0)
    assert f"the file {kind}/{path.name} of the live generation is missing or damaged" in caplog.text


@pytest.mark.rule("V1")
def test_verify_finds_what_is_lost_of_the_files_that_no_answer_is_made_of(world: DamagedWorld) -> None:
    (index_directory(world.root, world.stamp.generation, "shops") / "anchors.json").write_text('{"anchors": []}')
    files_manifest_path(generation_directory(world.root, world.stamp.generation), world.stamp.files).unlink()
    found = verify_live(world.sink, world.states).found
    assert found.faults == (FaultCount(Fault.DAMAGED, "files", 1), FaultCount(Fault.DAMAGED, "shops", 1))


@pytest.mark.rule("G3", "E3")
async def test_a_commit_that_ends_before_its_stamp_leaves_the_former_one_as_it_was(world: DamagedWorld) -> None:
    backend = world.backend()
    right = await answers(backend)
    await backend.close()
    editor = world.sink.edit(world.stamp.generation)
    editor.write("shops", [], ["s1", "s2"])
    editor.write("coupons", [], ["c4"])
    editor.show()
    editor.close()  # killed here
    backend = world.backend()
    assert await answers(backend) == right
    await backend.close()
    assert verify_live(world.sink, world.states, options=VerifyOptions(repair=True)).found.remaining == 0


@pytest.mark.rule("E3")
def test_damage_that_a_change_would_write_into_other_files_stops_the_change(world: DamagedWorld) -> None:
    _spoil(_file(world, "shops", ".del"))
    stamp = stamp_path(world.root, world.stamp.generation).read_bytes()
    editor = world.sink.edit(world.stamp.generation)
    editor.write("shops", [], ["s1"])
    editor.show()
    with pytest.raises(SinkError, match=r"^the file shops/\w+\.\d+\.del of generation \S+ is damaged: build again$"):
        editor.commit(world.stamp)
    editor.close()
    assert stamp_path(world.root, world.stamp.generation).read_bytes() == stamp


@pytest.mark.rule("C2")
async def test_what_a_stamp_named_stays_for_a_while_and_then_is_gone(
    world: DamagedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(shop_id: str) -> Stamp:
        editor = world.sink.edit(world.stamp.generation)
        editor.write("offers", [], [shop_id])
        editor.show()
        editor.commit(editor.stamp)
        editor.close()
        return editor.stamp

    first, second = world.stamp, change("o1")
    assert _manifest(world, first).indices["shops"] == _manifest(world, second).indices["shops"]
    assert _manifest(world, first).indices["offers"] != _manifest(world, second).indices["offers"]
    engine = TantivyEngine(world.root)
    assert len((await engine.search(first, (_BROWSE,)))[0].hits) == 3
    await engine.close()
    monkeypatch.setattr("indexer.sinks.embedded.files.GRACE_S", -1.0)
    change("o2")
    engine = TantivyEngine(world.root)
    with pytest.raises(GenerationGone):
        await engine.search(first, (_BROWSE,))
    await engine.close()
