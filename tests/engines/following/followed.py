"""A catalogue on disk that an index follows, the random statements of its changes, and a world of one shop."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import Operations, ResourceAccount, Stamp
from indexer.jobs.build import BuildOptions, BuildSummary, build
from indexer.jobs.defaults import MICRO_BATCH
from indexer.jobs.following import Following, FollowOptions
from indexer.jobs.update import ChangeApplier, ChangeCounts
from indexer.records.related import RECORDS
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.protocol import GenerationEditor, Sink, scan
from indexer.sources.ndjson import CHANGES, NdjsonCatalogue
from indexer.state.state import States
from tests.support.catalogues import (
    build_into,
    coupon,
    offer,
    policy,
    program,
    redirect,
    shipping,
    shop,
    trust,
    upsert,
    write_catalogue_directory,
)
from tests.support.memory_sink import MemorySink

_LENGTH: Final = "SHOP_DIRECTORY_CHANGES"
_WORDS: Final = ("Lamp", "Larch", "Lumen", "Moss", "Küche", "厨房", "Harbour")
_TYPES: Final = (
    *(("shops",) * 5),
    *(("coupons",) * 3),
    *(("offers",) * 3),
    "shipping",
    "policies",
    "trust",
    "affiliate_programs",
    *(("redirects",) * 3),
    "resource_accounts",
    *(("categories",) * 2),
)


def how_many(in_ci: int) -> int:
    """How many changes a test makes: a few in CI, more where the environment asks for it."""
    return int(os.environ.get(_LENGTH, in_ci))


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement about a record; of two the one of the greater version is newer.

    `record` holds the version; it is None when the record was deleted.
    """

    type: str
    key: str
    version: int
    record: Mapping[str, Any] | None

    @property
    def line(self) -> dict[str, Any]:
        if self.record is None:
            return {"op": "delete", "type": self.type, "key": self.key, "version": self.version}
        return {"op": "upsert", "type": self.type, "record": self.record}

    @property
    def weight(self) -> tuple[int, int, str]:
        """What decides: the version; with equal ones what hides more, then the text."""
        if self.record is None:
            return self.version, 2, ""
        text = RECORDS[self.type].model_validate_json(json.dumps(self.record)).model_dump_json()
        return self.version, int(self.record.get("visibility", "public") != "public"), text


def newest(statements: Iterable[Statement]) -> dict[tuple[str, str], Statement]:
    newest: dict[tuple[str, str], Statement] = {}
    for one in sorted(statements, key=lambda one: one.weight):
        newest[one.type, one.key] = one
    return newest


def by_type(statements: Iterable[Statement]) -> dict[str, list[Mapping[str, Any]]]:
    """The records by type, as a catalogue has them; deleted ones are in none."""
    lines: dict[str, list[Mapping[str, Any]]] = {"shops": []}
    for one in statements:
        if one.record is not None:
            lines.setdefault(one.type, []).append(one.record)
    return lines


