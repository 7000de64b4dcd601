"""A published and followed embedded generation, questions about all that it holds, and its files."""

import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from index_mappings.embedded import COMMITTED, generation_directory
from index_mappings.generations import Stamp
from indexer.jobs.build import BuildOptions, build
from indexer.jobs.update import update
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.state import States
from shop_directory.search.embedded.checks import FileChecks
from shop_directory.search.embedded.engine import TantivyEngine
from shop_directory.search.failures import BackendUnavailable
from shop_directory.search.planned_backend import PlannedBackend
from shop_directory.search.protocol import CouponQuery, FindQuery, Snapshot
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.support.catalogues import coupon, offer, shipping, shop, trust, write_catalogue_directory

UNAVAILABLE: Final = "unavailable"
_NAMES: Final = ("Lumen Lamps", "Larch & Moss", "Fern Trading", "Kestrel Birds", "Harbour Books", "Quill & Ink")
Question = Callable[[Snapshot], Awaitable[object]]


async def _suggested(directory: Snapshot) -> object:
    return directory.suggest(SuggestQuery.of("l", None, 8)), directory.suggest(SuggestQuery.of("kestrle", "DE", 8))


QUESTIONS: Final[Mapping[str, Question]] = {
    "browse": lambda directory: directory.find(FindQuery("", (), (), 0, 50)),
    "find": lambda directory: directory.find(FindQuery("lamps", ("DE",), (), 0, 10)),
    "find a part": lambda directory: directory.find(FindQuery("arbou", (), ("books",), 0, 10)),
    "suggest": _suggested,
    "categories": lambda directory: directory.categories(),
    "shop": lambda directory: directory.shop("d1.internal", 100),
    "unknown shop": lambda directory: directory.shop("nobody.internal"),
    "coupons": lambda directory: directory.coupons(CouponQuery(("s2",), 0, "rest", None, None)),
    "all coupons": lambda directory: directory.coupons(CouponQuery(None, 0, "rest", None, None)),
    "facts": lambda directory: directory.facts(("s3",)),
    "trust": lambda directory: directory.trust("s3"),
    "offer": lambda directory: directory.offer("o4"),
}


@dataclass(frozen=True, slots=True)
class Damage:
    path: Path
    offset: int
    bit: int | None

    def do(self) -> None:
        with self.path.open("r+b") as file:
            if self.bit is None:
                file.truncate(self.offset)
                return
            file.seek(self.offset)
            byte = file.read(1)[0]
            file.seek(self.offset)
            file.write(bytes([byte ^ 1 << self.bit]))


class DamagedWorld:
    def __init__(self, folder: Path, shops: int = 60) -> None:
        self.root = folder / "index"
        self._folder = folder
        self._shops = shops
        self.sink = EmbeddedSink(self.root)
        self.states = States(folder / "states", self.sink.location)
        self.stamp = self.build()

    def build(self) -> Stamp:
        self.stamp = build(
            catalogue(self._folder, self._shops), self.sink, self.states, BuildOptions(fresh_state=True)
        ).stamp
        self._follow()
        return self.stamp

    def backend(self, checks: FileChecks | None = None) -> PlannedBackend:
        return PlannedBackend(TantivyEngine(self.root, checks))

    def files(self) -> list[Path]:
        """All files that hold anything, in the order of their names; of files with several names one."""
        directory = generation_directory(self.root, self.stamp.generation)
        paths = sorted(path for path in directory.rglob("*") if path.is_file() and path.stat().st_size)
        # The folders of the commits come before those of the indices, which have the same files.
        paths.sort(key=lambda path: directory / COMMITTED not in path.parents)
        return list({path.stat().st_ino: path for path in reversed(paths)}.values())[::-1]

    def _follow(self) -> None:
        """Write some shops again, so that there are several segments, and documents that are gone in the first."""
        with self.states.open(self.stamp.generation) as state:
            editor = self.sink.edit(self.stamp.generation)
            with state.transaction():
                for number in range(0, self._shops, 7):
                    state.pending.add("shops", f"s{number}")
                    state.pending.add("coupons", f"c{number}")
            update(state, editor, lambda: None)
            self.stamp = editor.stamp
            editor.close()


def catalogue(folder: Path, shops: int) -> NdjsonCatalogue:
    """Shops with something of each type that belongs to them; a catalogue that is there is replaced."""
    numbers = range(shops)
    kinds: dict[str, list[dict[str, Any]]] = {
        "shops": [
            shop(
                f"{_NAMES[number % 6]} {number}",
                f"d{number}.internal",
                id=f"s{number}",
                categories=["books" if number % 2 else "lamps"],
                countries=["DE"] if number % 3 else ["FR"],
                popularity=float(number),
            )
            for number in numbers
        ],
        "coupons": [coupon(f"SAVE{number}", f"s{number // 2}", id=f"c{number}") for number in numbers],
        "offers": [offer(f"o{number}", f"s{number // 3}") for number in numbers],
        "shipping": [
            shipping(f"s{n}", destinations=["DE"], source="policy_page", checked_at="2031-05-06T07:08:09Z")
            for n in numbers
        ],
        "trust": [trust(f"s{number}", "registrar", f"R{number}") for number in numbers],
    }
    shutil.rmtree(folder / "catalogue", ignore_errors=True)
    return NdjsonCatalogue(write_catalogue_directory(folder / "catalogue", **kinds))


async def answers(backend: PlannedBackend, snapshot: Snapshot | None = None) -> dict[str, str]:
    """The answer to each question, or UNAVAILABLE; anything else that is raised fails the test.

    The live generation is looked up for each question, unless a snapshot is given.
    """
    found = {}
    for name, question in QUESTIONS.items():
        try:
            found[name] = repr(await question(snapshot or await backend.refresh()))
        except BackendUnavailable:
            found[name] = UNAVAILABLE
    return found
