"""A published catalogue whose changes are followed, into an index in memory."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from indexer.jobs.build import build
from indexer.sources.changes import ChangeFile
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.state import States
from tests.support.catalogues import shop, write_catalogue_directory
from tests.support.memory_sink import MemorySink


class FollowedCatalogue:
    def __init__(self, folder: Path, accounts: Iterable[Mapping[str, object]] = ()) -> None:
        self.folder = folder / "catalogue"
        self.sink = MemorySink()
        self.states = States(folder / "state", self.sink.location)
        self.rewrite(accounts)
        self.generation = self.build()

    def rewrite(self, accounts: Iterable[Mapping[str, object]]) -> None:
        write_catalogue_directory(self.folder, shops=[shop("Lamp", id="lamp")], resource_accounts=accounts)

    def build(self) -> str:
        self.generation = build(NdjsonCatalogue(self.folder), self.sink, self.states).stamp.generation
        return self.generation

    def change(self, **change: object) -> None:
        with (self.folder / "changes.ndjson").open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(change)}\n")

    def add(self, name: str, version: int) -> None:
        self.change(op="upsert", type="shops", record=shop(name, id=name.lower()), version=version)

    def changes(self) -> ChangeFile:
        return ChangeFile(self.folder / "changes.ndjson")
