"""The operator's command: what it prints, once, and its exit codes."""

import asyncio
import json
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from service.auth.opening import TokenStoreKind, open_tokens
from service.auth.protocol import Token
from service.auth.secrets import hash_of, is_token_text
from service.commands.tokens import token
from service.redis.access import DEFAULT_REDIS, RedisAccess
from tests.rules.auth.watched import StoreLocation
from tests.support.real.disks import small_disk
from tests.support.real.redis import RedisServer


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
