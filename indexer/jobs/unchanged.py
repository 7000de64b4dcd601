"""Whether a build would only repeat what is live: decided by the catalogue's content, the options and the program.

What a generation was built from is noted in its state. Wherever anything is uncertain the answer is no: a database
that can't be digested, a generation that followed changes since, a file of the index that is missing.
"""

import json
import sys
from functools import cache
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

import index_mappings
from index_mappings.generations import Stamp
from indexer.disk_space import DiskFullError
from indexer.records.problems import CatalogueError
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Sink
from indexer.sources.protocol import Source
from indexer.state.state import State
from indexer.state.states import States

_NOTE: Final = "built_from"


def digest_of(source: Source, *, skip_invalid: bool) -> str | None:
    """A digest of all that a build's outcome depends on, but former states; None where that is not known.

    Raises:
        CatalogueError: the catalogue can't be read.
    """
    content = source.fingerprint()
    if content is None:
        return None
    return sha256(json.dumps([content, skip_invalid, *_program()]).encode()).hexdigest()


def note(state: State, digest: str, stamp: Stamp) -> None:
    """Note in the state of a generation what it was built from; a later sequence is of changes that came since."""
    state.set(_NOTE, json.dumps([digest, stamp.sequence]))


def unchanged(sink: Sink, states: States, digest: str) -> Stamp | None:
    """The live stamp, where the live generation is whole, readable, and built from just this; else None."""
    try:
        stamp = sink.live()
        if stamp is None or not stamp.readable or not states.has(stamp.generation):
            return None
        with states.open(stamp.generation) as state:
            noted = state.get(_NOTE)
        if noted != json.dumps([digest, stamp.sequence]) or not _is_whole(sink, stamp):
            return None
    except (CatalogueError, SinkError, DiskFullError):
        # The build finds out what is wrong, and says it.
        return None
    return stamp


def _is_whole(sink: Sink, stamp: Stamp) -> bool:
    editor = sink.edit(stamp.generation)
    try:
        return (
            all(editor.count(kind) == count for kind, count in stamp.counts.items()) and not editor.typeahead_damaged()
        )
    finally:
        editor.close()


@cache
def _program() -> list[str]:
    """The code that makes documents, and the versions of everything that it may use."""
    folders = (Path(index_mappings.__file__).parent, Path(__file__).parents[1])
    code = sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        code.update(f"{path.name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    installed = sorted(f"{found.name} {found.version}" for found in distributions())
    return [sys.version, code.hexdigest(), *installed]
