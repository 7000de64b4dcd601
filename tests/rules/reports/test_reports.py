"""One body on both stores: what is appended once, what is not, and what is stored for good."""

import asyncio
from datetime import timedelta

import pytest

from service.reports.protocol import Recheck
from tests.rules.reports.stores import REPORTED_AT, Store, exported, report


@pytest.mark.rule("I36")
async def test_a_report_is_appended_and_queues_one_recheck(store: Store) -> None:
    queue = store.open()
    assert await queue.append(report()) is True
    (recheck,) = (await queue.waiting(10)).rechecks
    assert recheck == Recheck(recheck.id, report(), deliveries=0, claimed_by=None, idle_seconds=None)
    assert (await exported(queue), await queue.depth()) == ([report()], 1)


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
    assert (await exported(queue), await queue.depth()) == ([report()], 1)


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
    assert (await exported(queue), await queue.depth()) == ([report(), report()], 2)


@pytest.mark.rule("Q5")
async def test_the_mark_outlives_the_recheck(store: Store) -> None:
    queue = store.open()
    await queue.append(report())
    (recheck,) = await queue.claim("w1", 1, 60)
    await queue.acknowledge("w1", [recheck.id])
    assert (await queue.append(report()), await queue.depth()) == (False, 0)


@pytest.mark.rule("Q5", "I37")
async def test_of_200_concurrent_appends_of_50_reports_exactly_50_are_appended(store: Store) -> None:
    queues = [store.open() for _ in range(3)]
    given = [report(f"s{number % 50}") for number in range(200)]
    appended = await asyncio.gather(*(queues[index % 3].append(one) for index, one in enumerate(given)))
    stored = await exported(queues[0])
    assert (appended.count(True), appended.count(False), len(stored)) == (50, 150, 50)
    assert {one.shop_id for one in stored} == {f"s{number}" for number in range(50)}
    assert await queues[0].depth() == 50


@pytest.mark.rule("I36")
async def test_all_reports_are_exported_in_their_order_over_several_pages(store: Store) -> None:
    queue = store.open()
    given = [report(f"s{number}") for number in range(1100)]
    for one in given:
        await queue.append(one)
    assert await exported(queue) == given


async def test_an_empty_store_exports_nothing(store: Store) -> None:
    queue = store.open()
    assert (await exported(queue), await queue.depth()) == ([], 0)


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
