"""Which generation is live on each engine, which was before, going back; and what operators can read of it (G2)."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch

from index_mappings.embedded import OPERATIONS_FILE, generation_directory, stamp_path, to_checked_json
from index_mappings.generations import (
    OPERATIONS_ID,
    STAMP,
    STAMP_ID,
    FollowerStatus,
    Operations,
    ResourceAccount,
    Stamp,
    index_name,
    new_generation,
)
from indexer.jobs.build import BuildOptions, prune, remove_unfinished
from indexer.jobs.following import FollowOptions
from indexer.jobs.rollback import roll_back
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Generation, Role, Sink
from indexer.sources.changes import ChangeFile
from indexer.state.state import StateError
from service.search.failures import BackendUnavailable, NothingPublished, OtherSchema
from service.search.protocol import Generations
from service.tools.get_shop_policies import GET_SHOP_POLICIES
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.following.followed import BreakingEditor, CrashedError, CrashPoint, FollowedIndex, crashing_check
from tests.engines.integration.generations import Documents, projected, publish, sealed
from tests.rules.backends.asking import call, find, names
from tests.support.catalogues import coupon, delete, offer, policy, shop, upsert

NOON: Final = datetime(2031, 5, 6, 12, tzinfo=UTC)


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    return projected([shop("Lamp", "lamp.internal", id="lamp")], tmp_path)


def _published(sink: Sink, documents: Documents) -> Stamp:
    before = sink.live()
    stamp, become_live = sealed(sink, documents)
    become_live()
    if before is not None:
        sink.retire(before.generation, NOON)
    return stamp


def _roles(sink: Sink) -> list[tuple[str, Role]]:
    return [(found.name, found.role) for found in sink.generations()]


@pytest.mark.rule("G2", "G1")
async def test_each_generation_is_listed_with_its_role_its_stamp_and_since_when_it_is_not_live(
    engine: Engine, documents: Documents
) -> None:
    assert (engine.sink.generations(), engine.sink.live()) == ((), None)
    retired, previous, live = (_published(engine.sink, documents) for _ in range(3))
    waiting, _ = sealed(engine.sink, documents)
    begun = new_generation(datetime.now(UTC))
    engine.sink.begin(begun)
    assert engine.sink.generations() == (
        Generation(retired.generation, Role.RETIRED, retired, NOON),
        Generation(previous.generation, Role.PREVIOUS, previous, NOON),
        Generation(live.generation, Role.LIVE, live, None),
        Generation(waiting.generation, Role.UNFINISHED, waiting, None),
        Generation(begun, Role.UNFINISHED, None, None, whole=False),
    )
    assert (engine.sink.live(), (await engine.backend.refresh()).stamp) == (live, live)


@pytest.mark.rule("G2", "G1")
async def test_after_a_rollback_the_two_have_changed_their_roles_and_the_live_one_is_retired_no_more(
    engine: Engine, documents: Documents
) -> None:
    first, second = (_published(engine.sink, documents) for _ in range(2))
    engine.sink.publish(first.generation, second.generation)
    assert (engine.sink.live(), (await engine.backend.refresh()).stamp) == (first, first)
    unmarked = Generation(second.generation, Role.PREVIOUS, second, None)
    assert engine.sink.generations() == (Generation(first.generation, Role.LIVE, first, None), unmarked)
    engine.sink.retire(second.generation, NOON)

    third = _published(engine.sink, documents)
    assert engine.sink.generations() == (
        Generation(first.generation, Role.PREVIOUS, first, NOON),
        Generation(second.generation, Role.RETIRED, second, NOON),
        Generation(third.generation, Role.LIVE, third, None),
    )


@pytest.mark.rule("G2")
async def test_a_generation_that_is_dropped_is_gone_and_dropping_it_again_does_nothing(
    engine: Engine, documents: Documents
) -> None:
    live = _published(engine.sink, documents)
    begun, _ = sealed(engine.sink, documents)
    for _ in range(2):
        engine.sink.drop(begun.generation)
        assert _roles(engine.sink) == [(live.generation, Role.LIVE)]
    with pytest.raises(SinkError):
        engine.sink.edit(begun.generation)


@pytest.mark.fast
@pytest.mark.rule("G1.fence")
async def test_a_publisher_whose_predecessor_was_replaced_fails_and_the_winner_stays(
    engine: Engine, documents: Documents
) -> None:
    first = publish(engine.sink, documents)
    overtaken, slow = sealed(engine.sink, documents)
    _, slower = sealed(engine.sink, documents)
    winner, quick = sealed(engine.sink, documents)
    quick()

    with pytest.raises(SinkError, match="could not be published"):
        slow()
    engine.sink.drop(overtaken.generation)
    # By now the predecessor itself may have been removed.
    engine.sink.drop(first.generation)
    with pytest.raises(SinkError, match="could not be published"):
        slower()

    snapshot = await engine.backend.refresh()
    assert (snapshot.stamp, names((await find(snapshot, "lamp")).shops)) == (winner, ["Lamp"])
    assert engine.sink.live() == winner


@pytest.mark.fast
@pytest.mark.rule("G1.fence")
async def test_of_two_first_publishers_the_second_fails(engine: Engine, documents: Documents) -> None:
    _, slow = sealed(engine.sink, documents)
    winner, quick = sealed(engine.sink, documents)
    quick()
    with pytest.raises(SinkError, match="could not be published"):
        slow()
    assert engine.sink.live() == (await engine.backend.refresh()).stamp == winner


class Catalogue(FollowedIndex):
    def __init__(self, folder: Path, sink: Sink) -> None:
        super().__init__(folder, sink, {"shops": []})

    def publish(self, *shops: dict[str, Any], **others: list[dict[str, Any]]) -> Stamp:
        self.rewrite({"shops": shops, **others})
        return self.build().stamp

    def held(self, kind: str) -> list[str]:
        return list(self.scan()[kind])


@pytest.fixture
def catalogue(engine: Engine, tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path, engine.sink)


def _renamed(line: dict[str, Any], name: str) -> dict[str, Any]:
    return {**line, "name": name}


LAMP, BOOK, TEAPOT = (shop(name, id=name.lower()) for name in ("Lamp", "Book", "Teapot"))


@pytest.mark.rule("G2")
async def test_a_rollback_brings_back_what_a_bad_build_lost_and_keeps_the_bad_one_for_another(
    engine: Engine, catalogue: Catalogue
) -> None:
    good = catalogue.publish(LAMP, BOOK, coupons=[coupon("SAVE", "book")])
    bad = catalogue.publish(_renamed(LAMP, "Broken"), coupons=[])
    done = roll_back(engine.sink, catalogue.states, None)
    assert (done.stamp.generation, done.replaced, dict(done.stamp.counts)) == (
        good.generation,
        bad.generation,
        {"shops": 2, "categories": 1, "coupons": 1, "offers": 0, "facts": 2},
    )
    snapshot = await engine.backend.refresh()
    assert snapshot.stamp == done.stamp == engine.sink.live()
    assert names((await find(snapshot, "")).shops) == ["Book", "Lamp"]
    assert {found.name: found.role for found in engine.sink.generations()} == {
        good.generation: Role.LIVE,
        bad.generation: Role.PREVIOUS,
    }
    assert roll_back(engine.sink, catalogue.states, None).stamp.generation == bad.generation
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Broken"]


@pytest.mark.rule("F12", "F10", "G2", "G3")
async def test_a_policy_of_one_country_comes_back_with_a_rollback_and_follows_its_own_changes(
    engine: Engine, catalogue: Catalogue
) -> None:
    async def days(country: str) -> int | None:
        async with asyncio.timeout(10):
            # The former stamp is answered from until the typeahead of the new one is open.
            while (snapshot := await engine.backend.refresh()).stamp != engine.sink.live():
                await asyncio.sleep(0.05)
        answer = await call(snapshot, GET_SHOP_POLICIES, shop_domain="lamp", country=country)
        returns: dict[str, int] | None = answer["returns"]
        return None if returns is None else returns["days"]

    anywhere, in_austria = policy("lamp", "returns", days=30), policy("lamp", "returns", "AT", days=14)
    catalogue.publish(LAMP, policies=[anywhere, in_austria])
    catalogue.publish(LAMP, policies=[anywhere])
    assert (await days("AT"), await days("DE")) == (30, 30)
    roll_back(engine.sink, catalogue.states, None)
    assert (await days("AT"), await days("DE")) == (14, 30)
    catalogue.append([upsert("policies", {**in_austria, "days": 21}, 7), delete("policies", "lamp/returns", 7)])
    assert catalogue.drain().applied == 2
    assert (await days("AT"), await days("DE")) == (21, None)
    catalogue.append([upsert("policies", {**anywhere, "days": 60}, 6), delete("policies", "lamp/returns/AT", 8)])
    assert (catalogue.drain().applied, await days("AT")) == (1, None)


@pytest.mark.rule("G2", "V1")
async def test_a_shop_that_the_later_catalogue_hides_does_not_come_back(engine: Engine, catalogue: Catalogue) -> None:
    others = {
        "coupons": [coupon("SAVE", "book", id="c1"), coupon("LESS", "lamp", id="c2")],
        "offers": [offer("o1", "book")],
    }
    catalogue.publish(LAMP, BOOK, **others)
    catalogue.publish({**BOOK, "visibility": "under_review"}, TEAPOT, **others)
    done = roll_back(engine.sink, catalogue.states, None)
    assert dict(done.stamp.counts) == {"shops": 1, "categories": 1, "coupons": 1, "offers": 0, "facts": 1}
    assert [catalogue.held(kind) for kind in ("shops", "facts", "coupons", "offers")] == [
        ["lamp"],
        ["lamp"],
        ["c2"],
        [],
    ]
    snapshot = await engine.backend.refresh()
    assert (await snapshot.shop("book"), await snapshot.offer("o1")) == (None, None)


@pytest.mark.rule("G2", "V1")
@pytest.mark.parametrize(
    ("hidden", "options"),
    [
        ({"updated_at": "2031-05-06T07:08:09Z"}, BuildOptions(most_shrink=1.0)),
        ({"version": 3}, BuildOptions(most_shrink=1.0, fresh_state=True)),
    ],
    ids=["times instead of versions", "fresh state"],
)
def test_a_shop_that_the_later_catalogue_hides_by_an_older_version_does_not_come_back(
    engine: Engine, catalogue: Catalogue, hidden: dict[str, Any], options: BuildOptions
) -> None:
    catalogue.publish(LAMP, {**BOOK, "version": 7})
    catalogue.rewrite({"shops": [LAMP, {**BOOK, **hidden, "visibility": "under_review"}]})
    catalogue.build(options)
    assert roll_back(engine.sink, catalogue.states, None, dry_run=True).stamp.counts["shops"] == 1
    assert roll_back(engine.sink, catalogue.states, None).carried_over == 1
    assert catalogue.held("shops") == ["lamp"]


@pytest.mark.rule("G2", "G3")
def test_a_deletion_of_the_same_version_is_taken_from_the_state_that_was_left(
    engine: Engine, catalogue: Catalogue
) -> None:
    for _ in range(2):
        catalogue.publish(LAMP, coupons=[coupon("SAVE", "lamp", id="c1", version=7)])
    catalogue.append([delete("coupons", "c1", 7)])
    catalogue.drain()
    assert roll_back(engine.sink, catalogue.states, None).carried_over == 1
    assert catalogue.held("coupons") == []


@pytest.mark.rule("G2", "G3", "V1")
async def test_changes_since_are_in_the_generation_before_it_is_shown_again(
    engine: Engine, catalogue: Catalogue
) -> None:
    catalogue.publish(LAMP, BOOK)
    catalogue.publish(LAMP, BOOK, TEAPOT)
    # Of these the follower took the first two only; the rollback reads the third by itself.
    catalogue.append([upsert("shops", {**BOOK, "visibility": "under_review"}, 7)])
    catalogue.append([upsert("shops", _renamed(LAMP, "Lantern"), 8)])
    assert catalogue.drain().applied == 2
    catalogue.append([upsert("shops", shop("Vase", id="vase"), 9)])
    done = roll_back(engine.sink, catalogue.states, ChangeFile(catalogue.changes))
    assert (done.changes.applied, catalogue.held("shops")) == (3, ["lamp", "vase"])
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Lantern", "Vase"]
    # Following goes on where it is now, and the deleted version stays deleted.
    catalogue.append([upsert("shops", BOOK, 6)])
    catalogue.append([delete("shops", "vase", 10)])
    assert (catalogue.drain().applied, catalogue.held("shops")) == (1, ["lamp"])


@pytest.mark.rule("G2", "G3", "V1")
def test_changes_of_a_stream_that_cannot_be_read_again_are_taken_from_the_state_that_was_left(
    engine: Engine, catalogue: Catalogue
) -> None:
    catalogue.publish(LAMP, BOOK, coupons=[coupon("SAVE", "lamp", id="c1"), coupon("LESS", "lamp", id="c2")])
    catalogue.publish(LAMP, BOOK, coupons=[coupon("SAVE", "lamp", id="c1"), coupon("LESS", "lamp", id="c2")])
    catalogue.append([delete("shops", "book", 7)])
    catalogue.append([delete("coupons", "c1", 7)])
    catalogue.append([upsert("shops", TEAPOT, 7)])
    catalogue.drain()
    done = roll_back(engine.sink, catalogue.states, None)
    assert (done.carried_over, catalogue.held("shops"), catalogue.held("coupons")) == (3, ["lamp", "teapot"], ["c2"])


@pytest.mark.rule("G2", "V1")
def test_without_the_state_of_either_generation_nothing_is_rolled_back(engine: Engine, catalogue: Catalogue) -> None:
    first = catalogue.publish(LAMP, BOOK)
    second = catalogue.publish(LAMP)
    for lost in (first, second):
        path = catalogue.states.path(lost.generation)
        shutil.copy(path, copied := path.with_suffix(".kept"))
        path.unlink()
        with pytest.raises(StateError, match=r"lost .*build again"):
            roll_back(engine.sink, catalogue.states, None)
        assert engine.sink.live() == second
        shutil.move(copied, path)


@pytest.mark.rule("G2")
def test_without_a_previous_generation_there_is_nothing_to_go_back_to(engine: Engine, catalogue: Catalogue) -> None:
    for _ in range(2):
        with pytest.raises(SinkError, match="there is no previous generation to roll back to"):
            roll_back(engine.sink, catalogue.states, None)
        catalogue.publish(LAMP)
    catalogue.publish(LAMP)
    later = datetime.now(UTC) + timedelta(seconds=61)
    assert len(prune(engine.sink, catalogue.states, later, keep_previous=False)) == 2
    with pytest.raises(SinkError, match="there is no previous generation to roll back to"):
        roll_back(engine.sink, catalogue.states, None)


@pytest.mark.rule("G2")
@pytest.mark.parametrize("damage", ["offers", "committed", "spoiled"])
def test_a_previous_generation_that_is_damaged_is_not_published(
    embedded_engine: Engine, tmp_path: Path, damage: str
) -> None:
    catalogue = Catalogue(tmp_path, embedded_engine.sink)
    before, live = catalogue.publish(LAMP, BOOK), catalogue.publish(LAMP)
    folder = generation_directory(tmp_path / "index", before.generation)
    if damage == "spoiled":
        path = max(folder.glob("committed/shops-*/*.store"))
        path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    else:
        shutil.rmtree(folder / damage)
    for dry_run in (True, False):
        with pytest.raises(SinkError, match=r"the previous generation .*: build again"):
            roll_back(embedded_engine.sink, catalogue.states, None, dry_run=dry_run)
    assert embedded_engine.sink.live() == live


async def _after_a_loss(engine: Engine, catalogue: Catalogue, lose: Callable[[Stamp], object]) -> None:
    """Assert that a build repairs a lost live generation, and that the one before can be gone back to."""
    good = catalogue.publish(LAMP, BOOK)
    lost = catalogue.publish(LAMP)
    engine.sink.retire(good.generation, datetime.now(UTC) - timedelta(days=1))
    lose(lost)
    mended = catalogue.publish(LAMP, TEAPOT)
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Lamp", "Teapot"]
    roles = {found.name: found.role for found in engine.sink.generations()}
    assert (roles[good.generation], roles[mended.generation]) == (Role.PREVIOUS, Role.LIVE)
    later = datetime.now(UTC) + timedelta(days=1)
    remove_unfinished(engine.sink, catalogue.states, later)
    prune(engine.sink, catalogue.states, later)
    assert {found.name: found.role for found in engine.sink.generations()} == {
        good.generation: Role.PREVIOUS,
        mended.generation: Role.LIVE,
    }
    assert roll_back(engine.sink, catalogue.states, None).stamp.generation == good.generation
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Book", "Lamp"]


@pytest.mark.opensearch
@pytest.mark.rule("G2")
@pytest.mark.parametrize("kinds", [("*",), ("stamp",), ("offers", "typeahead")], ids="-".join)
async def test_after_indices_of_the_live_generation_were_lost_a_build_leaves_a_generation_to_go_back_to(
    opensearch_engine: Engine,
    opensearch_location: OpenSearchLocation,
    client: OpenSearch,
    tmp_path: Path,
    kinds: tuple[str, ...],
) -> None:
    def lose(live: Stamp) -> None:
        for kind in kinds:
            for name in client.indices.get(index=f"{opensearch_location.prefix}-{kind}-{live.generation}"):
                client.indices.delete(index=name)

    await _after_a_loss(opensearch_engine, Catalogue(tmp_path, opensearch_engine.sink), lose)


@pytest.mark.rule("G2")
@pytest.mark.parametrize("lost", ["", "stamp.json", "offers", "committed"])
async def test_after_files_of_the_live_generation_were_lost_a_build_leaves_a_generation_to_go_back_to(
    embedded_engine: Engine, tmp_path: Path, lost: str
) -> None:
    def lose(live: Stamp) -> None:
        path = generation_directory(tmp_path / "index", live.generation) / lost
        path.unlink() if path.is_file() else shutil.rmtree(path)

    await _after_a_loss(embedded_engine, Catalogue(tmp_path, embedded_engine.sink), lose)


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
    (generation_directory(root, second.generation) / OPERATIONS_FILE).write_text('{"accounts": 5', encoding="utf-8")
    assert await embedded_engine.backend.generations() == Generations(second, first, None)
    stamp_path(root, first.generation).write_text(to_checked_json(replace(first, generation="x").as_wire()))
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
