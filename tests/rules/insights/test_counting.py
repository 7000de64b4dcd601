"""Which queries are counted: those that rest, from enough address groups, over every transport; and that it is off."""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from service.app import create_app
from service.insights import counting
from service.insights.counting import InsightCounter
from service.insights.protocol import QueryCount
from service.insights.sqlite import SqliteInsights
from service.settings.service import Settings
from service.suggest.wire import text_of
from tests.people.commands.world import run
from tests.support.served import get, post, served, settings_in, until
from tests.support.wire import Era, call
from tests.support.worlds import embedded_world

START: Final = datetime.now(UTC)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counter(tmp_path: Path, clock: Clock) -> InsightCounter:
    return InsightCounter(SqliteInsights(tmp_path / "insights.sqlite"), text_of, clock, clock.now)


async def shown(counter: InsightCounter) -> list[tuple[str, int, int]]:
    await counter.flush()
    return [(one.query, one.asked, one.not_found) for one in await counter.store.counts("2000-01-01")]


def address(number: int) -> str:
    return f"192.0.2.{number}"


async def test_letters_on_the_way_to_a_query_are_not_counted(counter: InsightCounter, clock: Clock) -> None:
    await counter.tick()
    for number in range(5):
        for typed in ("n", "ni", "nik", "nike", "nike+s", "Nike"):
            counter.suggested(address(number), f"q={typed}&limit=8".encode(), nothing=typed == "Nike")
            clock.seconds += 0.2
    # The next query of an address comes after a rest; the last ones rest until the tick.
    clock.seconds += 2
    counter.suggested(address(0), b"q=adidas", nothing=False)
    await counter.tick()
    assert await shown(counter) == [("nike", 5, 5)]
    await counter.close()


async def test_the_last_query_before_the_end_counts(tmp_path: Path, counter: InsightCounter) -> None:
    await counter.tick()
    for number in range(5):
        counter.suggested(address(number), b"q=nike", nothing=False)
    await counter.close()
    store = SqliteInsights(tmp_path / "insights.sqlite")
    assert await store.counts("2000-01-01") == (QueryCount("nike", 5, 0),)
    await store.close()


async def test_an_ipv6_network_is_one_group(counter: InsightCounter) -> None:
    await counter.tick()
    for number in range(9):
        counter.found(f"2001:db8::{number}", "nike", nothing=False)
        counter.found("192.0.2.1", "nike", nothing=False)
    assert await shown(counter) == []
    for number in range(3):
        counter.found(f"2001:db8:0:{number + 1}::1", "nike", nothing=False)
    assert await shown(counter) == [("nike", 21, 0)]
    await counter.close()


@pytest.mark.parametrize("query", ["", " ", "n", "?", "x" * 101])
async def test_what_is_no_query_is_not_counted(counter: InsightCounter, query: str) -> None:
    await counter.tick()
    for number in range(5):
        counter.found(address(number), query, nothing=True)
    assert await shown(counter) == []
    await counter.close()


