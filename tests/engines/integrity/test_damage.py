"""Damaged files of an embedded generation: found at one reading each, answered rightly or not at all, mended (E3)."""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS
from index_mappings.embedded import (
    COMMITTED,
    FilesManifest,
    FileSum,
    files_manifest_path,
    generation_directory,
    index_directory,
    stamp_path,
)
from index_mappings.generations import Stamp
from indexer.jobs.rollback import roll_back
from indexer.reconcile.generation import FaultType
from indexer.reconcile.live import VerifyOptions, verify_live
from indexer.sinks.failures import SinkError
from service.app import create_app
from service.settings.service import Settings
from shop_directory.runtime.metrics import Metrics
from shop_directory.search.embedded import checks as module
from shop_directory.search.embedded.checks import CheckedFile, FileChecks
from shop_directory.search.embedded.engine import TantivyEngine
from shop_directory.search.engine import SearchRequest
from shop_directory.search.failures import GenerationDamaged, GenerationGone
from shop_directory.search.plan import MATCH_ALL, Plan
from tests.engines.integrity.world import UNAVAILABLE, Damage, DamagedWorld, answers
from tests.support.served import get, served, until_ready

_MIB: Final = 1024**2


class _Counted(Metrics):
    """How many bytes were read again."""

    read = 0

    def index_checked(self, size: int) -> None:
        self.read += size


def _file(folder: Path, content: bytes, name: str = "file") -> CheckedFile:
    path = folder / name
    path.write_bytes(content)
    return CheckedFile(path, f"a {name}", FileSum.of(content))


@pytest.mark.rule("E3")
def test_files_are_read_again_no_faster_than_they_may_be(tmp_path: Path) -> None:
    counted = _Counted()
    checks = FileChecks(counted, rate=8 * _MIB, pause=0.0)
    began = time.monotonic()
    checks.watch("generation", "stamp", [_file(tmp_path, bytes(2 * _MIB))])
    time.sleep(1.0)
    checks.close()
    # One piece of a quarter of a MiB is read before the first pause.
    assert 0 < counted.read <= 8 * _MIB * (time.monotonic() - began) + _MIB / 4


@pytest.mark.rule("E3")
def test_a_file_that_is_open_is_not_read_again_for_a_later_stamp(tmp_path: Path) -> None:
    checks = FileChecks(rate=1.0)
    file = _file(tmp_path, b"whole")
    checks.check("generation", [file])
    checks.watch("generation", "first", [file])
    file.path.write_bytes(b"wrong")
    checks.check("generation", [file])
    checks.release("first")
    with pytest.raises(GenerationDamaged, match=r"^the file a file is damaged$"):
        checks.check("generation", [file])
    checks.close()


@pytest.mark.rule("E3")
def test_a_file_that_lost_its_end_is_found_while_another_is_read_for_hours(tmp_path: Path) -> None:
    reading, damaged = Event(), Event()

    class Noticing(Metrics):
        def index_checked(self, _size: int) -> None:
            reading.set()

        def index_damaged(self, _count: int) -> None:
            damaged.set()

    checks = FileChecks(Noticing(), rate=1.0, pause=0.0)
    long, file = _file(tmp_path, bytes(16 * 1024), "long"), _file(tmp_path, b"whole")
    checks.watch("generation", "stamp", [long, file])
    assert reading.wait(10)
    os.truncate(file.path, 4)
    assert damaged.wait(10)
    assert checks.rounds == 0
    with pytest.raises(GenerationDamaged, match=r"^the file a file is damaged$"):
        checks.refuse_damaged("generation")
    checks.close()


@pytest.mark.rule("E3")
@pytest.mark.parametrize("damaged", ["one", "other"])
def test_of_two_files_with_the_same_content_each_is_read_again(tmp_path: Path, damaged: str) -> None:
    checks = FileChecks(pause=0.0)
    checks.watch("generation", "stamp", [_file(tmp_path, b"whole", name) for name in ("one", "other")])
    (tmp_path / damaged).write_bytes(b"cut")
    rounds = checks.rounds + 2
    while checks.rounds < rounds:
        time.sleep(0.01)
    with pytest.raises(GenerationDamaged, match=f"^the file a {damaged} is damaged$"):
        checks.refuse_damaged("generation")
    checks.close()


