"""Catalogues that differ in every record, and where their generations are stored."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

from opensearchpy import OpenSearch

from index_mappings.documents import DOCUMENTS
from index_mappings.embedded import (
    ANCHORS_FILE,
    COMMITTED,
    MANIFEST_SUFFIX,
    FilesManifest,
    files_manifest_path,
    from_stamp_json,
    stamp_path,
)
from index_mappings.generations import STAMP, index_name
from index_mappings.opensearch import TYPEAHEAD
from indexer.jobs.build import BuildOptions, BuildSummary, build, prune
from indexer.jobs.update import ChangeApplier
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.embedded.files import GRACE_S as COMMITTED_GRACE_S
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.opensearch.typeahead import TypeaheadOptions
from indexer.sinks.protocol import GenerationReader, GenerationRole, Sink, scan
from indexer.sources.ndjson import CHANGES, NdjsonCatalogue
from indexer.state.state import States
from shop_directory.search.embedded.engine import EmbeddedBackend
from shop_directory.search.opensearch.engine import OpenSearchBackend
from shop_directory.search.protocol import SearchBackend
from shop_directory.typeahead.manifest import TypeaheadManifest
from shop_directory.typeahead.writing.store import GRACE_S
from tests.support.catalogues import coupon, offer, program, redirect, shipping, shop, trust, write_catalogue_directory
from tests.support.emptying import unused_prefix
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
    found = {kind: dict(scan(reader, kind)) for kind in DOCUMENTS}
    assert {kind: reader.count(kind) for kind in DOCUMENTS} == {kind: len(found[kind]) for kind in DOCUMENTS}
    return found


def expected_documents(catalogue: Path) -> Documents:
    sink = MemorySink()
    return documents_of(sink.edit(build(NdjsonCatalogue(catalogue), sink).stamp.generation))


class Prefixes:
    """What the documents of each kind may be after the first so many changes of a growing file."""

    def __init__(self, catalogue: Path, folder: Path) -> None:
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
        return [kind for kind, found in documents.items() if _mark(found) not in self._seen[kind]]

    def close(self) -> None:
        self._state.close()

    def _note(self) -> None:
        for kind, found in documents_of(self._editor).items():
            self._seen[kind].add(_mark(found))


def _mark(documents: dict[str, dict[str, Any]]) -> str:
    return json.dumps(documents, sort_keys=True)


EMBEDDED: Final = "embedded"
OPENSEARCH: Final = "opensearch"
# What the embedded engine and its sink store in an index alongside its segments, and the latter's files.
_OWN_FILES: Final = re.compile(rf"meta\.json|\.managed\.json|\.tantivy-(writer|meta)\.lock|{re.escape(ANCHORS_FILE)}")
_SEGMENT: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Location:
    """An engine's index, the states that belong to it, and a directory for temporary files.

    `target` is the index directory or the cluster's URL; `folder` holds the states and the temporary files.
    """

    kind: str
    target: str
    prefix: str
    folder: Path

    @property
    def temporary(self) -> Path:
        return self.folder / "temporary"

    def sink(self) -> Sink:
        if self.kind == EMBEDDED:
            return EmbeddedSink(Path(self.target))
        return OpenSearchSink([self.target], self.prefix, letters=self.folder / "letters", typeahead=self.typeahead)

    @contextmanager
    def opened(self) -> Iterator[Sink]:
        with closing(self.sink()) as sink:
            yield sink

    def build(self, catalogue: Path, wait: float = 0.0) -> BuildSummary:
        """Build and publish a catalogue as a job does, which waits so many seconds for the lease."""
        with self.opened() as sink:
            summary = build(NdjsonCatalogue(catalogue), sink, self.states(), BuildOptions(wait=wait))
        assert summary.published
        return summary

    @property
    def typeahead(self) -> TypeaheadOptions:
        """As the commands have it: what is in the folder outlives a killed job, and is found by the next one."""
        return TypeaheadOptions(self.folder / "states" / "typeahead")

    def states(self) -> States:
        return States(self.folder / "states", self.kind)

    def backend(self) -> SearchBackend:
        if self.kind == EMBEDDED:
            return EmbeddedBackend(Path(self.target))
        return OpenSearchBackend([self.target], self.prefix, timeout=10.0)

    def words(self) -> list[str]:
        return [self.kind, self.target, self.prefix, str(self.folder)]

    def settings(self) -> dict[str, str]:
        if self.kind == EMBEDDED:
            return {"ENGINE": EMBEDDED, "DATA_DIR": self.target}
        return {"ENGINE": OPENSEARCH, "OPENSEARCH_URLS": self.target, "INDEX_PREFIX": self.prefix}

    def remains(self) -> list[str]:
        """What is here apart from the live generation, the one before and their states, once the grace is over."""
        with self.opened() as sink:
            prune(sink, self.states(), datetime.now(UTC) + timedelta(hours=1))
            found = sink.generations()
        wanted_generations = [one.name for one in found if one.role in {GenerationRole.LIVE, GenerationRole.PREVIOUS}]
        others = [one.name for one in found if one.name not in wanted_generations]
        states = {"place", *(f"{name}.sqlite" for name in wanted_generations)}
        if self.kind == OPENSEARCH:
            states.add("typeahead")
            local = self.folder / "states" / "typeahead"
            others += sorted(path.name for path in local.iterdir() if path.name not in wanted_generations)
        others += sorted({path.name for path in (self.folder / "states").iterdir()} ^ states)
        others += sorted(path.name for path in self.temporary.iterdir())
        others += [path.name for path in self.folder.iterdir() if path.name not in {"states", "temporary", "index"}]
        return others + (_embedded_remains if self.kind == EMBEDDED else _opensearch_remains)(self, wanted_generations)


def _unnamed(directory: Path) -> list[str]:
    """The files of a typeahead that are old enough to be tidied, and in none of its manifests."""
    manifests = [TypeaheadManifest.from_bytes(path.read_bytes(), path.stem) for path in directory.glob("*.manifest")]
    named = {name for manifest in manifests for name in manifest.files()}
    old = [path for path in directory.iterdir() if time.time() - path.stat().st_mtime > GRACE_S]
    return [path.name for path in old if path.stem not in named and path.suffix != ".manifest"]


def _embedded_remains(location: Location, wanted_generations: list[str]) -> list[str]:
    root = Path(location.target)
    expected = {"live", "indexer.lock", "generations"}
    of_generation = {*DOCUMENTS, "stamp.json", "retired", "operations.json", "typeahead", COMMITTED}
    found = [path.name for path in root.iterdir() if path.name not in expected]
    for name in wanted_generations:
        directory = stamp_path(root, name).parent
        found += [path.name for path in directory.iterdir() if path.name not in of_generation]
        found += [f"{COMMITTED}/{unused}" for unused in _superseded(root, name)]
        for kind in DOCUMENTS:
            found += [f"{kind}/{unused}" for unused in _unused(directory / kind)]
        found += [f"typeahead/{unused}" for unused in _unnamed(directory / "typeahead")]
    holder = (root / "indexer.lock").read_text(encoding="utf-8")
    return found + ([f"indexer.lock of {holder}"] if holder else [])


def _superseded(root: Path, name: str) -> list[str]:
    """What is in no manifest of the committed files, although that has been so for long enough."""
    directory = stamp_path(root, name).parent
    files = from_stamp_json(stamp_path(root, name).read_text(encoding="utf-8")).files
    manifest = FilesManifest.from_bytes(files_manifest_path(directory, files).read_bytes(), files)
    named = {f"{files}{MANIFEST_SUFFIX}", *(index.folder for index in manifest.indices.values())}
    there = [path for path in (directory / COMMITTED).iterdir() if path.name not in named]
    return [path.name for path in there if time.time() - path.stat().st_mtime > 2 * COMMITTED_GRACE_S]


def _unused(index: Path) -> list[str]:
    listed = json.loads((index / "meta.json").read_text(encoding="utf-8"))["segments"]
    known = {segment["segment_id"].replace("-", "") for segment in listed}
    names = [path.name for path in index.iterdir() if not _OWN_FILES.fullmatch(path.name)]
    return [name for name in names if not _SEGMENT.match(name) or name[:32] not in known]


def _opensearch_remains(location: Location, wanted_generations: list[str]) -> list[str]:
    lease = f"{location.prefix}-lease"
    kinds = (*DOCUMENTS, STAMP, TYPEAHEAD)
    expected = {lease, *(index_name(location.prefix, kind, name) for kind in kinds for name in wanted_generations)}
    with OpenSearch([location.target]) as client:
        found = set(client.indices.get(index=f"{location.prefix}-*", params={"expand_wildcards": "all"}))
        token = client.get(index=lease, id="lease")["_source"]["token"]
    return sorted(found ^ expected) + ([f"lease of {token}"] if token else [])


@contextmanager
def embedded_location(folder: Path) -> Iterator[Location]:
    location = Location(EMBEDDED, str(folder / "location" / "index"), "-", folder / "location")
    location.temporary.mkdir(parents=True)
    yield location


@contextmanager
def opensearch_location(url: str, folder: Path) -> Iterator[Location]:
    """A location in an OpenSearch; emptied at the end."""
    with unused_prefix(url) as prefix:
        location = Location(OPENSEARCH, url, prefix, folder / "location")
        location.temporary.mkdir(parents=True)
        yield location
