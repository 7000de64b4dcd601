"""Write finished documents with the client of the engine alone, as the baseline of a whole build.

The documents are read from files, one for each kind, before the clock starts.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import tantivy
from opensearchpy import OpenSearch
from opensearchpy.helpers import parallel_bulk

from index_mappings.documents import DOCUMENTS, stored_part
from index_mappings.embedded import STORED_COLUMN, column_values
from index_mappings.ngrams import frequent_terms
from index_mappings.opensearch import mapping, settings, wire_document
from indexer.jobs.reading import Reading, read_catalogue
from indexer.projection import Projector
from indexer.records.problems import ProblemLog
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.embedded.generation import schema
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state.state import States

_PREFIX = "bench-raw-"
_TIMEOUT_S = 60
_HEAP_BYTES = 128_000_000


class Spent(NamedTuple):
    """The cost of one load: elapsed seconds, and those of this process's processor time, without the node's."""

    seconds: float
    processor: float


def finish(catalogue: Path, directory: Path) -> int:
    """Write the finished documents of a catalogue as files, for both engines; returns how many there are."""
    directory.mkdir()
    state = States(directory / "state", "bench").create("finished")
    letters = DeadLetters(directory / "letters.ndjson")
    read_catalogue(Reading(NdjsonCatalogue(catalogue), None, None, letters, skip_invalid=False), state, ProblemLog())
    count = 0
    for projected in Projector(state).all():
        frequent = frequent_terms(DOCUMENTS[projected.kind], projected.sample())
        with (directory / projected.kind).open("wb") as file:
            for document in projected.documents():
                terms = column_values(projected.kind, document, frequent)
                stored = orjson.dumps(stored_part(document)).decode()
                file.write(orjson.dumps([wire_document(document), terms, stored]) + b"\n")
                count += 1
    state.close()
    return count


def load_opensearch(url: str, finished: Path) -> Spent:
    """Load them by `parallel_bulk` and refresh once: the engine's client at its usual settings."""
    actions = {kind: list(_actions(kind, _lines(finished / kind))) for kind in DOCUMENTS}
    client = OpenSearch([url], timeout=_TIMEOUT_S, pool_maxsize=4)
    for kind in DOCUMENTS:
        body = {"settings": settings(kind, shards=1, replicas=0), "mappings": mapping(kind)}
        client.indices.create(index=f"{_PREFIX}{kind}", body=body)
    gc.freeze()
    try:
        started, processor = time.perf_counter(), time.process_time()
        for encoded in actions.values():
            for _ in parallel_bulk(client, encoded):
                pass
        client.indices.refresh(index=f"{_PREFIX}*")
        spent = Spent(time.perf_counter() - started, time.process_time() - processor)
        if client.count(index=f"{_PREFIX}*")["count"] != sum(map(len, actions.values())):
            raise RuntimeError("not every document arrived")
    finally:
        client.indices.delete(index=",".join(f"{_PREFIX}{kind}" for kind in DOCUMENTS))
        client.close()
    return spent


def load_embedded(directory: Path, finished: Path) -> Spent:
    """Write them by tantivy."""
    encoded = {kind: [(terms, stored.encode()) for _, terms, stored in _lines(finished / kind)] for kind in DOCUMENTS}
    gc.freeze()
    started, processor = time.perf_counter(), time.process_time()
    for kind, documents in encoded.items():
        (directory / kind).mkdir(parents=True)
        index = tantivy.Index(schema(kind), path=str(directory / kind))
        writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        for terms, stored in documents:
            writer.add_document(tantivy.Document(**terms, **{STORED_COLUMN: stored}))
        writer.commit()
        writer.wait_merging_threads()
    return Spent(time.perf_counter() - started, time.process_time() - processor)


def _lines(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        yield from map(orjson.loads, file)


def _actions(kind: str, lines: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for values, _, _ in lines:
        yield {"_op_type": "index", "_index": f"{_PREFIX}{kind}", "_id": values["id"], "_source": values}


def main() -> None:
    """Print as JSON what one round took: of OpenSearch if a URL is given, else of the embedded engine."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("finished", type=Path, help="where `finish` wrote the documents")
    options.add_argument("--finish", type=Path, help="only write them there, from this catalogue")
    options.add_argument("--url", help="the node")
    options.add_argument("--directory", type=Path, help="where the embedded index goes")
    given = options.parse_args()
    if given.finish:
        sys.stdout.write(json.dumps(finish(given.finish, given.finished)))
        return
    spent = load_opensearch(given.url, given.finished) if given.url else load_embedded(given.directory, given.finished)
    sys.stdout.write(json.dumps(spent))


if __name__ == "__main__":
    main()
