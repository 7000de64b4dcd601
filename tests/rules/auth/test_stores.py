"""The token stores behave alike; a token's text is random and recognisable; the operator's commands on them."""

import asyncio
import json
import sqlite3
import stat
import string
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as ConnectionLostError
from typer.testing import CliRunner, Result

from service.auth.opening import TokenStoreKind, open_tokens
from service.auth.protocol import SecretHash, Token, TokenStore, TokensUnavailable
from service.auth.redis import RedisTokenStore
from service.auth.secrets import PREFIX, hash_of, is_token_text, new_token_id, new_token_text
from service.auth.sqlite import SqliteTokenStore
from service.commands.tokens import token
from service.redis.access import DEFAULT_REDIS, RedisAccess
from service.redis.connection import Script
from tests.rules.auth.test_verifier import StoreLocation
from tests.support.real.disks import small_disk
from tests.support.real.redis import RedisServer

WIDGET = Token("a1", "Widget für Preise", "default", None)
PARTNER = Token("b2", "partner", "gold", 1_900_000_000)


@pytest.mark.rule("Q1")
async def test_a_revoked_token_is_gone_and_the_others_stay(tokens: TokenStore) -> None:
    text, other = new_token_text(), new_token_text()
    await tokens.issue(WIDGET, hash_of(text))
    await tokens.issue(PARTNER, hash_of(other))
    revoked = [await tokens.revoke("a1"), await tokens.revoke("a1"), await tokens.revoke("zz")]
    assert revoked == [True, False, False]
    assert [await tokens.find(hash_of(asked)) for asked in (text, other)] == [None, PARTNER]
    assert await tokens.all() == (PARTNER,)


async def test_all_tokens_come_by_name_then_id(tokens: TokenStore) -> None:
    issued = [Token(token_id, name, "default", None) for token_id, name in (("c", "b"), ("b", "a"), ("a", "b"))]
    for one in issued:
        await tokens.issue(one, hash_of(new_token_text()))
    assert [(token.name, token.id) for token in await tokens.all()] == [("a", "b"), ("b", "a"), ("b", "c")]


