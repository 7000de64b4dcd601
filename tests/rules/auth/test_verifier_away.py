"""Which tokens count while the store is away: those that it confirmed in the last ten minutes (Q1)."""

import asyncio
import time

import pytest

from service.auth.protocol import Token
from service.auth.secrets import new_token_text
from tests.rules.auth.watched import REFUSED, UNKNOWN, WIDGET, World


@pytest.mark.rule("Q1")
async def test_with_the_store_away_a_token_confirmed_in_the_last_ten_minutes_counts(world: World) -> None:
    text, unseen, refused = await world.issue(), await world.issue(Token("b", "b", "default", None)), new_token_text()
    await world.verdict(text)
    await world.verdict(refused)
    world.store.away = True
    world.pass_seconds(2)
    assert [await world.verdict(asked) for asked in (text, unseen, refused)] == [
        WIDGET,
        UNKNOWN,
        UNKNOWN,
    ]
    world.pass_seconds(597.999)
    assert await world.verdict(text) == WIDGET
    world.pass_seconds(0.001)
    assert await world.verdict(text) == UNKNOWN


@pytest.mark.rule("Q1")
async def test_a_token_that_was_seen_revoked_does_not_count_when_the_store_goes_away(world: World) -> None:
    text = await world.issue()
    await world.verdict(text)
    await world.store.revoke("a1")
    world.pass_seconds(2)
    assert await world.verdict(text) == REFUSED
    world.store.away = True
    world.pass_seconds(2)
    assert await world.verdict(text) == UNKNOWN


@pytest.mark.rule("Q1")
async def test_a_token_that_expires_while_the_store_is_away_is_refused(world: World) -> None:
    text = await world.issue(Token("a1", "widget", "default", int(world.wall()) + 60))
    await world.verdict(text)
    world.store.away = True
    world.pass_seconds(59)
    assert await world.verdict(text) == Token("a1", "widget", "default", int(world.wall()) + 1)
    world.pass_seconds(1)
    assert await world.verdict(text) == REFUSED


@pytest.mark.rule("Q1")
async def test_a_store_that_hangs_is_away_and_is_not_waited_for_by_every_caller(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [new_token_text() for _ in range(20)]
    # A client that has asked before: to get to know a cluster takes longer than a look-up may.
    await world.issue()
    world.store.gate.clear()
    started = time.monotonic()
    verdicts = [await world.verdict(text) for text in texts]
    took = time.monotonic() - started
    world.store.gate.set()
    world.pass_seconds(1)
    after = await world.verdict(texts[0])
    assert (set(verdicts), world.store.asked, after) == ({UNKNOWN}, 2, REFUSED)
    assert took < 2
    assert "the token store is unavailable: timed out" in caplog.messages


@pytest.mark.rule("Q1")
async def test_a_confirmed_token_waits_for_a_hanging_store_once_and_is_looked_up_in_the_background(
    world: World,
) -> None:
    texts = [await world.issue(Token(name, name, "default", None)) for name in ("a", "b", "c")]
    for text in texts:
        await world.verdict(text)
    world.pass_seconds(2)
    asked = world.store.asked
    world.store.gate.clear()
    waits, verdicts = [], []
    for text in texts * 10:
        started = time.monotonic()
        verdicts.append(await world.verdict(text))
        waits.append(time.monotonic() - started)
    world.store.gate.set()
    await asyncio.sleep(0.05)
    world.pass_seconds(1)
    assert {type(verdict) for verdict in verdicts} == {Token}
    assert 0.1 < waits[0] < 0.3
    assert max(waits[1:]) < 0.1
    # One for the first token, which was waited for, and one in the background for the others.
    assert world.store.asked - asked == 2
    await world.store.revoke("a")
    world.pass_seconds(1)
    assert [await world.verdict(text) for text in texts[:1]] == [REFUSED]


@pytest.mark.rule("Q1")
async def test_a_revocation_made_while_the_store_was_away_counts_within_two_seconds_of_its_return(world: World) -> None:
    text = await world.issue()
    await world.verdict(text)
    world.store.away = True
    world.pass_seconds(2)
    away = await world.verdict(text)
    await world.store.revoke("a1")
    world.store.away = False
    world.pass_seconds(2)
    assert (away, await world.verdict(text)) == (WIDGET, REFUSED)
