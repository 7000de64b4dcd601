"""The operations document on the real engines: the indexer writes it, the service reads it, nothing else minds it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opensearchpy import OpenSearch

from index_mappings.embedded import operations_path, stamp_path
from index_mappings.generations import STAMP, STAMP_ID, index_name
from index_mappings.integrity import to_stamp_json
from index_mappings.operations import OPERATIONS_ID, FollowerStatus, Operations, ResourceAccount
from indexer.jobs.following import Following, FollowOptions
from indexer.jobs.retention import prune
from indexer.jobs.rollback import roll_back
from indexer.reconcile.live import VerifyOptions, verify_live
from indexer.sinks.protocol import Role
from indexer.sources.ndjson import NdjsonCatalogue
from service.search.failures import BackendUnavailable, NothingPublished, OtherSchema
from service.search.opensearch.engine import OpenSearchBackend
from service.search.protocol import Generations
from tests.engines.following.breaking import BreakingEditor, FallenError, Timestamp, falling_check
from tests.engines.following.places import Place
from tests.engines.integration.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import projected, publish, sealed
from tests.support.catalogues import shop

LAMP = shop("Lamp", id="lamp")
BOUND_S = 20.0


def _line(account: str, **fields: object) -> dict[str, object]:
    return {"provider": "P", "account": account, **fields}


def _upsert(version: int, account: str, **fields: object) -> dict[str, object]:
    return {"op": "upsert", "type": "resource_accounts", "record": _line(account, **fields), "version": version}


def _shop(version: int, name: str) -> dict[str, object]:
    return {"op": "upsert", "type": "shops", "record": shop(name, id=name.lower()), "version": version}


def _told(account: str, used: float | None = None) -> ResourceAccount:
    return ResourceAccount("P", account, None, used, None, None, None, None)


def _place(engine: Engine, folder: Path, *accounts: str) -> Place:
    place = Place(folder, engine.sink, {"shops": [LAMP], "resource_accounts": [_line(one) for one in accounts]})
    place.build()
    return place


async def _accounts(engine: Engine) -> tuple[ResourceAccount, ...] | None:
    operations = (await engine.backend.generations()).operations
    return None if operations is None else operations.accounts


async def _follower(engine: Engine) -> FollowerStatus | None:
    operations = (await engine.backend.generations()).operations
    assert operations is not None
    return operations.follower


async def test_a_build_tells_accounts_and_the_generations_there_are(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(NothingPublished):
        await engine.backend.generations()
    place = _place(engine, tmp_path, "b", "a")
    first = place.live
    operations = Operations((_told("a"), _told("b")), None)
    assert await engine.backend.generations() == Generations(first, None, operations)

    place.rewrite({"shops": [LAMP], "resource_accounts": [_line("c", used=2)]})
    second = place.build().stamp
    assert await engine.backend.generations() == Generations(second, first, Operations((_told("c", 2.0),), None))

    prune(engine.sink, place.states, datetime.now(UTC) + timedelta(hours=1), keep_previous=False)
    assert await engine.backend.generations() == Generations(second, None, Operations((_told("c", 2.0),), None))


@pytest.mark.rule("G3", "C1")
async def test_changed_accounts_are_told_at_once_and_the_stamp_stands(engine: Engine, tmp_path: Path) -> None:
    place = _place(engine, tmp_path, "a", "b")
    before = place.live
    gone = {"op": "delete", "type": "resource_accounts", "key": "P/a", "version": 2}
    place.append([_upsert(2, "b", used=5), _upsert(2, "c"), gone])
    assert (place.step().applied, place.live) == (3, before)
    assert await engine.backend.generations() == Generations(
        before, None, Operations((_told("b", 5.0), _told("c")), None)
    )
    place.append([_upsert(1, "b", used=1)])
    assert (place.step().older, await _accounts(engine)) == (1, (_told("b", 5.0), _told("c")))


class _Forgetful(BreakingEditor):
    """A real editor whose process ends as soon as the accounts are written, before that is noted anywhere."""

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        super().write_operations(operations, wait_for_engine=wait_for_engine)
        raise FallenError


@pytest.mark.rule("G3")
async def test_accounts_that_a_killed_follower_took_are_told_by_the_next_one(engine: Engine, tmp_path: Path) -> None:
    place = _place(engine, tmp_path, "a")
    place.append([_upsert(2, "b")])
    with pytest.raises(FallenError), place.follower(check=falling_check(Timestamp.TAKEN)) as follower:
        follower.step()
    assert await _accounts(engine) == (_told("a"),)
    assert (place.step().applied, await _accounts(engine)) == (0, (_told("a"), _told("b")))

    place.append([_upsert(3, "b", used=9), _shop(3, "Book")])
    with pytest.raises(FallenError), place.follower(_Forgetful) as follower:
        follower.step()
    with place.states.open(place.live.generation) as state:
        assert state.pending.count() > 1
    done = place.step()
    assert (done.applied, done.updates, await _accounts(engine)) == (0, 1, (_told("a"), _told("b", 9.0)))


@contextmanager
def _following(place: Place, tell: Callable[..., None] = lambda _: None, **options: Any) -> Iterator[None]:  # noqa: ANN401
    """Following in a thread, from beginning to end of the block."""
    changes, stop, failed = NdjsonCatalogue(place.catalogue).changes(), threading.Event(), []
    following = Following(place.sink, place.states, changes, FollowOptions(**options), on_batch=tell)

    def run() -> None:
        try:
            following.run(stop)
        except Exception as error:  # noqa: BLE001 - is asserted on
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(BOUND_S)
    assert (failed, thread.is_alive()) == ([], False)


async def _until(engine: Engine, what: Callable[[FollowerStatus], bool]) -> FollowerStatus:
    async with asyncio.timeout(BOUND_S):
        while (told := await _follower(engine)) is None or not what(told):
            await asyncio.sleep(0.02)
    return told


async def test_a_follower_tells_of_itself_while_it_is_idle_and_its_last_word_stays(
    engine: Engine, tmp_path: Path
) -> None:
    place = _place(engine, tmp_path, "a")
    assert await _follower(engine) is None
    with _following(place, interval=0.05, status_interval=0.1):
        first = await _until(engine, lambda _: True)
        second = await _until(engine, lambda told: told.told_at > first.told_at)
        place.append([_shop(2, "Book")])
        third = await _until(engine, lambda told: told.position is not None)
        await _until(engine, lambda told: told.told_at > third.told_at)
    assert (second.source, second.position, second.waiting, second.caught_up_at) == ("file", None, 0, second.told_at)
    last = await _follower(engine)
    assert last is not None
    size = place.changes.stat().st_size
    assert last == FollowerStatus("file", f"line 1, byte {size}", 0, last.told_at, last.told_at)
    assert await _accounts(engine) == (_told("a"),)
    await asyncio.sleep(0.3)
    assert await _follower(engine) == last


async def test_what_is_told_while_changes_wait_says_since_when(engine: Engine, tmp_path: Path) -> None:
    place = _place(engine, tmp_path)
    told: list[FollowerStatus] = []

    def look(_: object) -> None:
        editor = engine.sink.edit(place.live.generation)
        operations = editor.operations()
        editor.close()
        assert operations is not None
        assert operations.follower is not None
        told.append(operations.follower)

    def follow() -> None:
        changes = NdjsonCatalogue(place.catalogue).changes()
        options = FollowOptions(once=True, micro_batch=1)
        Following(place.sink, place.states, changes, options, on_batch=look).run(threading.Event())

    for version in (1, 2):
        place.append([_shop(version, "Book"), _upsert(version, "a"), _shop(version, "Vase")])
        follow()
    assert [status.waiting for status in told] == [2, 1, 0, 2, 1, 0]
    caught_up_at = [status.caught_up_at for status in told]
    assert caught_up_at == [None, None, told[2].told_at, told[2].told_at, told[2].told_at, told[5].told_at]
    assert [status.told_at for status in told] == sorted({status.told_at for status in told})


async def test_a_generation_without_the_document_says_nothing_of_it(engine: Engine, tmp_path: Path) -> None:
    stamp = publish(engine.sink, projected([LAMP], tmp_path))
    assert await engine.backend.generations() == Generations(stamp, None, None)


@pytest.mark.rule("G4")
async def test_a_generation_of_another_schema_version_is_told_as_it_is(engine: Engine, tmp_path: Path) -> None:
    documents = projected([LAMP], tmp_path)
    first = publish(engine.sink, documents)
    stamp, writer = sealed(engine.sink, documents, schema_version=999)
    writer.publish()
    assert await engine.backend.generations() == Generations(stamp, first, None)
    with pytest.raises(OtherSchema):
        await engine.backend.refresh()


@pytest.mark.rule("G2")
async def test_a_rollback_tells_the_accounts_of_what_is_live_again_and_what_changed_since(
    engine: Engine, tmp_path: Path
) -> None:
    place = _place(engine, tmp_path, "a", "b")
    first = place.live
    place.rewrite({"shops": [LAMP], "resource_accounts": [_line("c")]})
    second = place.build().stamp
    place.append([_upsert(5, "b", used=5)])
    place.step()
    assert await _accounts(engine) == (_told("b", 5.0), _told("c"))

    status = FollowerStatus("stdin", None, 0, "2031-05-06T07:08:09Z", "2031-05-06T07:08:09Z")
    editor = engine.sink.edit(second.generation)
    editor.write_operations(Operations((), status))
    editor.close()
    done = roll_back(engine.sink, place.states, None)
    assert done.stamp == first
    expected = Operations((_told("a"), _told("b", 5.0)), status)
    assert await engine.backend.generations() == Generations(first, second, expected)


@pytest.mark.rule("G2")
async def test_verification_and_pruning_pass_over_the_document(engine: Engine, tmp_path: Path) -> None:
    place = _place(engine, tmp_path, "a")
    with _following(place, interval=0.05):
        await _until(engine, lambda _: True)
    before = await engine.backend.generations()
    verified = verify_live(engine.sink, place.states, NdjsonCatalogue(place.catalogue), VerifyOptions(repair=True))
    assert (verified.found.total, await engine.backend.generations()) == (0, before)
    assert prune(engine.sink, place.states, datetime.now(UTC) + timedelta(hours=1)) == ()
    assert [(found.name, found.role) for found in engine.sink.generations()] == [(place.live.generation, Role.LIVE)]
    engine.sink.drop(place.live.generation)
    assert engine.sink.generations() == ()


async def test_embedded_a_damaged_document_is_unknown_and_a_damaged_stamp_is_a_failure(
    embedded_engine: Engine, tmp_path: Path
) -> None:
    place = _place(embedded_engine, tmp_path, "a")
    root, first = tmp_path / "index", place.live
    second = place.build().stamp
    operations_path(root, second.generation).write_text('{"accounts": 5', encoding="utf-8")
    assert await embedded_engine.backend.generations() == Generations(second, first, None)
    stamp_path(root, first.generation).write_text(to_stamp_json(replace(first, generation="x")))
    with pytest.raises(BackendUnavailable):
        await embedded_engine.backend.generations()


@pytest.mark.opensearch
async def test_opensearch_a_damaged_document_is_unknown_and_a_damaged_or_lost_stamp_is_a_failure(
    opensearch_engine: Engine, opensearch_place: OpenSearchLocation, tmp_path: Path
) -> None:
    place = _place(opensearch_engine, tmp_path, "a")
    first = place.live
    second = place.build().stamp
    of_first, of_second = (index_name(opensearch_place.prefix, STAMP, one.generation) for one in (first, second))
    with OpenSearch([opensearch_place.url]) as client:
        client.index(index=of_second, id=OPERATIONS_ID, body={"stamp": {"operations": {"accounts": 5}}})
        assert await opensearch_engine.backend.generations() == Generations(second, first, None)
        client.index(index=of_first, id=STAMP_ID, body={"stamp": {"generation": "x"}})
        with pytest.raises(BackendUnavailable, match="damaged"):
            await opensearch_engine.backend.generations()
        client.indices.close(index=of_first)
        with pytest.raises(BackendUnavailable, match="could not be read"):
            await opensearch_engine.backend.generations()


async def test_opensearch_that_is_away_is_a_failure() -> None:
    backend = OpenSearchBackend(["http://127.0.0.1:1"], "nothing")
    with pytest.raises(BackendUnavailable):
        await backend.generations()
    await backend.close()
