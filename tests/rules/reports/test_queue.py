"""One body on both stores: what is appended once; who gets which re-check, and when it is given up."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from service.reports.protocol import Recheck, Waiting, Worker
from tests.rules.reports.stores import REPORTED_AT, Store, exported, report

EMPTY = Waiting(depth=0, lag=0, pending=0, dead=0, workers=(), rechecks=(), dead_letters=())


def timeless(waiting: Waiting) -> Waiting:
    """The same with every idle time that there is set to 0."""
    return replace(
        waiting,
        workers=tuple(replace(worker, idle_seconds=0.0) for worker in waiting.workers),
        rechecks=tuple(replace(one, idle_seconds=one.idle_seconds and 0.0) for one in waiting.rechecks),
    )


async def test_rechecks_are_claimed_in_order_and_each_by_one_worker(store: Store) -> None:
    queue, other = store.open(), store.open()
    for number in range(5):
        await queue.append(report(f"s{number}"))
    first = await queue.claim("w1", 3, 60)
    second = await other.claim("w2", 3, 60)
    assert [(one.report.shop_id, one.deliveries, one.claimed_by, one.idle_seconds) for one in first + second] == [
        ("s0", 1, "w1", 0.0),
        ("s1", 1, "w1", 0.0),
        ("s2", 1, "w1", 0.0),
        ("s3", 1, "w2", 0.0),
        ("s4", 1, "w2", 0.0),
    ]
    assert await queue.claim("w3", 3, 60) == ()


async def test_workers_that_claim_at_the_same_time_share_nothing(store: Store) -> None:
    queues = [store.open() for _ in range(4)]
    for number in range(40):
        await queues[0].append(report(f"s{number}"))
    claims = await asyncio.gather(*(queues[turn % 4].claim(f"w{turn}", 4, 60) for turn in range(12)))
    ids = [one.id for claim in claims for one in claim]
    assert (len(ids), len(set(ids))) == (40, 40)


async def test_a_claim_without_reports_is_empty_and_the_next_report_is_not_missed(store: Store) -> None:
    queue = store.open()
    assert await queue.claim("w1", 10, 60) == ()
    await queue.append(report())
    assert [one.report for one in await queue.claim("w1", 10, 60)] == [report()]


async def test_an_acknowledged_recheck_is_off_the_queue_and_its_report_stays(store: Store) -> None:
    queue = store.open()
    await queue.append(report("s1"))
    await queue.append(report("s2"))
    first, second = await queue.claim("w1", 2, 60)
    assert await queue.acknowledge("w1", [first.id]) == (first.id,)
    assert [one.id for one in (await queue.waiting(10)).rechecks] == [second.id]
    assert ((await queue.waiting(1)).depth, await exported(queue)) == (1, [report("s1"), report("s2")])


@pytest.mark.parametrize("unknown", ["", "x", "-", "+", "0-0", "0", "999999", "1-1-1", "9" * 30, "٣"])
async def test_only_what_the_worker_holds_can_be_acknowledged(store: Store, unknown: str) -> None:
    queue = store.open()
    await queue.append(report("s1"))
    await queue.append(report("s2"))
    (held,) = await queue.claim("w1", 1, 60)
    new = (await queue.waiting(2)).rechecks[1]
    assert await queue.acknowledge("w2", [held.id]) == ()
    assert await queue.acknowledge("w1", [unknown, new.id]) == ()
    assert (await queue.waiting(1)).depth == 2
    assert await queue.acknowledge("w1", [unknown, held.id, held.id]) == (held.id,)
    assert (await queue.waiting(1)).depth == 1


async def test_what_a_worker_left_lying_goes_to_the_next_and_the_late_one_cannot_acknowledge_it(store: Store) -> None:
    queue = store.open()
    await queue.append(report("s1"))
    (left,) = await queue.claim("w1", 1, 0.3)
    assert await queue.claim("w2", 5, 60) == ()
    await store.elapse(0.4)
    await queue.append(report("s2"))
    taken = await queue.claim("w2", 5, 0.3)
    assert [(one.report.shop_id, one.deliveries, one.claimed_by) for one in taken] == [("s2", 1, "w2"), ("s1", 2, "w2")]
    assert await queue.acknowledge("w1", [left.id]) == ()
    assert await queue.acknowledge("w2", [one.id for one in taken]) == tuple(one.id for one in taken)
    assert timeless(await queue.waiting(10)) == EMPTY


async def test_a_recheck_delivered_too_often_becomes_a_dead_letter_that_is_listed(store: Store) -> None:
    queue = store.open(max_deliveries=2)
    await queue.append(report("s1"))
    (first,) = await queue.claim("w1", 1, 0.1)
    for worker, deliveries in (("w2", [2]), ("w3", []), ("w4", [])):
        await store.elapse(0.2)
        assert [one.deliveries for one in await queue.claim(worker, 5, 0.1)] == deliveries
    dead = Recheck(first.id, report("s1"), deliveries=2, claimed_by="w2", idle_seconds=None)
    assert timeless(await queue.waiting(10)) == replace(EMPTY, dead=1, dead_letters=(dead,))
    assert ((await queue.waiting(1)).depth, await exported(queue)) == (0, [report("s1")])
    assert await queue.acknowledge("w2", [first.id]) == ()


async def test_waiting_shows_what_is_new_what_is_held_and_by_whom(store: Store) -> None:
    queue = store.open()
    assert await queue.waiting(10) == EMPTY
    for number in range(4):
        await queue.append(report(f"s{number}"))
    (first,) = await queue.claim("w2", 1, 60)
    (second,) = await queue.claim("w1", 1, 60)
    waiting = await queue.waiting(3)
    third = waiting.rechecks[2]
    assert timeless(waiting) == Waiting(
        depth=4,
        lag=2,
        pending=2,
        dead=0,
        workers=(Worker("w1", 1, 0.0), Worker("w2", 1, 0.0)),
        rechecks=(first, second, Recheck(third.id, report("s2"), 0, None, None)),
        dead_letters=(),
    )


async def test_waiting_shows_for_how_long_an_entry_has_been_held(store: Store) -> None:
    queue = store.open()
    await queue.append(report())
    await queue.claim("w1", 1, 60)
    await store.elapse(0.3)
    waiting = await queue.waiting(1)
    idle = [waiting.workers[0].idle_seconds, waiting.rechecks[0].idle_seconds or 0.0]
    assert [0.25 < seconds < 10 for seconds in idle] == [True, True]


@pytest.mark.rule("I36")
async def test_a_report_comes_back_as_it_was_given(store: Store) -> None:
    queue = store.open()
    given = [
        report("Shop_1-x", code="A.b_c+d*%!#&$/@-", reported_at=REPORTED_AT),
        report("s2", kind="shop", reason="no_longer_exists", reported_at=REPORTED_AT + timedelta(microseconds=1)),
        report("s3", kind="fact", reason="evidence_broken", reported_at=REPORTED_AT.replace(microsecond=0)),
    ]
    assert [await queue.append(one) for one in given] == [True, True, True]
    assert await exported(queue) == given


@pytest.mark.rule("Q5", "I37")
async def test_the_same_report_again_appends_and_queues_nothing(store: Store) -> None:
    queue = store.open()
    later = report(reported_at=REPORTED_AT + timedelta(hours=1))
    assert [await queue.append(one) for one in (report(), report(), later)] == [True, False, False]
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report()], 1)


@pytest.mark.rule("Q5")
@pytest.mark.parametrize(
    ("first", "second"), [("save10", "SAVE10"), ("Save10", "sAVE10"), ("Straße-Ä", "STRASSE-ä"), ("ΐ", "\u1fd3")]
)
async def test_a_code_in_another_case_is_the_same_code(store: Store, first: str, second: str) -> None:
    queue = store.open()
    assert [await queue.append(report(code=code)) for code in (first, second)] == [True, False]
    assert await exported(queue) == [report(code=first)]


@pytest.mark.rule("Q5")
async def test_reports_that_differ_in_one_part_are_different(store: Store) -> None:
    queue = store.open()
    different = [
        report(),
        report(source="token-b"),
        report("s2"),
        report("S1"),
        report(code="SAVE20"),
        report(reason="mismatch"),
        report(kind="shop", reason="unreachable"),
        report(kind="fact", reason="unreachable"),
        # Joined without borders these two would be one.
        report("s1", source="token-as"),
        report("ss1"),
    ]
    assert [await queue.append(one) for one in different] == [True] * len(different)
    assert await exported(queue) == different


@pytest.mark.rule("Q5")
async def test_the_same_report_is_new_again_after_the_window(store: Store) -> None:
    queue = store.open(window_seconds=0.5)
    assert [await queue.append(report()) for _ in range(2)] == [True, False]
    await store.elapse(0.6)
    assert [await queue.append(report()) for _ in range(2)] == [True, False]
    assert (await exported(queue), (await queue.waiting(1)).depth) == ([report(), report()], 2)


@pytest.mark.rule("Q5")
async def test_the_mark_outlives_the_recheck(store: Store) -> None:
    queue = store.open()
    await queue.append(report())
    (recheck,) = await queue.claim("w1", 1, 60)
    await queue.acknowledge("w1", [recheck.id])
    assert (await queue.append(report()), (await queue.waiting(1)).depth) == (False, 0)


@pytest.mark.rule("Q5", "I37")
async def test_of_200_concurrent_appends_of_50_reports_exactly_50_are_appended(store: Store) -> None:
    queues = [store.open() for _ in range(3)]
    given = [report(f"s{number % 50}") for number in range(200)]
    appended = await asyncio.gather(*(queues[index % 3].append(one) for index, one in enumerate(given)))
    stored = await exported(queues[0])
    assert (appended.count(True), appended.count(False), len(stored)) == (50, 150, 50)
    assert {one.shop_id for one in stored} == {f"s{number}" for number in range(50)}
    assert (await queues[0].waiting(1)).depth == 50


@pytest.mark.rule("I36")
async def test_all_reports_are_exported_in_their_order_over_several_pages(store: Store) -> None:
    queue = store.open()
    given = [report(f"s{number}") for number in range(1100)]
    for one in given:
        await queue.append(one)
    assert await exported(queue) == given


@pytest.mark.rule("Q5")
async def test_all_is_there_for_a_queue_that_is_opened_later(store: Store) -> None:
    first = store.open()
    await first.append(report())
    (held,) = await first.claim("w1", 1, 60)
    later = store.open()
    assert (await later.append(report()), await exported(later)) == (False, [report()])
    assert await later.acknowledge("w1", [held.id]) == (held.id,)


async def test_a_report_without_a_time_zone_is_refused(store: Store) -> None:
    queue = store.open()
    with pytest.raises(ValueError, match="zone"):
        await queue.append(report(reported_at=REPORTED_AT.replace(tzinfo=None)))
    assert await exported(queue) == []
