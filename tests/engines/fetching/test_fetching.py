"""Files of a typeahead, written to a real OpenSearch, fetched whole or not at all, and gone when unnamed."""

import asyncio
import gc
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from index_mappings.opensearch import CHUNK_BYTES
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead
from shop_directory.runtime.metrics import Metrics
from shop_directory.search.failures import GenerationGone, TypeaheadUnavailable
from shop_directory.search.opensearch.typeahead import (
    DAMAGED,
    ENGINE_UNAVAILABLE,
    FULL,
    MISSING,
    READ_ONLY,
    TOO_MANY_OPEN,
    TypeaheadFetcher,
)
from shop_directory.typeahead.manifest import SUFFIX as MANIFEST
from shop_directory.typeahead.manifest import Announcement, SegmentUse, manifest_path
from shop_directory.typeahead.segment import SUFFIX as SEGMENT
from shop_directory.typeahead.segment import segment_path
from tests.engines.fetching.files import GENERATION, Files, written_to
from tests.support.real.opensearch import OpenSearchNode

pytestmark = pytest.mark.opensearch

# Three chunks, the last one smaller.
LARGE: Final = 2 * CHUNK_BYTES + 1_000
REPOSITORY: Final = Path(__file__).parents[3]
# Another process of the machine: fetches as the service does, then prints how many documents it asked for.
FETCHING: Final = """
import asyncio, sys
from pathlib import Path
from shop_directory.search.opensearch.nodes import connect
from shop_directory.search.opensearch.typeahead import TypeaheadFetcher


async def main(url, prefix, folder, generation, name):
    client = connect([url], timeout=10.0)
    fetcher = TypeaheadFetcher(client, prefix, Path(folder), 1 << 30)
    await fetcher.fetch(generation, name)
    await client.close()

asyncio.run(main(*sys.argv[1:]))
"""
# Holds the lock of a file from its first line of output to the end of its input.
LOCKING: Final = """
import sys
from pathlib import Path
from shop_directory.search.opensearch.folder import TypeaheadFolder
assert TypeaheadFolder(Path(sys.argv[1])).try_lock(sys.argv[2]) is not None
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of a file."""
    command = [sys.executable, "-c", LOCKING, str(folder), name]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        yield holder


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


