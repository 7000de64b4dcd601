"""Catalogues that differ in every record, streams of changes, and the documents that must come of them.

Two colours share the ids and domains of their shops; everything that is said of these, and their number, differs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from index_mappings.documents import DOCUMENTS
from indexer.jobs.build import build
from indexer.jobs.update import ChangeApplier
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.protocol import GenerationReader, scan
from indexer.sources.ndjson import CHANGES, NdjsonCatalogue
from indexer.state.state import States
from tests.support.catalogues import coupon, offer, program, redirect, shipping, shop, trust, write_catalogue_directory
from tests.support.memory_sink import MemorySink

COLOURS: Final = ("amber", "violet")
_DESTINATIONS: Final = {"amber": "DE", "violet": "FR"}

# Ids and stored parts of all documents, by kind.
Documents = dict[str, dict[str, dict[str, Any]]]


def size_of(colour: str, size: int) -> int:
    """How many shops a colour has: the second a tenth less, which no shrink guard minds."""
    return size if colour == COLOURS[0] else size - size // 10


def write_world(path: Path, colour: str, size: int) -> Path:
    """Write a colour's catalogue: each shop has two coupons, two offers, shipping, trust and a programme."""
    ids = [f"s{number}" for number in range(size_of(colour, size))]
    return write_catalogue_directory(
        path,
        shops=[_shop(colour, shop_id) for shop_id in ids],
        coupons=[_coupon(colour, shop_id, number) for shop_id in ids for number in range(2)],
        offers=[_offer(colour, shop_id, number) for shop_id in ids for number in range(2)],
        shipping=[_shipping(colour, shop_id) for shop_id in ids],
        trust=[trust(shop_id, "registrar", f"{colour} registrar") for shop_id in ids],
        affiliate_programs=[program(shop_id, f"{colour} network", disclosure=f"{colour} ad") for shop_id in ids],
        redirects=[redirect("lamp-s0.internal", "lamp-s1.internal", source=f"{colour} crawl")],
    )


def _shop(colour: str, shop_id: str, text: str = "", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    categories = [(f"{colour}-lamps", f"{colour} lamps"), (f"{colour}-{int(shop_id[1:]) % 5}", f"{colour} part")]
    name = f"{colour} lamp {shop_id}{text}"
    return shop(name, f"lamp-{shop_id}.internal", id=shop_id, categories=categories, **fields)


def _coupon(colour: str, shop_id: str, number: int, text: str = "") -> dict[str, Any]:
    title = f"{colour} coupon{text}"
    return coupon(f"{colour.upper()}{number}", shop_id, id=f"{shop_id}-c{number}", title=title)


def _offer(colour: str, shop_id: str, number: int, text: str = "") -> dict[str, Any]:
    url = f"https://lamp-{shop_id}.internal/{colour}/{number}"
    return offer(f"{shop_id}-o{number}", shop_id, title=f"{colour} offer{text}", url=url)


def _shipping(colour: str, shop_id: str) -> dict[str, Any]:
    stated = {"min_days": 1, "max_days": 2, "as_stated": f"{colour} days"}
    return shipping(shop_id, destinations=[_DESTINATIONS[colour]], delivery_time=stated)


def change_lines(colour: str, size: int, seed: int) -> Iterator[str]:
    """Changes without end, each of a version above the last: renamed, hidden, deleted and come back.

    Every text says the number of its change, so that no two states are alike.
    """
    chance = Random(seed)  # noqa: S311 - a repeatable stream
    version = 0
    while True:
        version += 1
        shop_id, text = f"s{chance.randrange(size_of(colour, size))}", f" after change {version}"
        changed: dict[str, Any]
        match chance.choices(("renamed", "hidden", "gone", "coupon", "offer"), (4, 2, 1, 3, 3))[0]:
            case "renamed":
                changed = {"op": "upsert", "type": "shops", "record": _shop(colour, shop_id, text)}
            case "hidden":
                record = _shop(colour, shop_id, text, visibility="under_review")
                changed = {"op": "upsert", "type": "shops", "record": record}
            case "gone":
                changed = {"op": "delete", "type": "coupons", "key": f"{shop_id}-c0"}
            case "coupon":
                changed = {"op": "upsert", "type": "coupons", "record": _coupon(colour, shop_id, 0, text)}
            case _:
                changed = {"op": "upsert", "type": "offers", "record": _offer(colour, shop_id, 1, text)}
        yield f"{json.dumps({**changed, 'version': version})}\n"


def documents_of(reader: GenerationReader) -> Documents:
    """Everything in a generation, after a look that its count says the same."""
    found = {kind: dict(scan(reader, kind)) for kind in DOCUMENTS}
    assert {kind: reader.count(kind) for kind in DOCUMENTS} == {kind: len(found[kind]) for kind in DOCUMENTS}
    return found


def expected_documents(catalogue: Path) -> Documents:
    """What a full build of a catalogue, its changes included, makes of it."""
    sink = MemorySink()
    return documents_of(sink.edit(build(NdjsonCatalogue(catalogue), sink).stamp.generation))


class Prefixes:
    """What the documents of each kind may be after the first so many changes of a growing file."""

    def __init__(self, catalogue: Path, folder: Path) -> None:
        """Build the catalogue, whose file of changes is not there yet."""
        sink = MemorySink()
        states = States(folder, sink.location)
        generation = build(NdjsonCatalogue(catalogue), sink, states).stamp.generation
        self._editor = sink.edit(generation)
        changes = NdjsonCatalogue(catalogue).changes()
        letters = DeadLetters(states.dead_letters)
        self._state = states.open(generation)
        self._follower = ChangeApplier(self._state, self._editor, changes, letters, check=lambda: None)
        self._seen: dict[str, set[str]] = {kind: set() for kind in DOCUMENTS}
        self._note()
        assert not (catalogue / CHANGES).exists()

    def read_on(self) -> Documents:
        """Take what the file has now, one change after the other; returns what all of it comes to."""
        more = True
        while more:
            more = self._follower.step(1).more
            self._note()
        return documents_of(self._editor)

    def strangers(self, documents: Documents) -> list[str]:
        """The kinds whose documents are not those after any number of changes."""
        return [kind for kind, found in documents.items() if _mark(found) not in self._seen[kind]]

    def close(self) -> None:
        self._state.close()

    def _note(self) -> None:
        for kind, found in documents_of(self._editor).items():
            self._seen[kind].add(_mark(found))


def _mark(documents: dict[str, dict[str, Any]]) -> str:
    return json.dumps(documents, sort_keys=True)
