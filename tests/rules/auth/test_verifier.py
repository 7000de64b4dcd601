"""Which tokens count: after issue, revocation and expiry, or with the store away, under clocks of the test."""

import asyncio
import logging
import time
from pathlib import Path
from statistics import median
from typing import Final

import pytest

from service.auth.opening import TokenStoreKind
from service.auth.protocol import SecretHash, Token, TokenStore, TokensUnavailable
from service.auth.secrets import hash_of, new_token_text
from service.auth.sqlite import SqliteTokenStore
from service.auth.verifier import TokenVerifier
from service.redis.access import RedisAccess
from tests.rules.limits.clocks import HandClock

# Seconds for an answer, whose speed does not matter here.
PATIENCE_S: Final = 5.0
# What `open_tokens` takes: opened twice it is the same store.
StoreLocation = tuple[TokenStoreKind, Path, RedisAccess, str]
WIDGET = Token("a1", "widget", "default", None)
REFUSED = "refused"
UNKNOWN = "unknown"


class WatchedStore:
    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self.asked = 0
        self.away = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def find(self, secret_hash: SecretHash) -> Token | None:
        self.asked += 1
        await self.gate.wait()
        if self.away:
            raise TokensUnavailable("away")
        return await self._store.find(secret_hash)

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        await self._store.issue(token, secret_hash)

    async def all(self) -> tuple[Token, ...]:
        return await self._store.all()

    async def revoke(self, token_id: str) -> bool:
        return await self._store.revoke(token_id)

    async def close(self) -> None:
        await self._store.close()


class World:
    def __init__(self, store: TokenStore, *, capacity: int = 100, timeout: float = PATIENCE_S) -> None:
        self.store = WatchedStore(store)
        self.wall, self.steady = HandClock(), HandClock(5_000)
        self.verifier = TokenVerifier(
            self.store, wall=self.wall, steady=self.steady, timeout=timeout, capacity=capacity
        )

    async def issue(self, token: Token = WIDGET) -> str:
        text = new_token_text()
        await self.store.issue(token, hash_of(text))
        return text

    async def verdict(self, text: str) -> Token | str:
        try:
            return await self.verifier.verify(text) or REFUSED
        except TokensUnavailable:
            return UNKNOWN

    def pass_seconds(self, seconds: float) -> None:
        self.wall.pass_seconds(seconds)
        self.steady.pass_seconds(seconds)


@pytest.mark.rule("Q1")
async def test_a_token_issued_after_it_was_refused_counts_within_two_seconds(world: World) -> None:
    text = new_token_text()
    assert await world.verdict(text) == REFUSED
    await world.store.issue(WIDGET, hash_of(text))
    world.pass_seconds(2)
    assert await world.verdict(text) == WIDGET


@pytest.mark.rule("Q1")
async def test_an_expired_token_is_refused_from_its_second_on_whatever_was_remembered(world: World) -> None:
    ends = int(world.wall()) + 10
    text = await world.issue(Token("a1", "widget", "default", ends))
    world.pass_seconds(9.999)
    before = await world.verdict(text)
    world.pass_seconds(0.001)
    asked = world.store.asked
    assert (before, await world.verdict(text)) == (
        Token("a1", "widget", "default", ends),
        REFUSED,
    )
    assert world.store.asked == asked


async def test_a_text_that_can_be_no_token_is_refused_without_asking(world: World) -> None:
    world.store.away = True
    assert await world.verdict("sd_" + "0" * 49) == REFUSED
    assert world.store.asked == 0


async def test_concurrent_callers_share_one_look_up_and_one_who_leaves_spoils_nothing(world: World) -> None:
    text = await world.issue()
    world.store.gate.clear()
    callers = [asyncio.create_task(world.verdict(text)) for _ in range(50)]
    await asyncio.sleep(0)
    callers[0].cancel()
    await asyncio.sleep(0)
    world.store.gate.set()
    verdicts = await asyncio.gather(*callers[1:])
    assert (world.store.asked, set(verdicts), callers[0].cancelled()) == (1, {WIDGET}, True)


async def test_a_flood_of_invented_tokens_is_bounded_and_pushes_out_no_confirmed_one(tmp_path: Path) -> None:
    store = SqliteTokenStore(tmp_path / "tokens.sqlite")
    world = World(store, capacity=10)
    text = await world.issue()
    await world.verdict(text)
    for _ in range(100):
        await world.verdict(new_token_text())
    asked = world.store.asked
    verdict = await world.verdict(text)
    await world.verifier.close()
    await store.close()
    assert (asked, world.store.asked, verdict) == (101, 101, WIDGET)
    assert (len(world.verifier._refused), len(world.verifier._confirmed), world.verifier._look_ups) == (10, 1, {})


async def test_closing_cancels_the_look_ups_that_have_begun(world: World) -> None:
    world.store.gate.clear()
    caller = asyncio.create_task(world.verdict(new_token_text()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await world.verifier.close()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert world.verifier._look_ups == {}


@pytest.mark.rule("E5")
async def test_no_log_line_and_no_representation_shows_a_token_or_its_hash(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    text = await world.issue()
    shown = [repr(await world.verdict(text))]
    world.store.away = True
    world.pass_seconds(700)
    shown += [repr(await world.verdict(text)), repr(world.verifier), caplog.text]
    assert "the token store is unavailable: away" in caplog.text
    assert not [
        secret for secret in (text, text[3:-6], hash_of(text).hexadecimal) if any(secret in part for part in shown)
    ]


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
    tokens: TokenStore, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tokens, timeout=0.5)
    texts = [new_token_text() for _ in range(20)]
    # A client that has asked before: to get to know a cluster takes longer than a look-up may.
    await world.issue()
    world.store.gate.clear()
    verdicts = [await world.verdict(text) for text in texts]
    world.store.gate.set()
    world.pass_seconds(1)
    after = await world.verdict(texts[0])
    assert (set(verdicts), world.store.asked, after) == ({UNKNOWN}, 2, REFUSED)
    assert "the token store is unavailable: timed out" in caplog.messages


@pytest.mark.rule("Q1")
async def test_a_confirmed_token_waits_for_a_hanging_store_once_and_is_looked_up_in_the_background(
    tokens: TokenStore,
) -> None:
    world = World(tokens, timeout=0.5)
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
    # Who waits, waits for a tenth of a second at least; on a busy machine a few of the others are held up as well.
    assert median(waits[1:]) < 0.1 < waits[0]
    # One for the first token, which was waited for, and one in the background for the others.
    assert world.store.asked - asked == 2
    await world.store.revoke("a")
    world.pass_seconds(1)
    assert [await world.verdict(text) for text in texts[:1]] == [REFUSED]


@pytest.mark.rule("Q1")
async def test_a_revocation_made_while_the_store_was_away_counts_within_two_seconds_of_its_return(
    tokens: TokenStore,
) -> None:
    world = World(tokens, timeout=0.5)
    text = await world.issue()
    await world.verdict(text)
    world.store.away = True
    world.pass_seconds(2)
    away = await world.verdict(text)
    await world.store.revoke("a1")
    world.store.away = False
    world.pass_seconds(2)
    assert (away, await world.verdict(text)) == (WIDGET, REFUSED)