async def test_all_files_of_a_covering_arrive_whole_and_private(files: Files, tmp_path: Path) -> None:
    large, empty = files.segment(LARGE), files.segment(0)
    name = files.manifest((large, empty))
    folder = tmp_path / "cache" / "folder"
    async with files.fetcher(folder) as fetcher:
        manifest = await fetcher.fetch(GENERATION, name)
    assert manifest.files() == {large.name: LARGE, empty.name: 0}
    written = files.store.directory
    assert _names(folder) == {f"{large.name}.segment", f"{empty.name}.segment", f"{name}.manifest"}
    for file in _names(folder):
        assert (folder / file).read_bytes() == (written / file).read_bytes()
        assert stat.S_IMODE((folder / file).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_processes_that_need_a_file_at_the_same_time_fetch_it_once(files: Files, tmp_path: Path) -> None:
    name = files.manifest((files.segment(LARGE),))
    before = files.gets()
    command = [sys.executable, "-c", FETCHING, files.url, files.prefix, str(tmp_path / "folder"), GENERATION, name]
    processes = [subprocess.Popen(command, cwd=REPOSITORY) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    # The first chunk of the manifest is asked for twice: it says how large that is.
    assert files.gets() - before == 2 + 3


async def test_a_process_that_is_killed_while_it_fetches_blocks_no_other_process(files: Files, tmp_path: Path) -> None:
    segment = files.segment(1_000)
    name = files.manifest((segment,))
    folder = tmp_path / "folder"
    with _locked(folder, segment.name) as holder:
        (folder / f"{segment.name}.part").write_bytes(b"a half")
        async with files.fetcher(folder) as fetcher:
            fetching = asyncio.create_task(fetcher.fetch(GENERATION, name))
            await asyncio.sleep(0.5)
            assert not fetching.done()
            assert not segment_path(folder, segment.name).exists()
            holder.send_signal(signal.SIGKILL)
            await asyncio.wait_for(fetching, 30)
    assert segment_path(folder, segment.name).stat().st_size == 1_000
    assert not (folder / f"{segment.name}.part").exists()


async def test_another_process_is_waited_for_as_long_as_it_goes_on_writing_the_file(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shop_directory.search.opensearch.typeahead._LOCK_TIMEOUT_SECONDS", 2.0)
    segment = files.segment(1_000)
    name = files.manifest((segment,))
    folder = tmp_path / "folder"
    with _locked(folder, segment.name):
        async with files.fetcher(folder) as fetcher:
            fetching = asyncio.create_task(fetcher.fetch(GENERATION, name))
            began = time.monotonic()
            while time.monotonic() - began < 5.0:
                (folder / f"{segment.name}.part").write_bytes(b"a half")
                await asyncio.sleep(0.05)
                assert not fetching.done()
            with pytest.raises(TypeaheadUnavailable, match="has stopped fetching"):
                await asyncio.wait_for(fetching, 30)


async def test_a_complete_covering_is_used_while_the_preferred_one_is_fetched(files: Files, tmp_path: Path) -> None:
    inputs = (files.segment(1_000, seed=1), files.segment(2_000, seed=2))
    folded = files.segment(3_000, seed=3)
    async with files.fetcher(tmp_path / "folder") as fetcher:
        await fetcher.fetch(GENERATION, files.manifest(inputs))
        name = files.manifest((folded,), inputs)
        files.remove_chunk(folded.name)
        await fetcher.fetch(GENERATION, name)
        files.store.put(segment_path(files.store.directory, folded.name))
        async with asyncio.timeout(30):
            while not segment_path(fetcher.directory, folded.name).exists():
                # As for each new stamp.
                await fetcher.fetch(GENERATION, name)
                await asyncio.sleep(0.05)


async def test_what_is_announced_is_there_when_it_is_published(files: Files, tmp_path: Path) -> None:
    name = files.manifest((files.segment(1_000),))
    async with files.fetcher(tmp_path / "folder") as fetcher:
        async with asyncio.timeout(30):
            while not list(tmp_path.glob("folder/*.segment")):
                # As often as the service looks at what is live, for as long as it is announced.
                fetcher.fetch_ahead(Announcement(GENERATION, name))
                await asyncio.sleep(0.05)
        before = files.gets()
        await fetcher.fetch(GENERATION, name)
        assert files.gets() == before


def _removed(files: Files, segment: SegmentUse, _: str) -> None:
    files.remove_chunk(segment.name, 1)


def _of_another_file(files: Files, segment: SegmentUse, _: str) -> None:
    files.replace_chunk(segment.name, files.chunk(files.segment(LARGE, seed=7).name, 1), 1)


def _swapped(files: Files, segment: SegmentUse, _: str) -> None:
    """Both of one file, and of one length: only the hash of the whole file shows it."""
    first, second = files.chunk(segment.name, 0), files.chunk(segment.name, 1)
    files.replace_chunk(segment.name, second, 0)
    files.replace_chunk(segment.name, first, 1)


def _not_packed(files: Files, segment: SegmentUse, _: str) -> None:
    files.replace_chunk(segment.name, {**files.chunk(segment.name), "data": "bm8gY2h1bms="})


def _without_manifest(files: Files, _: SegmentUse, name: str) -> None:
    files.remove_chunk(name)


def _with_another_manifest(files: Files, segment: SegmentUse, name: str) -> None:
    other = files.chunk(files.manifest((segment, segment)))
    files.replace_chunk(name, {**other, "file": name})


@pytest.mark.rule("E3")
@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (_removed, MISSING),
        (_of_another_file, DAMAGED),
        (_swapped, DAMAGED),
        (_not_packed, DAMAGED),
        (_without_manifest, MISSING),
        (_with_another_manifest, DAMAGED),
    ],
)
async def test_damage_in_the_index_is_an_error_until_it_is_mended(
    files: Files, tmp_path: Path, damage: Callable[[Files, SegmentUse, str], None], text: str
) -> None:
    segment = files.segment(LARGE)
    name = files.manifest((segment,))
    written = segment_path(files.store.directory, segment.name)
    damage(files, segment, name)
    async with files.fetcher(tmp_path / "folder") as fetcher:
        assert await _failure(fetcher, name) == text
        assert not segment_path(fetcher.directory, segment.name).exists()
        assert list(fetcher.directory.glob("*.part")) == []
        files.store.put(written)
        files.store.put(manifest_path(files.store.directory, name))
        await fetcher.fetch(GENERATION, name)
        assert segment_path(fetcher.directory, segment.name).read_bytes() == written.read_bytes()


async def test_a_local_file_that_was_cut_or_changed_is_fetched_again(files: Files, tmp_path: Path) -> None:
    cut, changed = files.segment(LARGE), files.segment(1_000, seed=1)
    name = files.manifest((cut, changed))
    async with files.fetcher(tmp_path / "folder") as fetcher:
        manifest = await fetcher.fetch(GENERATION, name)
        os.truncate(segment_path(fetcher.directory, cut.name), 100)
        segment_path(fetcher.directory, changed.name).write_bytes(bytes(1_000))
        manifest_path(fetcher.directory, name).write_bytes(b"{}")
        await fetcher.remove_damaged(manifest)
        await fetcher.fetch(GENERATION, name)
        for file in _names(fetcher.directory):
            assert (fetcher.directory / file).read_bytes() == (files.store.directory / file).read_bytes()


async def test_a_generation_that_was_removed_is_gone(files: Files, tmp_path: Path) -> None:
    name = files.manifest((files.segment(1_000),))
    files.client.indices.delete(index=files.index)
    async with files.fetcher(tmp_path / "folder") as fetcher:
        with pytest.raises(GenerationGone):
            await fetcher.fetch(GENERATION, name)


async def test_files_that_are_larger_than_allowed_are_refused_before_any_is_fetched(
    files: Files, tmp_path: Path
) -> None:
    name = files.manifest((SegmentUse("a" * 64, 1 << 50, 1),))
    async with files.fetcher(tmp_path / "folder") as fetcher:
        assert await _failure(fetcher, name) == (
            "its files have 1073741824 MiB, which is more than SHOP_DIRECTORY_TYPEAHEAD_MB allows (1024)"
        )
        assert _names(fetcher.directory) == {f"{name}.manifest"}


async def test_a_disk_without_room_is_an_error_until_there_is_some(files: Files, tmp_path: Path) -> None:
    name = files.manifest((files.segment(LARGE),))
    async with files.fetcher(tmp_path / "folder") as fetcher:
        with _files_of_at_most(CHUNK_BYTES):
            assert await _failure(fetcher, name) == FULL
        assert _names(fetcher.directory) == {f"{name}.manifest"}
        await fetcher.fetch(GENERATION, name)


async def test_no_file_is_left_half_written_where_the_process_may_open_no_more(files: Files, tmp_path: Path) -> None:
    first, name = (files.manifest((files.segment(LARGE, seed),)) for seed in (1, 2))
    async with files.fetcher(tmp_path / "folder") as fetcher:
        await fetcher.fetch(GENERATION, first)  # its connections stay open
        fetched = _names(fetcher.directory)
        for count in (0, 1, 2):
            with _descriptors_left(count):
                assert await _failure(fetcher, name) == TOO_MANY_OPEN
            assert _names(fetcher.directory) == fetched
        with _descriptors_left(3):
            await fetcher.fetch(GENERATION, name)
        assert _names(fetcher.directory) > fetched


async def test_a_folder_that_others_can_write_is_not_used(files: Files, tmp_path: Path) -> None:
    name = files.manifest((files.segment(1_000),))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(0o777)
    async with files.fetcher(tmp_path / "folder") as fetcher:
        assert await _failure(fetcher, name) == READ_ONLY
        fetcher.directory.chmod(0o700)
        await fetcher.fetch(GENERATION, name)


@pytest.mark.slow
@pytest.mark.rule("E3")
async def test_a_cluster_that_stops_while_files_are_fetched_is_an_error_until_it_is_back(
    spare_node: OpenSearchNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shop_directory.search.opensearch.typeahead._RETRY_SECONDS", 1.0)
    with written_to(spare_node.url, tmp_path / "written") as files:
        name = files.manifest((files.segment(LARGE),))
        async with files.fetcher(tmp_path / "folder") as fetcher:
            spare_node.kill()
            assert await _failure(fetcher, name) == ENGINE_UNAVAILABLE
            spare_node.start()
            await fetcher.fetch(GENERATION, name)


async def test_fetched_files_are_counted(files: Files, tmp_path: Path) -> None:
    name = files.manifest((files.segment(LARGE),))
    counted = _Counted()
    async with files.fetcher(tmp_path / "folder", metrics=counted) as fetcher:
        files.remove_chunk(name)
        await _failure(fetcher, name)
        files.store.put(manifest_path(files.store.directory, name))
        await fetcher.fetch(GENERATION, name)
    size = manifest_path(files.store.directory, name).stat().st_size
    assert counted.fetched == [("unavailable", 0), ("ok", size), ("ok", LARGE)]
    assert counted.folder == (2, size + LARGE)


class _Counted(Metrics):
    def __init__(self) -> None:
        self.fetched: list[tuple[str, int]] = []
        self.folder = (0, 0)

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        assert seconds > 0
        self.fetched.append((outcome, size))

    def typeahead_folder(self, files: int, size: int) -> None:
        self.folder = files, size


async def _failure(fetcher: TypeaheadFetcher, name: str) -> str:
    with pytest.raises(TypeaheadUnavailable) as failure:
        await fetcher.fetch(GENERATION, name)
    return str(failure.value)


@contextmanager
def _descriptors_left(count: int) -> Iterator[None]:
    gc.collect()  # what other tests left would be closed meanwhile
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(path.name) for path in Path("/dev/fd").iterdir()) + 8, hard))
    held: list[int] = []
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        while count:
            os.close(held.pop())
            count -= 1
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _store(files: Files, directory: Path, grace: float = 60.0) -> OpenSearchTypeahead:
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