@pytest.mark.redis
async def test_no_command_to_redis_reads_more_than_500_of_many_tokens(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RedisTokenStore(RedisAccess(redis_url), "many-tokens")
    issued = tuple(Token(f"{number:03}", "many", "default", None) for number in range(501))
    for one in issued:
        await store.issue(one, hash_of(new_token_text()))
    run, sizes = store._redis.run, []

    async def counted(script: Script, keys: list[str], *, retry: bool) -> object:
        sizes.append(len(keys))
        return await run(script, keys, retry=retry)

    monkeypatch.setattr(store._redis, "run", counted)
    listed = await store.all()
    await store.close()
    assert (listed, sizes) == (issued, [500, 1])


@pytest.mark.redis
@pytest.mark.rule("Q1")
async def test_a_token_is_revoked_although_the_first_answer_was_lost(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RedisTokenStore(RedisAccess(redis_url), "lost-answer")
    for one in (WIDGET, PARTNER):
        await store.issue(one, hash_of(new_token_text()))
    assert await store.revoke("b2") is True
    run, lost = store._redis.client.evalsha, [ConnectionLostError()]

    async def run_and_lose_the_first_answer(*arguments: object) -> object:
        answer = await run(*arguments)
        if lost:
            raise lost.pop()
        return answer

    monkeypatch.setattr(store._redis.client, "evalsha", run_and_lose_the_first_answer)
    assert (await store.revoke("a1"), lost, await store.revoke("a1")) == (True, [], False)
    await store.close()


@pytest.mark.rule("Q1")
async def test_what_one_process_issues_and_revokes_another_sees_immediately(
    tokens: TokenStore, location: StoreLocation
) -> None:
    text = new_token_text()
    assert await tokens.find(hash_of(text)) is None
    operator = open_tokens(*location)
    await operator.issue(WIDGET, hash_of(text))
    seen = [await tokens.find(hash_of(text))]
    await operator.revoke("a1")
    seen.append(await tokens.find(hash_of(text)))
    await operator.close()
    assert seen == [WIDGET, None]


@pytest.mark.rule("Q1")
async def test_the_sqlite_files_are_their_owners_alone_and_hold_no_text(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tokens.sqlite"
    store = SqliteTokenStore(path)
    text = new_token_text()
    await store.issue(WIDGET, hash_of(text))
    files = sorted(path.parent.iterdir())
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    held = b"".join(file.read_bytes() for file in files)
    await store.close()
    assert modes == {"tokens.sqlite": 0o600, "tokens.sqlite-shm": 0o600, "tokens.sqlite-wal": 0o600}
    assert (text.encode() in held, hash_of(text).hexadecimal.encode() in held) == (False, True)


@pytest.mark.redis
@pytest.mark.rule("Q1")
async def test_redis_holds_hashes_under_one_tag_and_no_text(redis_url: str) -> None:
    store = RedisTokenStore(RedisAccess(redis_url), "test-keys")
    text = new_token_text()
    await store.issue(PARTNER, hash_of(text))
    redis = Redis.from_url(redis_url, decode_responses=True)
    keys = sorted([key async for key in redis.scan_iter("*test-keys*")])
    stored = await redis.hgetall("{test-keys:tokens}:" + hash_of(text).hexadecimal)
    await store.revoke("b2")
    left = [key async for key in redis.scan_iter("*test-keys*")]
    await redis.aclose()
    await store.close()
    assert keys == sorted(["{test-keys:tokens}:ids", "{test-keys:tokens}:" + hash_of(text).hexadecimal])
    assert stored == {"id": "b2", "name": "partner", "quota_class": "gold", "expires_at": "1900000000"}
    assert left == []


@pytest.mark.rule("Q1")
async def test_a_token_file_that_is_lost_is_a_store_away_until_it_is_back(tmp_path: Path) -> None:
    path, aside = tmp_path / "tokens.sqlite", tmp_path / "aside"
    text = new_token_text()
    operator = SqliteTokenStore(path)
    await operator.issue(WIDGET, hash_of(text))
    await operator.close()
    store = SqliteTokenStore(path)
    assert await store.find(hash_of(text)) == WIDGET
    path.rename(aside)
    with pytest.raises(TokensUnavailable):
        await store.find(hash_of(text))
    assert not path.exists()
    aside.rename(path)
    assert await store.find(hash_of(text)) == WIDGET
    await store.close()


async def test_a_token_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens.sqlite"
    text = new_token_text()
    store = SqliteTokenStore(path)
    await store.issue(WIDGET, hash_of(text))
    other = SqliteTokenStore(tmp_path / "other.sqlite")
    await other.issue(PARTNER, hash_of(text))
    await other.close()
    (tmp_path / "other.sqlite").rename(path)
    assert await store.find(hash_of(text)) == PARTNER
    await store.close()


async def test_a_file_that_is_no_database_or_is_locked_is_a_store_away(tmp_path: Path) -> None:
    broken, locked = tmp_path / "broken.sqlite", tmp_path / "locked.sqlite"
    broken.write_bytes(b"no database " * 100)
    store = SqliteTokenStore(broken)
    with pytest.raises(TokensUnavailable):
        await store.find(hash_of("any"))
    await store.close()

    store = SqliteTokenStore(locked, 0.5)
    await store.issue(WIDGET, hash_of("any"))
    other = sqlite3.connect(locked, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(TokensUnavailable):
        await store.revoke("a1")
    other.execute("ROLLBACK")
    other.close()
    # It may have got the lock just after its caller was refused.
    await store.revoke("a1")
    assert await store.all() == ()
    await store.close()


async def test_no_representation_and_no_failure_shows_a_hash(tmp_path: Path) -> None:
    secret = hash_of(new_token_text())
    store = RedisTokenStore(RedisAccess("redis://127.0.0.1:1"), "test")
    with pytest.raises(TokensUnavailable) as gone:
        await store.find(secret)
    await store.close()
    (tmp_path / "file").write_text("")
    file_store = SqliteTokenStore(tmp_path / "file" / "tokens.sqlite")
    with pytest.raises(TokensUnavailable) as nowhere:
        await file_store.find(secret)
    await file_store.close()
    assert repr(secret) == "SecretHash()"
    assert (str(gone.value), str(nowhere.value)) == (
        "Redis: ConnectionError",
        f"the token file {tmp_path / 'file' / 'tokens.sqlite'}: Not a directory",
    )
    assert SecretHash("a") != SecretHash("b")


DIGITS = string.digits + string.ascii_letters


@pytest.mark.rule("Q1")
def test_a_new_text_has_the_form_of_a_token_and_comes_once() -> None:
    texts = {new_token_text() for _ in range(1000)}
    assert (len(texts), {len(text) for text in texts}) == (1000, {52})
    assert all(text.startswith(PREFIX) and is_token_text(text) for text in texts)
    assert set("".join(text.removeprefix(PREFIX) for text in texts)) == set(DIGITS)


@given(at=st.integers(0, 51), character=st.sampled_from(DIGITS + "_-"))
def test_a_text_with_one_wrong_character_is_no_token(at: int, character: str) -> None:
    text = new_token_text()
    mistyped = text[:at] + character + text[at + 1 :]
    assert is_token_text(mistyped) == (mistyped == text)


@pytest.mark.parametrize("spoil", [str.upper, str.strip, lambda text: text + "\n", lambda text: text[:-1]])
def test_a_token_is_taken_as_it_is(spoil: object) -> None:
    text = new_token_text()
    spoilt = spoil(text) if callable(spoil) else ""
    assert is_token_text(spoilt) == (spoilt == text)


def test_the_hash_is_the_sha_256_of_the_whole_text() -> None:
    assert hash_of("sd_x").hexadecimal == sha256(b"sd_x").hexdigest()


def test_an_id_is_no_part_of_a_secret() -> None:
    ids = {new_token_id() for _ in range(100)}
    assert (len(ids), {len(token_id) for token_id in ids}, set("".join(ids))) == (100, {16}, set("0123456789abcdef"))


def _run(location: StoreLocation, *arguments: str) -> Result:
    kind, path, redis, prefix = location
    environment = {
        "SHOP_DIRECTORY_TOKEN_STORE": kind.value,
        "SHOP_DIRECTORY_TOKEN_FILE": str(path),
        "SHOP_DIRECTORY_REDIS_URL": redis.url,
        "SHOP_DIRECTORY_REDIS_CLUSTER_NODES": ",".join(redis.cluster_nodes),
        "SHOP_DIRECTORY_REDIS_PREFIX": prefix,
    }
    return CliRunner().invoke(token, arguments, env=environment)


def _find(location: StoreLocation, text: str) -> Token | None:
    async def find() -> Token | None:
        store = open_tokens(*location)
        try:
            return await store.find(hash_of(text))
        finally:
            await store.close()

    return asyncio.run(find())


def _named(location: StoreLocation) -> str:
    kind, path, _, prefix = location
    return str(path) if kind is TokenStoreKind.SQLITE else f"Redis with the prefix {prefix}"


@pytest.mark.rule("Q1")
def test_a_new_token_is_shown_once_and_counts_from_then_on(location: StoreLocation) -> None:
    made = _run(location, "new", "--name", "price widget", "--class", "gold", "--expires", "2099-01-31T00:00:00Z")
    text = made.stdout.removesuffix("\n")
    found = _find(location, text)
    assert (made.exit_code, is_token_text(text)) == (0, True)
    assert found is not None
    assert found == Token(found.id, "price widget", "gold", 4_073_500_800)
    assert made.stderr == (
        f"Token {found.id} is stored in {_named(location)}. Its text is shown only once: send it in the header "
        "x-api-token.\n"
    )
    listed = [_run(location, "list").output, _run(location, "list", "--json").output]
    assert listed[0] == f"{found.id}  gold          2099-01-31T00:00:00Z      price widget\n"
    assert json.loads(listed[1]) == [
        {"id": found.id, "name": "price widget", "class": "gold", "expires_at": "2099-01-31T00:00:00Z"}
    ]
    assert not [secret for secret in (text, hash_of(text).hexadecimal) if secret in "".join(listed)]


@pytest.mark.rule("Q1")
def test_json_is_the_only_thing_on_standard_output(location: StoreLocation) -> None:
    made = json.loads(_run(location, "new", "--name", "Grüße", "--json").stdout)
    found = _find(location, made["token"])
    assert made == {
        "token": made["token"], "id": made["id"], "name": "Grüße", "class": "default", "expires_at": None,
    }  # fmt: skip
    assert found == Token(made["id"], "Grüße", "default", None)
    revoked = [_run(location, "revoke", made["id"], "--json") for _ in range(2)]
    assert [(done.exit_code, json.loads(done.stdout)) for done in revoked] == [
        (0, {"revoked": True}),
        (1, {"revoked": False}),
    ]


@pytest.mark.rule("Q1")
def test_a_revoked_token_is_gone_and_an_unknown_id_is_exit_code_1(location: StoreLocation) -> None:
    made = json.loads(_run(location, "new", "--name", "a", "--json").stdout)
    done, again = _run(location, "revoke", made["id"]), _run(location, "revoke", made["token"])
    assert (done.exit_code, done.output) == (0, "Revoked. The token is refused within 2 seconds.\n")
    assert (again.exit_code, again.output) == (1, "There is no token with this id; `list` shows the ids.\n")
    left = _run(location, "list")
    assert (_find(location, made["token"]), left.stdout) == (None, "")
    assert left.stderr == f"There are no tokens in {_named(location)}.\n"


@pytest.mark.redis
@pytest.mark.rule("Q1")
def test_a_token_is_revoked_in_a_redis_that_is_too_slow_for_requests(tmp_path: Path, redis_program: str) -> None:
    with RedisServer(redis_program, tmp_path) as server:
        location = (TokenStoreKind.REDIS, tmp_path, RedisAccess(server.url), "slow")
        made = json.loads(_run(location, "new", "--name", "a", "--json").stdout)
        server.process.pause()
        resuming = threading.Timer(1.5, server.process.resume)
        resuming.start()
        revoked = _run(location, "revoke", made["id"])
        resuming.join()
        assert (revoked.exit_code, _find(location, made["token"])) == (0, None)


@pytest.mark.parametrize(("span", "seconds"), [("90d", 90 * 86_400), ("12h", 12 * 3600)])
def test_a_span_ends_that_long_from_now(tmp_path: Path, span: str, seconds: int) -> None:
    location = (TokenStoreKind.SQLITE, tmp_path / "tokens.sqlite", DEFAULT_REDIS, "")
    before = int(time.time())
    made = json.loads(_run(location, "new", "--name", "a", "--expires", span, "--json").stdout)
    found = _find(location, made["token"])
    assert found is not None
    assert found.expires_at is not None
    assert before + seconds <= found.expires_at <= time.time() + seconds


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--name", " "), "--name must be 1 to 100 printable characters.\n"),
        (("--name", "a\nb"), "--name must be 1 to 100 printable characters.\n"),
        (("--name", "a" * 101), "--name must be 1 to 100 printable characters.\n"),
        (
            ("--name", "a", "--class", "Gold!"),
            "--class must be a lower-case letter and up to 31 more letters, digits or hyphens.\n",
        ),
        (("--name", "a", "--expires", "2001-01-01"), "--expires must be in the future.\n"),
        (
            ("--name", "a", "--expires", "soon"),
            "--expires must be a span such as 90d or 12h, or a time such as 2030-01-31T00:00:00Z.\n",
        ),
    ],
)
def test_wrong_usage_is_exit_code_2_and_issues_nothing(tmp_path: Path, arguments: tuple[str, ...], error: str) -> None:
    location = (TokenStoreKind.SQLITE, tmp_path / "tokens.sqlite", DEFAULT_REDIS, "")
    done = _run(location, "new", *arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", error)
    assert not (tmp_path / "tokens.sqlite").exists()


def test_a_wrong_url_is_exit_code_2_and_a_store_away_3(tmp_path: Path) -> None:
    wrong = CliRunner().invoke(token, ["--store", "redis", "--redis-url", "http://secret@127.0.0.1", "list"])
    away = _run((TokenStoreKind.REDIS, tmp_path, RedisAccess("redis://:secret@127.0.0.1:1"), "p"), "list")
    unreadable = _run((TokenStoreKind.SQLITE, tmp_path, DEFAULT_REDIS, ""), "new", "--name", "a")
    assert [(done.exit_code, done.stdout) for done in (wrong, away, unreadable)] == [(2, ""), (3, ""), (3, "")]
    assert wrong.stderr == (
        "SHOP_DIRECTORY_REDIS_URL is wrong: "
        "it must be a redis://, rediss:// or unix:// URL, without options other than db.\n"
    )
    after = "If a token was to be issued or revoked, `list` will show whether it was.\n"
    assert away.stderr == f"The token store can't be used (Redis: ConnectionError). {after}"
    assert unreadable.stderr == (f"The token store can't be used (the token file {tmp_path}: Is a directory). {after}")


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        location = (TokenStoreKind.SQLITE, disk.folder / "tokens" / "tokens.sqlite", DEFAULT_REDIS, "")
        with disk.full():
            first = _run(location, "new", "--name", "a")
        assert _run(location, "new", "--name", "a").exit_code == 0
        with disk.full():
            another = _run(location, "new", "--name", "b")
        file = location[1]
    said = (
        f"The token store can't be used (the token file {file}: its disk is full). "
        "If a token was to be issued or revoked, `list` will show whether it was.\n"
    )
    assert [(done.exit_code, done.stdout, done.stderr) for done in (first, another)] == [(3, "", said)] * 2
