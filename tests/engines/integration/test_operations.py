"""The operations document on the real engines: the indexer writes it, the service reads it, nothing else minds it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from index_mappings.embedded import operations_path, stamp_path, to_stamp_json
from index_mappings.generations import (
    OPERATIONS_ID,
    STAMP,
    STAMP_ID,
    FollowerStatus,
    Operations,
    ResourceAccount,
    index_name,
)
from indexer.jobs.following import FollowOptions
from indexer.jobs.retention import prune
from indexer.jobs.rollback import roll_back
from service.search.failures import BackendUnavailable, NothingPublished, OtherSchema
from service.search.protocol import Generations
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.following.followed import BreakingEditor, CrashedError, CrashPoint, FollowedIndex, crashing_check
from tests.engines.integration.generations import projected, publish, sealed
from tests.support.catalogues import delete, shop, upsert

LAMP = shop("Lamp", id="lamp")
BOUND_S = 20.0


def _line(account: str, **fields: object) -> dict[str, object]:
    return {"provider": "P", "account": account, **fields}


def _upsert(version: int, account: str, **fields: object) -> dict[str, object]:
    return upsert("resource_accounts", _line(account, **fields), version)


def _shop(version: int, name: str) -> dict[str, object]:
    return upsert("shops", shop(name, id=name.lower()), version)


def _account(account: str, used: float | None = None) -> ResourceAccount:
    return ResourceAccount("P", account, None, used, None, None, None, None)


def _followed(engine: Engine, folder: Path, *accounts: str) -> FollowedIndex:
    followed = FollowedIndex(
        folder, engine.sink, {"shops": [LAMP], "resource_accounts": [_line(one) for one in accounts]}
    )
    followed.build()
    return followed


async def _accounts(engine: Engine) -> tuple[ResourceAccount, ...] | None:
    operations = (await engine.backend.generations()).operations
    return None if operations is None else operations.accounts


async def _follower(engine: Engine) -> FollowerStatus | None:
    operations = (await engine.backend.generations()).operations
    assert operations is not None
    return operations.follower


async def test_a_build_reports_accounts_and_the_existing_generations(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(NothingPublished):
        await engine.backend.generations()
    followed = _followed(engine, tmp_path, "b", "a")
    first = followed.live
    operations = Operations((_account("a"), _account("b")), None)
    assert await engine.backend.generations() == Generations(first, None, operations)

    followed.rewrite({"shops": [LAMP], "resource_accounts": [_line("c", used=2)]})
    second = followed.build().stamp
    assert await engine.backend.generations() == Generations(second, first, Operations((_account("c", 2.0),), None))

    prune(engine.sink, followed.states, datetime.now(UTC) + timedelta(hours=1), keep_previous=False)
    assert await engine.backend.generations() == Generations(second, None, Operations((_account("c", 2.0),), None))


@pytest.mark.rule("G3", "C1")
async def test_changed_accounts_are_reported_immediately_and_the_stamp_stays_the_same(
    engine: Engine, tmp_path: Path
) -> None:
    followed = _followed(engine, tmp_path, "a", "b")
    before = followed.live
    followed.append([_upsert(2, "b", used=5), _upsert(2, "c"), delete("resource_accounts", "P/a", 2)])
    assert (followed.step().applied, followed.live) == (3, before)
    assert await engine.backend.generations() == Generations(
        before, None, Operations((_account("b", 5.0), _account("c")), None)
    )
    followed.append([_upsert(1, "b", used=1)])
    assert (followed.step().older, await _accounts(engine)) == (1, (_account("b", 5.0), _account("c")))


class _Forgetful(BreakingEditor):
    """A real editor whose process ends as soon as the accounts are written, before that is noted anywhere."""

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        super().write_operations(operations, wait_for_engine=wait_for_engine)
        raise CrashedError


@pytest.mark.rule("G3")
async def test_accounts_that_a_killed_follower_took_are_reported_by_the_next_one(
    engine: Engine, tmp_path: Path
) -> None:
    followed = _followed(engine, tmp_path, "a")
    followed.append([_upsert(2, "b")])
    with pytest.raises(CrashedError), followed.follower(check=crashing_check(CrashPoint.TAKEN)) as follower:
        follower.step()
    assert await _accounts(engine) == (_account("a"),)
    assert (followed.step().applied, await _accounts(engine)) == (0, (_account("a"), _account("b")))

    followed.append([_upsert(3, "b", used=9), _shop(3, "Book")])
    with pytest.raises(CrashedError), followed.follower(_Forgetful) as follower:
        follower.step()
    with followed.states.open(followed.live.generation) as state:
        assert state.pending.count() > 1
    done = followed.step()
    assert (done.applied, done.updates, await _accounts(engine)) == (0, 1, (_account("a"), _account("b", 9.0)))


async def _until(engine: Engine, what: Callable[[FollowerStatus], bool]) -> FollowerStatus:
    async with asyncio.timeout(BOUND_S):
        while (status := await _follower(engine)) is None or not what(status):
            await asyncio.sleep(0.02)
    return status


async def test_a_follower_reports_its_status_while_it_is_idle_and_the_last_status_stays(
    engine: Engine, tmp_path: Path
) -> None:
    followed = _followed(engine, tmp_path, "a")
    assert await _follower(engine) is None
    with followed.following(FollowOptions(interval=0.05, status_interval=0.1)):
        first = await _until(engine, lambda _: True)
        second = await _until(engine, lambda status: status.told_at > first.told_at)
        followed.append([_shop(2, "Book")])
        third = await _until(engine, lambda status: status.position is not None)
        await _until(engine, lambda status: status.told_at > third.told_at)
    assert (second.source, second.position, second.waiting, second.caught_up_at) == ("file", None, 0, second.told_at)
    last = await _follower(engine)
    assert last is not None
    size = followed.changes.stat().st_size
    assert last == FollowerStatus("file", f"line 1, byte {size}", 0, last.told_at, last.told_at)
    assert await _accounts(engine) == (_account("a"),)
    await asyncio.sleep(0.3)
    assert await _follower(engine) == last


async def test_a_generation_without_the_operations_document_reports_none(engine: Engine, tmp_path: Path) -> None:
    stamp = publish(engine.sink, projected([LAMP], tmp_path))
    assert await engine.backend.generations() == Generations(stamp, None, None)


@pytest.mark.rule("G4")
async def test_a_generation_of_another_schema_version_is_reported_as_it_is(engine: Engine, tmp_path: Path) -> None:
    documents = projected([LAMP], tmp_path)
    first = publish(engine.sink, documents)
    stamp, become_live = sealed(engine.sink, documents, schema_version=999)
    become_live()
    assert await engine.backend.generations() == Generations(stamp, first, None)
    with pytest.raises(OtherSchema):
        await engine.backend.refresh()


@pytest.mark.rule("G2")
async def test_a_rollback_reports_the_accounts_of_the_restored_generation_and_later_changes(
    engine: Engine, tmp_path: Path
) -> None:
    followed = _followed(engine, tmp_path, "a", "b")
    first = followed.live
    followed.rewrite({"shops": [LAMP], "resource_accounts": [_line("c")]})
    second = followed.build().stamp
    followed.append([_upsert(5, "b", used=5)])
    followed.step()
    assert await _accounts(engine) == (_account("b", 5.0), _account("c"))

    status = FollowerStatus("stdin", None, 0, "2031-05-06T07:08:09Z", "2031-05-06T07:08:09Z")
    editor = engine.sink.edit(second.generation)
    editor.write_operations(Operations((), status))
    editor.close()
    done = roll_back(engine.sink, followed.states, None)
    assert done.stamp == first
    expected = Operations((_account("a"), _account("b", 5.0)), status)
    assert await engine.backend.generations() == Generations(first, second, expected)


async def test_embedded_a_damaged_document_is_unknown_and_a_damaged_stamp_is_a_failure(
    embedded_engine: Engine, tmp_path: Path
) -> None:
    followed = _followed(embedded_engine, tmp_path, "a")
    root, first = tmp_path / "index", followed.live
    second = followed.build().stamp
    operations_path(root, second.generation).write_text('{"accounts": 5', encoding="utf-8")
    assert await embedded_engine.backend.generations() == Generations(second, first, None)
    stamp_path(root, first.generation).write_text(to_stamp_json(replace(first, generation="x")))
    with pytest.raises(BackendUnavailable):
        await embedded_engine.backend.generations()


@pytest.mark.opensearch
async def test_opensearch_a_damaged_document_is_unknown_and_a_damaged_or_lost_stamp_is_a_failure(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, tmp_path: Path
) -> None:
    followed = _followed(opensearch_engine, tmp_path, "a")
    first = followed.live
    second = followed.build().stamp
    of_first, of_second = (index_name(opensearch_location.prefix, STAMP, one.generation) for one in (first, second))
    with OpenSearch([opensearch_location.url]) as client:
        client.index(index=of_second, id=OPERATIONS_ID, body={"stamp": {"operations": {"accounts": 5}}})
        assert await opensearch_engine.backend.generations() == Generations(second, first, None)
        client.index(index=of_first, id=STAMP_ID, body={"stamp": {"generation": "x"}})
        with pytest.raises(BackendUnavailable, match="damaged"):
            await opensearch_engine.backend.generations()
        client.indices.close(index=of_first)
        with pytest.raises(BackendUnavailable, match="could not be read"):
            await opensearch_engine.backend.generations()