async def test_memory_is_bounded_and_the_rarest_are_dropped(
    counter: InsightCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MOST_QUERIES", 20)
    monkeypatch.setattr(counting, "_DROPPED", 5)
    await counter.tick()
    for number in range(5):
        counter.found(address(number), "nike", nothing=False)
    for number in range(1_000):
        counter.found(address(1), f"query {number}", nothing=False)
        counter.suggested(f"10.0.{number // 256}.{number % 256}", b"q=x", nothing=False)
        assert len(counter._seen) <= 20
        assert len(counter._resting) <= 20
    assert await shown(counter) == [("nike", 5, 0)]
    await counter.close()


async def test_a_day_has_its_own_key_and_groups(counter: InsightCounter, clock: Clock) -> None:
    await counter.tick()
    key = counter._key
    for number in range(4):
        counter.found(address(number), "nike", nothing=False)
    clock.seconds += 86_400
    await counter.tick()
    assert counter._key != key
    counter.found(address(4), "nike", nothing=False)
    assert await shown(counter) == []
    await counter.close()


async def test_a_store_that_fails_costs_a_warning_and_loses_no_count(
    tmp_path: Path, counter: InsightCounter, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await counter.tick()
    path = tmp_path / "insights.sqlite"
    for number in range(3):
        counter.found(address(number), "quillomere", nothing=True)
    path.rename(tmp_path / "away")
    path.mkdir()
    clock.seconds += 31
    with caplog.at_level(logging.WARNING):
        await counter.tick()
    assert ["could not be stored" in record.getMessage() for record in caplog.records] == [True]
    assert "quillomere" not in caplog.text
    path.rmdir()
    (tmp_path / "away").rename(path)
    for number in range(2, 5):
        counter.found(address(number), "quillomere", nothing=True)
    assert await shown(counter) == [("quillomere", 6, 6)]
    await counter.close()


def settings_of(folder: Path, **more: Any) -> Settings:  # noqa: ANN401 - any setting
    index = embedded_world(folder / "world")
    given = {"trusted_proxies": ("127.0.0.1/32",), "insights_file": folder / "insights.sqlite", **more}
    return settings_in(folder, data_dir=index, **given)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(counting, "_REST_S", 0.2)
    monkeypatch.setattr(counting, "_FLUSH_S", 0.1)
    with served(create_app(settings_of(tmp_path, insights="embedded"))) as served_at:
        until((tmp_path / "insights.sqlite").exists, bool, 10)
        yield served_at


def test_find_shop_over_rest_and_mcp_and_suggest_are_counted_and_operators_see_them(base: str, tmp_path: Path) -> None:
    def state() -> Any:  # noqa: ANN401 - JSON
        return get(base, "/api/ops/state").json["insights"]

    assert state() == {"available": True, "reason": None, "days": 7, "asked": [], "not_found": []}
    for number in range(5):
        for query in ("Zebrafish", "books"):
            post(base, "/tool/find_shop", {"query": query}, x_forwarded_for=address(number))
        # Later pages are the same search, and what is refused is none.
        post(base, "/tool/find_shop", {"query": "books", "offset": 1}, x_forwarded_for=address(number))
        assert post(base, "/tool/find_shop", {"query": "books", "x": 1}, x_forwarded_for=address(number)).status == 400
        get(base, "/suggest?q=qqzz", x_forwarded_for=address(number))
        get(base, "/suggest?q=harb", x_forwarded_for=address(number + 10))
    call(base, Era.STATELESS, "find_shop", b'{"query":"books"}')
    expected = {
        "asked": [
            {"query": "books", "count": 6},
            {"query": "harb", "count": 5},
            {"query": "qqzz", "count": 5},
            {"query": "zebrafish", "count": 5},
        ],
        "not_found": [{"query": "qqzz", "count": 5}, {"query": "zebrafish", "count": 5}],
    }
    until(state, lambda found: {name: found[name] for name in expected} == expected, 20)
    variables = {
        "SHOP_DIRECTORY_INSIGHTS": "embedded",
        "SHOP_DIRECTORY_INSIGHTS_FILE": str(tmp_path / "insights.sqlite"),
    }
    shown = run(tmp_path, "insights", "--json", **variables)
    assert json.loads(shown.out) == {"counting": True, "days": 7, **expected}
    text = run(tmp_path, "insights", "--days", "1", "--count", "1", **variables).out
    assert text.splitlines() == [
        "Looked for and not found, in 1 days, by 5 address groups or more:",
        "       5  qqzz",
        "Looked for most, in 1 days, by 5 address groups or more:",
        "       6  books",
    ]
    assert run(tmp_path, "status", "--json", **variables).document["not_found"] == {"qqzz": 5, "zebrafish": 5}
    erased = run(tmp_path, "insights", "--erase", **variables)
    assert (erased.code, erased.out) == (0, "All counts of queries are deleted.\n")
    assert json.loads(run(tmp_path, "insights", "--json", **variables).out)["asked"] == []


def test_nothing_is_counted_unless_a_setting_says_so(tmp_path: Path) -> None:
    with served(create_app(settings_of(tmp_path))) as base:
        post(base, "/tool/find_shop", {"query": "books"})
        found = get(base, "/api/ops/state").json["insights"]
    assert found == {"available": False, "reason": "switched_off", "days": 7, "asked": None, "not_found": None}
    assert not (tmp_path / "insights.sqlite").exists()
    done = run(tmp_path, "insights")
    assert (done.code, done.out) == (0, "Queries are not counted: SHOP_DIRECTORY_INSIGHTS is off.\n")
    assert run(tmp_path, "insights", "--json").document == {"counting": False, "days": 7, "asked": [], "not_found": []}


def test_a_store_that_does_not_answer_is_reported_as_such(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, insights="redis", redis_url="redis://127.0.0.1:9/0")
    with served(create_app(settings)) as base:
        assert post(base, "/tool/find_shop", {"query": "books"}).status == 200
        assert get(base, "/api/ops/state").json["insights"]["reason"] == "store_unavailable"
    variables = {"SHOP_DIRECTORY_INSIGHTS": "redis", "SHOP_DIRECTORY_REDIS_URL": "redis://127.0.0.1:9/0"}
    assert run(tmp_path, "insights", **variables).code == 3
