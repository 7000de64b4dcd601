"""SIGKILL at any point of a build, of a publish and of following: what is live answers whole, the next job succeeds.

One kill of each kind and engine; SHOP_DIRECTORY_INDEX_KILLS=30 is the long form (a third of it for each kind).
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from subprocess import Popen
from threading import Event, Thread
from typing import Final

import pytest

from indexer.jobs.following import Following, FollowOptions
from indexer.sources.ndjson import CHANGES, NdjsonCatalogue
from tests.processes.endurance.job import start, wait_for
from tests.processes.endurance.worlds import (
    COLOURS,
    Documents,
    Location,
    Prefixes,
    change_lines,
    documents_of,
    expected_documents,
    size_of,
    write_world,
)
from tests.rules.backends.asking import find, suggest

pytestmark = pytest.mark.slow

KILLS: Final = -(-int(os.environ.get("SHOP_DIRECTORY_INDEX_KILLS", "3")) // 3)
SHOPS: Final = 300
FOLLOWED_SHOPS: Final = 25
JOB_BOUND_S: Final = 120.0
FOLLOWING_S: Final = 1.2
_SETTLING_S: Final = 0.3
AT_ONCE_S: Final = 10.0  # far less than a lease of OpenSearch lasts


@contextmanager
def ended(job: Popen[str]) -> Iterator[Popen[str]]:
    try:
        yield job
    finally:
        job.kill()
        job.communicate()


def live_documents(location: Location) -> tuple[str, Documents]:
    with location.opened() as sink:
        live = sink.live()
        assert live is not None
        with closing(sink.edit(live.generation)) as editor:
            return live.generation, documents_of(editor)


async def answered(location: Location) -> tuple[str, set[str], set[str], int]:
    """What the service's side says: the generation, names and categories that it answers, and how many shops."""
    backend = location.backend()
    try:
        snapshot = await backend.snapshot()
        found = await find(snapshot, "lamp", limit=100)
        typed = await suggest(snapshot, "lam", limit=20)
        names = {one.name for one in found.shops} | {one.shop.name for one in typed.shops}
        categories = {one.slug for one in await snapshot.categories()}
        return snapshot.stamp.generation, names, categories, found.total
    finally:
        await backend.close()


def colour_answered(location: Location) -> str:
    """The colour of the live generation, after a look that everything about it has this colour and no other."""
    generation, names, categories, total = asyncio.run(answered(location))
    (colour,) = {name.split()[0] for name in names} | {slug.split("-")[0] for slug in categories}
    assert (total, generation) == (size_of(colour, SHOPS), live_documents(location)[0])
    return colour


class Worlds:
    def __init__(self, folder: Path) -> None:
        self.catalogues = {colour: write_world(folder / colour, colour, SHOPS) for colour in COLOURS}
        self.documents = {colour: expected_documents(self.catalogues[colour]) for colour in COLOURS}

    def other(self, location: Location) -> str:
        _, live = live_documents(location)
        (colour,) = (one for one in COLOURS if self.documents[one] != live)
        return colour


def unharmed(location: Location, catalogue: Path, log: Path) -> tuple[float, float]:
    """A build that is not killed: seconds from its beginning to its end, and from its publishing to its end."""
    with ended(start("build", location, catalogue, log)) as job:
        wait_for(job, "begun")
        begun = time.monotonic()
        wait_for(job, "publishing")
        publishing = time.monotonic()
        assert job.wait(JOB_BOUND_S) == 0, log.read_text(encoding="utf-8")
        return time.monotonic() - begun, time.monotonic() - publishing


def settled(location: Location) -> tuple[str, Documents]:
    """The live generation and its documents, when the last request of a killed job has taken effect in the engine."""
    found = live_documents(location)
    while True:
        time.sleep(_SETTLING_S)
        before, found = found, live_documents(location)
        if found == before:
            return found


def kill_build(location: Location, worlds: Worlds, after: str, delay: float, log: Path) -> None:
    """Kill a build of the other colour; see that the live one is whole, and that the next build does all of it."""
    before, _ = live_documents(location)
    colour = worlds.other(location)
    with ended(start("build", location, worlds.catalogues[colour], log)) as job:
        wait_for(job, "begun")
        if after == "publishing":
            wait_for(job, "publishing")
        time.sleep(delay)
    live, found = settled(location)
    # Either it came to its publishing, or what was live is live.
    expected = colour if live != before else next(one for one in COLOURS if one != colour)
    assert found == worlds.documents[expected]
    assert colour_answered(location) == expected

    summary = location.build(worlds.catalogues[colour])
    assert summary.seconds < AT_ONCE_S
    assert live_documents(location) == (summary.stamp.generation, worlds.documents[colour])
    assert colour_answered(location) == colour
    assert location.remains() == []


@pytest.mark.rule("G1", "G2", "G4")
@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("point", ["begun", "publishing"])
def test_a_killed_build_leaves_whole_answers_and_the_next_one_leaves_nothing_of_it(
    location: Location, tmp_path: Path, point: str
) -> None:
    chance = Random(11 if point == "begun" else 12)  # noqa: S311 - when to kill is no secret
    worlds = Worlds(tmp_path)
    location.build(worlds.catalogues["amber"])
    whole, publishing = unharmed(location, worlds.catalogues["violet"], tmp_path / "log")
    for _ in range(KILLS):
        kill_build(
            location, worlds, point, chance.uniform(0, whole if point == "begun" else publishing), tmp_path / "log"
        )


class Appending:
    def __init__(self, catalogue: Path, lines: Iterator[str]) -> None:
        self._path = catalogue / CHANGES
        self._lines = lines
        self._stop = Event()
        self._thread = Thread(target=self._append)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _append(self) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            while not self._stop.wait(0.02):
                file.write(next(self._lines))
                file.flush()


def follow_once(location: Location, catalogue: Path) -> None:
    with location.opened() as sink:
        changes = NdjsonCatalogue(catalogue).changes()
        Following(sink, location.states(), changes, FollowOptions(once=True)).run(Event())


@pytest.mark.rule("G3", "G4", "C1")
@pytest.mark.timeout(120 + 20 * KILLS)
def test_killed_following_loses_no_change_and_shows_no_half_of_one(location: Location, tmp_path: Path) -> None:
    chance = Random(13)  # noqa: S311 - as above
    catalogue = write_world(tmp_path / "amber", "amber", FOLLOWED_SHOPS)
    prefixes = Prefixes(catalogue, tmp_path / "prefixes")
    generation = location.build(catalogue).stamp.generation
    lines, sequence = change_lines("amber", FOLLOWED_SHOPS, seed=14), 1
    for _ in range(KILLS):
        with Appending(catalogue, lines), ended(start("follow", location, catalogue, tmp_path / "log")) as job:
            wait_for(job, "begun")
            time.sleep(chance.uniform(0, FOLLOWING_S))
        wanted = prefixes.read_on()
        live, found = live_documents(location)
        assert (live, prefixes.strangers(found)) == (generation, [])
        asyncio.run(answered(location))

        follow_once(location, catalogue)
        assert live_documents(location) == (generation, wanted)
        assert location.remains() == []
        sequence = rising(location, sequence)
    prefixes.close()
    assert live_documents(location)[1] == expected_documents(catalogue)


def rising(location: Location, before: int) -> int:
    with location.opened() as sink:
        live = sink.live()
    assert live is not None
    assert live.sequence > before
    return live.sequence