def test_checks_may_be_closed_while_another_thread_starts_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = Event()

    class SlowThread(Thread):
        def start(self) -> None:
            starting.set()
            time.sleep(0.2)
            super().start()

    monkeypatch.setattr(module, "Thread", SlowThread)
    checks = FileChecks()
    opening = Thread(target=checks.watch, args=("generation", "stamp", [_file(tmp_path, b"whole")]))
    opening.start()
    assert starting.wait(10)
    checks.close()
    opening.join()


FLIPS: Final = int(os.environ.get("SHOP_DIRECTORY_FLIPS", "60"))
TRUNCATIONS: Final = int(os.environ.get("SHOP_DIRECTORY_TRUNCATIONS", "20"))
_BOUND_S: Final = 30.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamagedWorld]:
    world = DamagedWorld(tmp_path_factory.mktemp("damaged"))
    yield world
    world.sink.close()


def damages(files: list[Path], flips: int, cuts: int, seed: int) -> list[Damage]:
    """Damages all over some files: each file's turn comes before the first one's second."""
    chance = random.Random(seed)  # noqa: S311 - the same ones each time
    found = []
    for number in range(flips + cuts):
        path = files[number % len(files)]
        offset = chance.randrange(path.stat().st_size)
        found.append(Damage(path, offset, chance.randrange(8) if number < flips else None))
    return found


def wrong(found: dict[str, str], right: dict[str, str]) -> list[str]:
    return [name for name, answer in found.items() if answer not in {right[name], UNAVAILABLE}]


async def _right(world: DamagedWorld) -> dict[str, str]:
    backend = world.backend()
    right = await answers(backend)
    await backend.close()
    assert UNAVAILABLE not in right.values()
    return right


