"""The indexer's side: files become documents, are read back whole, and leave when nothing names them any more.

What a cluster forbids is said by a job before it begins, and not by searches later.
"""

import time
from pathlib import Path

import pytest

from index_mappings.typeahead.chunks import CHUNK_BYTES
from index_mappings.typeahead.manifest import SUFFIX as MANIFEST
from index_mappings.typeahead.segment import SUFFIX as SEGMENT
from index_mappings.typeahead.segment import segment_path
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead
from tests.engines.fetching.files import GENERATION, Files

pytestmark = pytest.mark.opensearch


def _store(files: Files, directory: Path, grace: float = 60.0) -> OpenSearchTypeahead:
    """The store as another machine, or a process with an empty disk, has it."""
    return OpenSearchTypeahead(files.client, files.prefix, GENERATION, directory, grace)


def _stored(files: Files) -> set[str]:
    files.client.indices.refresh(index=files.index)
    hits = files.client.search(index=files.index, body={"size": 100, "_source": ["file"]})["hits"]["hits"]
    return {hit["_source"]["file"] for hit in hits}


def test_a_file_is_read_back_where_it_is_missing_or_damaged(files: Files, tmp_path: Path) -> None:
    segment, name = files.segment(CHUNK_BYTES + 1), files.manifest(())
    store = _store(files, tmp_path / "other")
    whole = segment_path(files.store.directory, segment.name).read_bytes()
    path = store.fetch(segment.name, SEGMENT)
    assert path == segment_path(store.directory, segment.name)
    assert path.read_bytes() == whole
    path.write_bytes(bytes(CHUNK_BYTES + 1))
    assert store.fetch(segment.name, SEGMENT).read_bytes() == whole
    assert store.fetch(name, MANIFEST).name == f"{name}.manifest"
    before = files.gets()
    store.fetch(segment.name, SEGMENT)
    assert files.gets() == before


def test_a_chunk_that_is_missing_or_changed_is_found(files: Files, tmp_path: Path) -> None:
    whole, cut, changed = (files.segment(CHUNK_BYTES + 1, seed=seed) for seed in range(3))
    files.remove_chunk(cut.name, 1)
    files.replace_chunk(changed.name, {**files.chunk(whole.name), "file": changed.name})
    store = _store(files, tmp_path / "other")
    name = files.manifest((whole, cut, changed))
    assert store.damaged(name) == (f"{cut.name}.segment", f"{changed.name}.segment")
    assert list(store.directory.iterdir()) == []
    for use in (cut, changed):
        with pytest.raises(ValueError, match="typeahead"):
            store.fetch(use.name, SEGMENT)
    files.remove_chunk(name)
    assert store.damaged(name) == (f"{name}.manifest",)


def test_writing_a_file_again_changes_nothing(files: Files) -> None:
    segment = files.segment(CHUNK_BYTES + 1)
    before = [files.chunk(segment.name, number) for number in range(2)]
    files.store.put(segment_path(files.store.directory, segment.name))
    assert [files.chunk(segment.name, number) for number in range(2)] == before


def test_files_that_nothing_names_leave_after_the_grace(files: Files, tmp_path: Path) -> None:
    needed, former = files.segment(1_000), files.segment(1_000, seed=1)
    store = _store(files, tmp_path / "other", grace=0.5)
    store.tidy({needed.name, former.name})
    time.sleep(0.6)
    store.tidy({needed.name})
    assert _stored(files) == {needed.name, former.name}
    time.sleep(0.6)
    store.tidy({needed.name})
    assert _stored(files) == {needed.name}


def test_a_file_that_is_written_again_within_the_grace_stays(files: Files, tmp_path: Path) -> None:
    segment = files.segment(1_000)
    store = _store(files, tmp_path / "other", grace=0.5)
    store.tidy(())
    store.put(store.fetch(segment.name, SEGMENT))
    time.sleep(0.6)
    store.tidy(())
    assert _stored(files) == {segment.name}


def test_a_generation_that_is_gone_takes_no_file(files: Files) -> None:
    files.client.indices.delete(index=files.index)
    with pytest.raises(IndexLostError, match="a chunk of the typeahead could not be written"):
        files.segment(1_000)


def test_a_cluster_that_refuses_prefix_queries_is_refused(files: Files, tmp_path: Path) -> None:
    sink = OpenSearchSink([files.url], files.prefix, letters=tmp_path / "letters")
    assert sink.location.startswith(f"the indices {files.prefix} in cluster ")
    for level in ("persistent", "transient"):
        files.client.cluster.put_settings(body={level: {"search.allow_expensive_queries": False}})
        try:
            with pytest.raises(SinkError, match=r"set search\.allow_expensive_queries to true, or remove it"):
                _ = sink.location
        finally:
            files.client.cluster.put_settings(body={level: {"search.allow_expensive_queries": None}})
    assert sink.location.startswith(f"the indices {files.prefix} in cluster ")
    sink.close()
