"""Generations made by hand, through the real sinks: many of them fast, or one of a wrong version."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.generations import Stamp, first_stamp, new_generation
from indexer.sinks.protocol import Sink
from tests.support.catalogues import Lines
from tests.support.worlds import in_memory


@dataclass(frozen=True, slots=True)
class Documents:
    """What the indexer projects from a catalogue, ready to be written again and again."""

    by_kind: Mapping[str, tuple[Any, ...]]

    @property
    def counts(self) -> dict[str, int]:
        return {kind: len(documents) for kind, documents in self.by_kind.items()}


def projected(shops: Lines, directory: Path, **others: Lines) -> Documents:
    """The documents of a catalogue, once through the gate and the projection."""
    documents = in_memory(directory, shops, **others).documents
    return Documents({kind: tuple(of_kind) for kind, of_kind in documents.items()})


def sealed(
    sink: Sink, documents: Documents, *, schema_version: int = SCHEMA_VERSION
) -> tuple[Stamp, Callable[[], None]]:
    """A generation that is written and sealed, and what publishes it instead of the one that is live now."""
    now = datetime.now(UTC)
    generation, live = new_generation(now), sink.live()
    writer = sink.begin(generation)
    for kind, of_kind in documents.by_kind.items():
        writer.add(kind, of_kind)
    stamp = replace(first_stamp(generation, now).counted(documents.counts), schema_version=schema_version)
    return writer.seal(stamp), partial(sink.publish, generation, None if live is None else live.generation)


def publish(sink: Sink, documents: Documents, *, schema_version: int = SCHEMA_VERSION) -> Stamp:
    """Publish a generation; as a build does, keep it and the one before it."""
    stamp, become_live = sealed(sink, documents, schema_version=schema_version)
    previous = sink.live()
    become_live()
    for found in sink.generations():
        if found.name not in {stamp.generation, previous and previous.generation}:
            sink.drop(found.name)
    return stamp