def _flip_in_a_document(world: DamagedWorld) -> Damage:
    """A flip in the middle of the newest stored documents, whose file only the last commit has."""
    stored = max((path for path in world.files() if path.suffix == ".store"), key=lambda path: path.stat().st_mtime_ns)
    return Damage(stored, stored.stat().st_size // 2, 3)


async def _rounds(checks: FileChecks, count: int) -> None:
    """Wait until all files have been read so many times, from their beginning on."""
    until = checks.rounds + count + 1
    async with asyncio.timeout(_BOUND_S):
        while checks.rounds < until:
            await asyncio.sleep(0.005)


@pytest.mark.rule("E3")
async def test_where_a_damaged_file_was_replaced_by_a_copy_the_copy_is_answered_from(tmp_path: Path) -> None:
    world = DamagedWorld(tmp_path, shops=12)
    world.sink.close()
    right = await _right(world)
    damage = _flip_in_a_document(world)
    copy = tmp_path / "copy"
    copy.write_bytes(damage.path.read_bytes())
    checks = FileChecks(rate=1e9, pause=0.01)
    backend = world.backend(checks)
    await backend.refresh()
    damage.do()
    await _rounds(checks, 1)
    assert set((await answers(backend)).values()) == {UNAVAILABLE}
    copy.replace(damage.path)  # what was mapped before is damaged still
    await _rounds(checks, 1)
    assert await answers(backend) == right
    await backend.close()


@pytest.mark.rule("E3")
@pytest.mark.slow
async def test_no_damage_before_the_start_gives_a_wrong_answer(world: DamagedWorld) -> None:
    right = await _right(world)
    refused = 0
    for damage in damages([*world.files(), world.root / "live"], FLIPS, TRUNCATIONS, seed=1):
        whole = damage.path.read_bytes()
        damage.do()
        backend = world.backend()
        found = await answers(backend)
        await backend.close()
        damage.path.write_bytes(whole)
        assert wrong(found, right) == [], damage
        refused += UNAVAILABLE in found.values()
    assert refused > (FLIPS + TRUNCATIONS) / 2
    assert await _right(world) == right


@pytest.mark.rule("E3")
@pytest.mark.slow
async def test_no_flip_while_serving_gives_a_wrong_answer_once_the_files_were_read_again(world: DamagedWorld) -> None:
    right = await _right(world)
    checks = FileChecks(rate=1e9, pause=0.01)
    backend = world.backend(checks)
    assert await answers(backend) == right
    refused = 0
    for damage in damages(world.files(), FLIPS, 0, seed=2):
        damage.do()
        await answers(backend)  # it may be wrong until then, but nothing else than a failure may be raised
        await _rounds(checks, 1)
        found = await answers(backend)
        damage.do()
        await _rounds(checks, 1)
        assert wrong(found, right) == [], damage
        refused += UNAVAILABLE in found.values()
        assert await answers(backend) == right, damage
    await backend.close()
    assert refused > FLIPS / 2


_BROWSE: Final = SearchRequest(Plan("offers", ((0, MATCH_ALL),)), 3)


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[DamagedWorld]:
    world = DamagedWorld(tmp_path, shops=12)
    yield world
    world.sink.close()


def _manifest(world: DamagedWorld, stamp: Stamp) -> FilesManifest:
    directory = generation_directory(world.root, stamp.generation)
    return FilesManifest.from_bytes(files_manifest_path(directory, stamp.files).read_bytes(), stamp.files)


def _some_file(world: DamagedWorld, kind: str, suffix: str) -> Path:
    index = _manifest(world, world.stamp).indices[kind]
    name = next(name for name in sorted(index.files) if name.endswith(suffix))
    return generation_directory(world.root, world.stamp.generation) / COMMITTED / index.folder / name


def _spoil(path: Path) -> None:
    Damage(path, path.stat().st_size // 2, 3).do()


@pytest.mark.rule("E3")
@pytest.mark.parametrize("mending", ["build", "rollback", "restored"])
async def test_a_service_whose_generation_is_damaged_is_mended_without_a_restart(
    operated: DamagedWorld, mending: str
) -> None:
    before = operated.stamp
    operated.build()
    checks = FileChecks(rate=1e9, pause=0.01)
    backend = operated.backend(checks)
    right = await answers(backend)
    path = _some_file(operated, "offers", ".store")
    _spoil(path)
    async with asyncio.timeout(_BOUND_S):
        while set((await answers(backend)).values()) != {UNAVAILABLE}:
            await asyncio.sleep(0.01)
    with pytest.raises(GenerationDamaged) as refused:
        await backend.refresh()
    expected = f"the file offers/{path.name} of generation {operated.stamp.generation} is damaged"
    assert str(refused.value) == expected
    match mending:
        case "build":
            operated.build()
        case "rollback":
            operated.sink.publish(before.generation, operated.stamp.generation)
        case _:
            _spoil(path)
    async with asyncio.timeout(_BOUND_S):
        while await answers(backend) != right:
            await asyncio.sleep(0.01)
    await backend.close()


@pytest.mark.rule("E3", "O1")
def test_a_service_that_starts_on_a_damaged_generation_names_the_file_and_answers_nothing(
    operated: DamagedWorld,
) -> None:
    path = _some_file(operated, "coupons", ".store")
    _spoil(path)
    app = create_app(Settings(engine="embedded", data_dir=operated.root))
    with served(app) as url:
        for _ in range(2):
            ready = get(url, "/ready")
            assert (ready.status, ready.json["code"]) == (503, "not_ready")
            assert (
                f"the file coupons/{path.name} of generation {operated.stamp.generation} is damaged"
                in ready.json["detail"]
            )
        shop = get(url, "/suggest?q=l")
        assert (shop.status, shop.json["code"]) == (503, "backend_unavailable")


@pytest.mark.rule("E3", "O1")
@pytest.mark.parametrize(
    ("name", "spoil", "reason"),
    [
        ("stamp.json", _spoil, "the file stamp.json of generation {} is damaged"),
        ("stamp.json", Path.unlink, "the file stamp.json of generation {} is missing"),
        ("live", lambda path: path.write_text("x"), "the file live, which names the live generation, is damaged"),
    ],
)
def test_a_damaged_stamp_or_pointer_is_named_and_others_can_be_rolled_back_to(
    operated: DamagedWorld, name: str, spoil: Callable[[Path], object], reason: str
) -> None:
    before, live = operated.stamp, operated.build()
    path = operated.root / name if name == "live" else stamp_path(operated.root, live.generation)
    pointer = (operated.root / "live").read_bytes()
    spoil(path)
    with served(create_app(Settings(engine="embedded", data_dir=operated.root))) as url:
        ready = get(url, "/ready")
        advice = "Build again, or roll back to the previous generation."
        assert (ready.status, ready.json["detail"]) == (503, f"search: {reason.format(live.generation)}. {advice}")
        if name == "live":
            with pytest.raises(SinkError, match=f"write the name of the newest folder .* into {path}"):
                operated.sink.live()
            path.write_bytes(pointer)
        else:
            if path.exists():
                with pytest.raises(SinkError, match="roll back to the previous generation, or remove the file"):
                    operated.sink.live()
            assert roll_back(operated.sink, operated.states, None).stamp.generation == before.generation
        until_ready(url)


@pytest.mark.rule("V1")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_verify_finds_a_damaged_file_of_each_index_and_compares_nothing_with_it(
    operated: DamagedWorld, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = _some_file(operated, kind, ".term")
    assert verify_live(operated.sink, operated.states).found.total == 0
    _spoil(path)
    for repair in (False, True):
        found = verify_live(operated.sink, operated.states, options=VerifyOptions(repair=repair)).found
        assert (found.faults, found.remaining, found.checked) == ({(FaultType.DAMAGED, kind): 1}, 1, 0)
    assert f"the file {kind}/{path.name} of the live generation is missing or damaged" in caplog.text


@pytest.mark.rule("V1")
def test_verify_finds_what_is_lost_of_the_files_that_no_answer_is_made_of(operated: DamagedWorld) -> None:
    (index_directory(operated.root, operated.stamp.generation, "shops") / "anchors.json").write_text('{"anchors": []}')
    files_manifest_path(generation_directory(operated.root, operated.stamp.generation), operated.stamp.files).unlink()
    found = verify_live(operated.sink, operated.states).found
    assert found.faults == {(FaultType.DAMAGED, "files"): 1, (FaultType.DAMAGED, "shops"): 1}


@pytest.mark.rule("G3", "E3")
async def test_a_commit_that_ends_before_its_stamp_leaves_the_former_one_as_it_was(operated: DamagedWorld) -> None:
    backend = operated.backend()
    right = await answers(backend)
    await backend.close()
    editor = operated.sink.edit(operated.stamp.generation)
    editor.write("shops", [], ["s1", "s2"])
    editor.write("coupons", [], ["c4"])
    editor.show()
    editor.close()  # killed here
    backend = operated.backend()
    assert await answers(backend) == right
    await backend.close()
    assert verify_live(operated.sink, operated.states, options=VerifyOptions(repair=True)).found.remaining == 0


@pytest.mark.rule("E3")
def test_damage_that_a_change_would_write_into_other_files_stops_the_change(operated: DamagedWorld) -> None:
    _spoil(_some_file(operated, "shops", ".del"))
    stamp = stamp_path(operated.root, operated.stamp.generation).read_bytes()
    editor = operated.sink.edit(operated.stamp.generation)
    editor.write("shops", [], ["s1"])
    editor.show()
    with pytest.raises(SinkError, match=r"^the file shops/\w+\.\d+\.del of generation \S+ is damaged: build again$"):
        editor.commit(operated.stamp)
    editor.close()
    assert stamp_path(operated.root, operated.stamp.generation).read_bytes() == stamp


@pytest.mark.rule("C2")
async def test_what_a_stamp_named_stays_for_a_while_and_then_is_gone(
    operated: DamagedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(shop_id: str) -> Stamp:
        editor = operated.sink.edit(operated.stamp.generation)
        editor.write("offers", [], [shop_id])
        editor.show()
        editor.commit(editor.stamp)
        editor.close()
        return editor.stamp

    first, second = operated.stamp, change("o1")
    assert _manifest(operated, first).indices["shops"] == _manifest(operated, second).indices["shops"]
    assert _manifest(operated, first).indices["offers"] != _manifest(operated, second).indices["offers"]
    engine = TantivyEngine(operated.root)
    assert len((await engine.search(first, (_BROWSE,)))[0].hits) == 3
    await engine.close()
    monkeypatch.setattr("indexer.sinks.embedded.files.GRACE_S", -1.0)
    change("o2")
    engine = TantivyEngine(operated.root)
    with pytest.raises(GenerationGone):
        await engine.search(first, (_BROWSE,))
    await engine.close()
