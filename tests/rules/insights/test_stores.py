"""What a store of the counts of queries shows, of all workers together, and what it forgets."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from redis.asyncio import Redis

from service.insights import protocol, redis, sqlite
from service.insights.protocol import InsightsUnavailable, QueryCount, Tally, first_of, mark_of
from service.insights.redis import RedisInsights
from service.insights.sqlite import SqliteInsights
from service.redis.access import RedisAccess
from tests.rules.insights.conftest import Opener

NOW: Final = datetime.now(UTC)
TODAY: Final = f"{NOW:%Y-%m-%d}"


def day(ago: int) -> str:
    return (NOW - timedelta(days=ago)).date().isoformat()


def tally(key: bytes, query: str, groups: Sequence[int], asked: int = 1, not_found: int = 0) -> Tally:
    return Tally(query, mark_of(key, query), asked, not_found, tuple(mark_of(key, f"192.0.2.{one}") for one in groups))


async def test_a_query_is_shown_when_five_groups_of_all_workers_asked_it(opener: Opener) -> None:
    one, other = opener(), opener()
    key = await one.key_of(TODAY)
    assert key == await other.key_of(TODAY)
    assert len(key) == 32
    await one.add(
        TODAY, [tally(key, "nike", [1, 2], asked=20, not_found=3), tally(key, "secret", [1, 2, 3, 4], asked=99)]
    )
    await other.add(TODAY, [tally(key, "nike", [2, 3, 4], asked=5)])
    assert await one.counts(TODAY) == ()
    await other.add(TODAY, [tally(key, "nike", [4, 5]), tally(key, "secret", [4])])
    assert await one.counts(TODAY) == (QueryCount("nike", 26, 3),)


async def test_counts_of_days_are_summed_from_a_day_on_and_the_groups_of_each_day_count_alone(opener: Opener) -> None:
    store = opener()
    for ago, groups in ((2, range(5)), (1, range(5)), (0, range(4))):
        key = await store.key_of(day(ago))
        await store.add(day(ago), [tally(key, "nike", groups, asked=10), tally(key, "asics", range(5), not_found=ago)])
    assert await store.counts(day(2)) == (QueryCount("nike", 20, 0), QueryCount("asics", 3, 3))
    assert await store.counts(day(0)) == (QueryCount("asics", 1, 0),)


async def test_everything_is_erased(opener: Opener) -> None:
    store = opener()
    key = await store.key_of(TODAY)
    await store.add(TODAY, [tally(key, "nike", range(5))])
    await store.erase()
    assert await store.counts(day(30)) == ()
    # Tallies of a key that is gone are dropped.
    await store.add(TODAY, [tally(key, "nike", range(5))])
    assert await store.counts(day(30)) == ()
    assert await store.key_of(TODAY) != key


async def test_the_most_asked_queries_of_a_day_are_kept(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sqlite, redis):
        monkeypatch.setattr(module, "MOST_QUERIES", 2)
    store = opener()
    key = await store.key_of(TODAY)
    for number, query in enumerate(("one", "two", "three", "four"), 1):
        await store.add(TODAY, [tally(key, query, range(5), asked=number)])
    assert [one.query for one in await store.counts(TODAY)] == ["four", "three"]


async def test_more_tallies_than_a_script_takes_are_added(opener: Opener) -> None:
    store = opener()
    key = await store.key_of(TODAY)
    await store.add(TODAY, [tally(key, f"query {number}", range(5)) for number in range(450)])
    assert len(await store.counts(TODAY)) == 450


async def test_a_text_below_the_bound_and_every_address_is_in_no_file(tmp_path: Path) -> None:
    store = SqliteInsights(tmp_path / "insights.sqlite")
    key = await store.key_of(day(1))
    await store.add(day(1), [tally(key, "quillomere", range(4)), tally(key, "lampshade", range(5))])

    def content() -> bytes:
        assert [path.name for path in tmp_path.iterdir()] == ["insights.sqlite"]
        return (tmp_path / "insights.sqlite").read_bytes()

    assert b"lampshade" in content()
    assert [text for text in (b"quillomere", b"192.0.2") if text in content()] == []
    marks = [mark_of(key, text).encode() for text in ("quillomere", "192.0.2.1")]
    assert [mark in content() for mark in marks] == [True, True]
    await store.key_of(TODAY)
    # The key, the hashes of groups and the queries that too few asked are overwritten; the others stay for 30 days.
    assert [part in content() for part in (key, *marks, b"lampshade")] == [False, False, False, True]
    await store.key_of(day(-29))
    assert b"lampshade" not in content()
    assert (tmp_path / "insights.sqlite").stat().st_mode & 0o777 == 0o600
    await store.close()


@pytest.mark.redis
async def test_redis_forgets_keys_and_hashes_at_the_end_of_the_day_and_counts_30_days_later(redis_url: str) -> None:
    store = RedisInsights(RedisAccess(redis_url), "test-insights")
    client: Any = Redis.from_url(redis_url, decode_responses=True)
    await store.erase()
    key = await store.key_of(TODAY)
    await store.add(TODAY, [tally(key, "quillomere", range(4)), tally(key, "lampshade", range(5), not_found=1)])
    left = {}
    for name in await client.keys("{test-insights}:*"):
        left[name.rpartition(":")[2]] = await client.ttl(name)
        kind = await client.type(name)
        held = await (
            client.hgetall(name)
            if kind == "hash"
            else client.get(name)
            if kind == "string"
            else client.zrange(name, 0, -1)
        )
        assert "quillomere" not in str(held)
        assert "192.0.2" not in str(held)
    until_midnight = 86_400 - (datetime.now(UTC) - datetime.combine(NOW.date(), datetime.min.time(), UTC)).seconds
    assert left.keys() == {"key", "groups", "asked", "not-found", "queries"}
    for name, seconds in left.items():
        kept = protocol.KEPT_DAYS * 86_400
        expected = max(until_midnight, 3_600) if name in {"key", "groups"} else until_midnight + kept
        assert abs(seconds - expected) < 60
    await store.erase()
    assert await client.keys("{test-insights}:*") == []
    await client.aclose()
    await store.close()


async def test_a_store_that_does_not_answer_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for store in (SqliteInsights(tmp_path / "file" / "x"), RedisInsights(RedisAccess("redis://127.0.0.1:9/0"))):
        for call in (
            store.key_of(TODAY),
            store.add(TODAY, [tally(b"k", "nike", [1])]),
            store.counts(TODAY),
            store.erase(),
        ):
            with pytest.raises(InsightsUnavailable):
                await call
        await store.close()


def test_lists_have_what_was_asked_or_not_found_most_first() -> None:
    counts = [QueryCount("a", 5, 0), QueryCount("c", 1, 1), QueryCount("b", 1, 1)]
    assert [one.query for one in first_of(counts, "asked", 2)] == ["a", "b"]
    assert [one.query for one in first_of(counts, "not_found", 9)] == ["b", "c"]
