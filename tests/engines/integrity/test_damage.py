"""Flipped bits and cut ends anywhere in a generation, before it is opened and while it serves: right answers or none.

60 and 40 of them in CI; SHOP_DIRECTORY_FLIPS=1000 SHOP_DIRECTORY_TRUNCATIONS=200 is the long form.
"""

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from service.search.embedded.checks import FileChecks
from tests.engines.integrity.world import UNAVAILABLE, Damage, DamagedWorld, answers

FLIPS: Final = int(os.environ.get("SHOP_DIRECTORY_FLIPS", "60"))
TRUNCATIONS: Final = int(os.environ.get("SHOP_DIRECTORY_TRUNCATIONS", "20"))
_BOUND_S: Final = 30.0

pytestmark = pytest.mark.rule("E3")


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
    """The questions that were answered, and not as they should be."""
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