class Story:
    """A source's statements by chance; the same for the same chance.

    Shops share few domains and categories, so that they take them from each other all the time.
    """

    def __init__(self, chance: Random, shops: int) -> None:
        self._chance = chance
        self._shops = shops
        self._versions: dict[tuple[str, str], int] = {}

    def statements(self, count: int) -> list[Statement]:
        """Statements in the order in which they were made; one in eight repeats the version before."""
        return [self._versioned(*self._stated(kind)) for kind in self._chance.choices(_TYPES, k=count)]

    def catalogue(self, statements: Iterable[Statement]) -> list[Statement]:
        """A catalogue of some time: of about half of the keys one statement, a few of them without a version."""
        found: dict[tuple[str, str], Statement] = {}
        for one in statements:
            if one.record is not None and self._chance.random() < 0.4:
                found.setdefault((one.type, one.key), one)
        return [self._maybe_unversioned(one) for one in found.values()]

    def arrivals(self, statements: Iterable[Statement]) -> list[Statement]:
        """The same statements as they arrive: in any order, some of them twice."""
        arriving = list(statements)
        arriving += self._chance.sample(arriving, len(arriving) // 5)
        self._chance.shuffle(arriving)
        return arriving

    def cuts(self, statements: list[Statement], most: int) -> Iterator[list[Statement]]:
        at = 0
        while at < len(statements):
            size = self._chance.randint(1, most)
            yield statements[at : at + size]
            at += size

    def _versioned(self, kind: str, key: str, record: dict[str, Any]) -> Statement:
        before = self._versions.get((kind, key), 0)
        version = before if before and self._chance.random() < 0.12 else before + self._chance.randint(1, 3)
        self._versions[kind, key] = version
        gone = self._chance.random() < 0.15
        return Statement(kind, key, version, None if gone else {**record, "version": version})

    def _maybe_unversioned(self, one: Statement) -> Statement:
        # An offer without a version would be one with a time, which must not be mixed.
        if one.record is None or one.type == "offers" or self._chance.random() < 0.9:
            return one
        # Any version is newer than none.
        return replace(one, version=-1, record={name: value for name, value in one.record.items() if name != "version"})

    def _stated(self, kind: str) -> tuple[str, str, dict[str, Any]]:
        chance, owner = self._chance, f"s{self._chance.randrange(self._shops)}"
        match kind:
            case "shops":
                return kind, owner, self._shop(owner)
            case "coupons":
                code, key = f"CODE{chance.randrange(9)}", f"c{chance.randrange(self._shops * 2)}"
                return kind, key, coupon(code, owner, id=key, title=chance.choice(_WORDS))
            case "offers":
                return kind, (key := f"o{chance.randrange(self._shops * 2)}"), self._offer(key, owner)
            case "shipping":
                return kind, owner, shipping(owner, destinations=[chance.choice(("DE", "FR", "EU"))])
            case "policies":
                about, country = chance.choice(("returns", "buyer_protection")), chance.choice(("AT", "DE"))
                stated = {"as_stated": chance.choice(_WORDS)}
                if chance.random() < 0.5:
                    return kind, f"{owner}/{about}", policy(owner, about, **stated)
                return kind, f"{owner}/{about}/{country}", policy(owner, about, country, **stated)
            case "trust":
                signal = chance.choice(("registrar", "hosting_isp"))
                value = chance.choice((None, *_WORDS))
                return kind, f"{owner}/{signal}", trust(owner, signal, value)
            case "affiliate_programs":
                network = chance.choice(("alpha", "beta"))
                disclosure = chance.choice(_WORDS)
                return kind, f"{owner}/{network}", program(owner, network, disclosure=disclosure)
            case "redirects":
                one, other = self._domain(), self._domain()  # which may be the same
                return kind, f"{one}/{other}", redirect(one, other, source=chance.choice(_WORDS))
            case "categories":
                slug = chance.choice(("home", "garden", "books", "toys", "nobody-has-it"))
                return kind, slug, self._category(slug)
            case _:
                return kind, "p/a", {"provider": "p", "account": "a", "used": float(chance.randrange(9))}

    def _shop(self, shop_id: str) -> dict[str, Any]:
        chance = self._chance
        slugs = chance.sample(("home", "garden", "books", "toys"), chance.randint(1, 3))
        return shop(
            f"{chance.choice(_WORDS)} {chance.choice(_WORDS)}",
            self._domain(),
            id=shop_id,
            categories=[(slug, slug.title() if chance.random() < 0.7 else slug.upper()) for slug in slugs],
            countries=chance.choice(([], ["DE"], ["DE", "FR"], ["WORLDWIDE"])),
            popularity=chance.choice((None, 0.0, 1.0, 2.0, 3.0)),
            aliases=[chance.choice(_WORDS)] if chance.random() < 0.3 else [],
            checkout_hosts=[self._domain()] if chance.random() < 0.3 else [],
            logo=f"https://{self._domain()}/logo.svg" if chance.random() < 0.7 else None,
            visibility=chance.choice(("public", "public", "public", "public", "under_review", "removed")),
        )

    def _offer(self, key: str, owner: str) -> dict[str, Any]:
        chance = self._chance
        stated: dict[str, Any] = {"updated_at": f"2031-05-0{chance.randint(1, 9)}T07:08:09Z"}
        return offer(
            key,
            owner,
            title=chance.choice(_WORDS),
            url=f"https://{self._domain()}/p",
            **(stated if chance.random() < 0.7 else {}),
        )

    def _category(self, slug: str) -> dict[str, Any]:
        chance = self._chance
        return {
            "slug": slug,
            "name": chance.choice((None, *_WORDS)),
            "names": {"de": chance.choice(_WORDS), "ja": chance.choice(_WORDS)} if chance.random() < 0.7 else None,
            "synonyms": chance.sample(_WORDS, chance.randint(0, 2)),
        }

    def _domain(self) -> str:
        return f"d{self._chance.randrange(max(2, self._shops * 2 // 3))}.internal"


_BOUND_S: Final = 30.0

Scanned = dict[str, dict[str, dict[str, Any]]]


class FollowedIndex:
    def __init__(self, folder: Path, sink: Sink, catalogue: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        self.sink = sink
        self.catalogue = folder / "catalogue"
        self.changes = self.catalogue / CHANGES
        self.states = States(folder / "states", sink.location)
        self._folder = folder
        self.rewrite(catalogue)

    def rewrite(self, catalogue: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        """Put another catalogue in its place; the changes stay."""
        write_catalogue_directory(self.catalogue, **catalogue)

    def build(self, options: BuildOptions | None = None) -> BuildSummary:
        return build(
            NdjsonCatalogue(self.catalogue),
            self.sink,
            self.states,
            options or BuildOptions(most_shrink=1.0, allow_empty=True),
        )

    def append(self, lines: Iterable[Mapping[str, Any] | str]) -> None:
        """Append changes; text is appended as it is."""
        with self.changes.open("a", encoding="utf-8") as file:
            for line in lines:
                file.write(f"{line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)}\n")

    def append_statements(self, statements: Iterable[Statement]) -> None:
        self.append(one.line for one in statements)

    @contextmanager
    def follower(
        self,
        around: Callable[[GenerationEditor], GenerationEditor] = lambda editor: editor,
        check: Callable[[], None] = lambda: None,
    ) -> Iterator[ChangeApplier]:
        """What follows into the live generation, from its state as it is on the disk; closed at the end."""
        live = self.live
        letters = DeadLetters(self.states.dead_letters)
        changes = NdjsonCatalogue(self.catalogue).changes()
        with (
            self.states.open(live.generation) as state,
            closing(self.sink.edit(live.generation)) as editor,
            closing(letters),
        ):
            yield ChangeApplier(state, around(editor), changes, letters, check)

    @contextmanager
    def following(self, options: FollowOptions) -> Iterator[None]:
        """The follow job in a thread, from beginning to end of the block, in which nothing of it may fail."""
        changes, stop, failures = NdjsonCatalogue(self.catalogue).changes(), Event(), list[int]()
        job = Following(self.sink, self.states, changes, options)
        thread = Thread(target=lambda: failures.append(job.run(stop).failures))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(_BOUND_S)
        assert failures == [0]

    def step(self, most: int = MICRO_BATCH) -> ChangeCounts:
        with self.follower() as follower:
            return follower.step(most)

    def drain(self) -> ChangeCounts:
        with self.follower() as follower:
            return follower.drain()

    @property
    def live(self) -> Stamp:
        live = self.sink.live()
        assert live is not None
        return live

    def scan(self) -> Scanned:
        with closing(self.sink.edit(self.live.generation)) as editor:
            return {kind: dict(scan(editor, kind)) for kind in DOCUMENTS}

    def rebuilt(self) -> Scanned:
        sink = MemorySink()
        build(NdjsonCatalogue(self.catalogue), sink)
        return scanned(sink)

    def accounts(self) -> tuple[ResourceAccount, ...]:
        with closing(self.sink.edit(self.live.generation)) as editor:
            operations = editor.operations()
        assert operations is not None
        return operations.accounts


def right(folder: Path, statements: Iterable[Statement]) -> MemorySink:
    sink = MemorySink()
    build_into(sink, write_catalogue_directory(folder, **by_type(newest(statements).values())))
    return sink


def scanned(sink: MemorySink) -> Scanned:
    assert sink.stamp is not None
    editor = sink.edit(sink.stamp.generation)
    return {kind: dict(scan(editor, kind)) for kind in DOCUMENTS}


class CrashPoint(Enum):
    TAKEN = "taken"  # the state has the changes, the engine nothing
    WRITING = "writing"  # the engine has some of the documents
    WRITTEN = "written"  # it has all, and shows none
    SHOWN = "shown"  # it shows them, and the stamp has not risen
    COMMITTED = "committed"  # the stamp has risen, and the documents are still pending


class CrashedError(Exception):
    """It crashed."""


def crashing_check(point: CrashPoint) -> Callable[[], None]:
    def check() -> None:
        if point is CrashPoint.TAKEN:
            raise CrashedError

    return check


class BreakingEditor:
    def __init__(self, editor: GenerationEditor, point: CrashPoint | None = None, writes: int = 0) -> None:
        """Note when to fall, if at all: of CrashPoint.WRITING after so many writes of a kind."""
        self._editor, self._point, self._writes = editor, point, writes
        self.count, self.count_ids, self.read = editor.count, editor.count_ids, editor.read
        self.page, self.operations = editor.page, editor.operations
        self.remove_of_shops, self.files_damaged = editor.remove_of_shops, editor.files_damaged
        self.typeahead, self.close = editor.typeahead, editor.close

    @property
    def stamp(self) -> Stamp:
        return self._editor.stamp

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        if self._point is CrashPoint.WRITING and self._writes == 0:
            raise CrashedError
        self._writes -= 1
        return self._editor.write(kind, documents, removed)

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        self._editor.write_operations(operations, wait_for_engine=wait_for_engine)

    def show(self) -> None:
        if self._point is CrashPoint.WRITTEN:
            raise CrashedError
        self._editor.show()

    def commit(self, stamp: Stamp) -> None:
        if self._point is CrashPoint.SHOWN:
            raise CrashedError
        self._editor.commit(stamp)
        if self._point is CrashPoint.COMMITTED:
            raise CrashedError


LAMP: Final = {
    **shop("Lumen Lamps", "lumen.internal", id="lamp", categories=[("lamps", "Lamps"), ("home", "Home")], popularity=5),
    "version": 1,
}
_OTHERS: Final = (
    shop("Moss", "moss.internal", id="moss", categories=[("home", "Home"), ("lamps", "Lamps")]),
    shop("Larch", "larch.internal", id="larch", categories=[("home", "Zuhause")]),
    shop("Fern", "fern.internal", id="fern", categories=[("home", "Zuhause"), "garden"]),
)
_RELATED: Final[Mapping[str, list[dict[str, Any]]]] = {
    "coupons": [coupon("LIGHT", "lamp", id="c-lamp"), coupon("GREEN", "moss", id="c-moss")],
    "offers": [
        offer("o-lamp", "lamp", url="https://lumen.internal/p"),
        offer("o-moss", "moss", url="https://moss.internal/p"),
    ],
    "shipping": [shipping("lamp", destinations=["DE"], source="policy_page", checked_at="2031-05-06T07:08:09Z")],
    "policies": [policy("lamp", "returns", days=30), policy("lamp", "returns", "AT", days=14)],
    "trust": [trust("lamp", "registrar", "A registrar")],
    "affiliate_programs": [program("lamp", "alpha", disclosure="We may earn")],
    "redirects": [redirect("lumen.internal", "moss.internal", source="seen")],
}


def lamp_world(*, known: bool = True) -> dict[str, list[dict[str, Any]]]:
    versioned = [{**line, "version": 1} for line in _OTHERS]
    if known:
        return {"shops": [LAMP, *versioned], **_RELATED}
    return {
        "shops": versioned,
        **{kind: [line for line in lines if not _names_it(line)] for kind, lines in _RELATED.items()},
    }


def _names_it(line: Mapping[str, Any]) -> bool:
    return line.get("shop_id") == "lamp" or line.get("from_domain") == LAMP["domain"]


def now(visibility: str, version: int) -> dict[str, Any]:
    return upsert("shops", {**LAMP, "visibility": visibility}, version)
