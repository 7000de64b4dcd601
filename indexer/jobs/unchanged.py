"""Finds whether a build would reproduce the live generation: from the catalogue's content, the options and the program.

A digest of these is recorded in a generation's state. In any doubt the build runs: for a database that can't be
digested, a generation that has followed changes since, a file of the index that is missing.
"""

import json
import sys
from contextlib import closing
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
from indexer.state.state import State, States

_DIGEST_KEY: Final = "built_from"


def source_digest(source: Source, *, skip_invalid: bool) -> str | None:
    """A digest of all inputs of a build except former states; None where the source can't be digested."""
    content = source.fingerprint()
    if content is None:
        return None
    return sha256(json.dumps([content, skip_invalid, *_program()]).encode()).hexdigest()


def record_source(state: State, digest: str, stamp: Stamp, *, alone: bool) -> None:
    """Record in a generation's state the digest of its source; a later sequence means that changes were applied.

    `alone` says whether no former state was used. With one, building again from the same source has the same result,
    as the generation's own state holds what was kept, except with `--fresh-state`.
    """
    state.set(_DIGEST_KEY, _recorded(digest, stamp, alone=alone))


def _recorded(digest: str, stamp: Stamp, *, alone: bool) -> str:
    return json.dumps([digest, stamp.sequence, *([] if alone else ["with former state"])])


def find_unchanged(sink: Sink, states: States, digest: str, *, alone: bool) -> Stamp | None:
    """The live stamp, if the live generation is complete, readable and what this build would make; else None.

    `alone` says whether the build uses no former state.
    """
    try:
        stamp = sink.live()
        if stamp is None or not stamp.readable or not states.has(stamp.generation):
            return None
        with states.open(stamp.generation) as state:
            recorded = state.get(_DIGEST_KEY)
        reproducible = {
            _recorded(digest, stamp, alone=True),
            *([] if alone else [_recorded(digest, stamp, alone=False)]),
        }
        if recorded not in reproducible or not _is_complete(sink, stamp):
            return None
    except (CatalogueError, SinkError, DiskFullError):
        # The build that follows reports what is wrong.
        return None
    return stamp


def _is_complete(sink: Sink, stamp: Stamp) -> bool:
    with closing(sink.edit(stamp.generation)) as editor:
        counted = all(editor.count(kind) == count for kind, count in stamp.counts.items())
        return counted and not editor.typeahead_damaged()


@cache
def _program() -> list[str]:
    """The digest of the code that makes documents, and the versions of Python and all installed packages."""
    folders = (Path(index_mappings.__file__).parent, Path(__file__).parents[1])
    code = sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        code.update(f"{path.name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    installed = sorted(f"{found.name} {found.version}" for found in distributions())
    return [sys.version, code.hexdigest(), *installed]
