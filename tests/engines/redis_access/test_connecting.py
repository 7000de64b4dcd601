"""One Redis as it is reached: its settings, the ACL user of docs/redis.md, and TLS."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from service.redis.access import RedisAccess, RedisAccessError
from service.reports.opening import QueueSettings
from service.reports.protocol import ReportsUnavailable
from service.reports.redis import RedisReports
from service.settings.stores import StoreSettings
from shop_directory.settings.reading import SettingsError
from tests.engines.redis_access.using import UNAVAILABLE, USED, use
from tests.rules.reports.stores import exported, report
from tests.rules.transports.test_reports import CODE
from tests.support.callers import reporting_to
from tests.support.real.process import free_ports
from tests.support.real.redis import RedisServer, redis_cli
from tests.support.real.secured import Authority, Certificate

_URL: Final = "a redis://, rediss:// or unix:// URL, without options other than db"
_SENTINELS: Final = {"sentinels": ("127.0.0.1:26379",), "sentinel_name": "shops"}
_NODES: Final = {"cluster_nodes": ("127.0.0.1:6379",)}
_TLS: Final = "given only with a rediss:// URL"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "http://127.0.0.1"}, f"redis_url must be {_URL}"),
        ({"url": "redis://127.0.0.1:port"}, f"redis_url must be {_URL}"),
        ({"url": "rediss://127.0.0.1?ssl_cert_reqs=none"}, f"redis_url must be {_URL}"),
        ({"url": "unix://"}, f"redis_url must be {_URL}"),
        ({"url": "redis://127.0.0.1/one"}, f"redis_url must be {_URL}; a database is a whole number"),
        ({"url": "redis://a:b@h", "user": "c"}, "redis_user must be given once, in the URL or here"),
        ({"url": "redis://:b@h", "password": "c"}, "redis_password must be given once, in the URL or here"),
        ({"user": "c"}, "redis_password must be given with redis_user"),
        ({"ca_file": Path("ca.pem")}, f"redis_ca_file must be {_TLS}"),
        ({"key_file": Path("key.pem")}, f"redis_key_file must be {_TLS}"),
        (
            {"url": "rediss://h", "key_file": Path("key.pem")},
            "redis_certificate_file must be given with redis_key_file",
        ),
        (
            {"url": "rediss://h", "certificate_file": Path("own.pem")},
            "redis_key_file must be given with redis_certificate_file",
        ),
        (
            {"url": "rediss://h", "ca_file": Path("nowhere.pem")},
            "redis_ca_file must be a readable file of PEM certificates",
        ),
        (
            {"url": "rediss://h", "certificate_file": Path("own.pem"), "key_file": Path("key.pem")},
            "redis_certificate_file must be a readable PEM certificate, and redis_key_file its key",
        ),
        ({"sentinels": ("h:1",)}, "redis_sentinel_name must be what the sentinels call the master, given with them"),
        ({"sentinel_name": "shops"}, "redis_sentinel_name must be given only with redis_sentinels"),
        ({"sentinel_password": "p"}, "redis_sentinel_password must be given only with redis_sentinels"),
        ({**_SENTINELS, "sentinel_user": "u"}, "redis_sentinel_password must be given with redis_sentinel_user"),
        ({**_SENTINELS, **_NODES}, "redis_cluster_nodes must be given without redis_sentinels"),
        ({**_NODES, "url": "redis://h/1"}, "redis_url must be without a database other than 0: a cluster has no other"),
    ],
)
def test_contradicting_settings_are_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RedisAccessError) as refused:
        RedisAccess(**given)
    assert str(refused.value) == message


@pytest.mark.parametrize("text", ["host", "host:", ":6379", "host:none", "host:70000", "u@host:1", "host:1/0", "a b"])
@pytest.mark.parametrize("kind", ["sentinels", "cluster_nodes"])
def test_an_address_is_a_host_and_a_port(kind: str, text: str) -> None:
    given: dict[str, Any] = {kind: ("h:1", text)}
    with pytest.raises(RedisAccessError) as refused:
        RedisAccess(**given)
    assert refused.value.setting == f"redis_{kind}"


def test_the_environment_names_every_part_of_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    own = authority.issue("client")
    secret = tmp_path / "password"
    secret.write_text("zqcanaryzq\n")
    stated = {
        "REDIS_URL": "rediss://ignored",
        "REDIS_USER": "shopdir",
        "REDIS_PASSWORD_FILE": str(secret),
        "REDIS_CA_FILE": str(authority.file),
        "REDIS_CERTIFICATE_FILE": str(own.file),
        "REDIS_KEY_FILE": str(own.key_file),
        "REDIS_SENTINELS": "one:26379, [::1]:26380",
        "REDIS_SENTINEL_NAME": "shops",
        "REDIS_SENTINEL_USER": "asker",
        "REDIS_SENTINEL_PASSWORD": "zqother",
    }
    for name, value in stated.items():
        monkeypatch.setenv(f"SHOP_DIRECTORY_{name}", value)
    access = StoreSettings.load().redis_access
    assert access == RedisAccess(
        "rediss://ignored",
        "shopdir",
        "zqcanaryzq",
        authority.file,
        own.file,
        own.key_file,
        ("one:26379", "[::1]:26380"),
        "shops",
        "asker",
        "zqother",
    )
    assert "zq" not in repr(access)


def test_a_contradiction_in_the_environment_names_the_variable_and_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DIRECTORY_REDIS_SENTINELS", "zqcanaryzq:26379")
    monkeypatch.setenv("SHOP_DIRECTORY_REDIS_URL", "redis://:zqcanaryzq@h")
    with pytest.raises(SettingsError) as refused:
        StoreSettings.load()
    message = "it must be what the sentinels call the master, given with them."
    assert str(refused.value) == f"SHOP_DIRECTORY_REDIS_SENTINEL_NAME is wrong: {message}"


_PAGE: Final = (Path(__file__).parents[3] / "docs" / "redis.md").read_text(encoding="utf-8")
_LINE: Final = re.search(r"^ACL SETUSER shopdir on >PASSWORD ((?:.*\\\n)*.*)$", _PAGE, re.MULTILINE)
assert _LINE is not None
RULES: Final = tuple(_LINE[1].replace("\\\n", " ").split())
COMMANDS: Final = tuple(rule for rule in RULES if rule.startswith("+"))
# These are for a cluster only, the last one while slots are moved.
_ELSEWHERE: Final = ("+cluster|slots", "+command", "+asking")


@pytest.fixture(scope="module")
def server(redis_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    folder = tmp_path_factory.mktemp("redis")
    with RedisServer(redis_program, folder) as running:
        yield running


def _access(server: RedisServer, *, password: str = "secret") -> RedisAccess:  # noqa: S107 - of this test's Redis
    return RedisAccess(server.url, user="shopdir", password=password)


def _made(server: RedisServer, *without: str) -> None:
    redis_cli(server.port, "FLUSHALL")
    redis_cli(server.port, "SCRIPT", "FLUSH")
    assert redis_cli(server.port, "ACL", "SETUSER", "shopdir", "reset", "on", ">secret", *RULES) == "OK\n"
    for rule in without:
        redis_cli(server.port, "ACL", "SETUSER", "shopdir", rule)


async def test_the_documented_user_can_do_everything(server: RedisServer) -> None:
    _made(server)
    assert await use(_access(server)) == USED


@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in _ELSEWHERE])
async def test_without_any_one_of_its_commands_something_fails(server: RedisServer, command: str) -> None:
    _made(server, command.replace("+", "-"))
    try:
        outcome = await use(_access(server))
    except UNAVAILABLE:
        return
    assert outcome != USED


@pytest.mark.parametrize("prefix", ["other", "shopdirectory"])
async def test_its_keys_are_those_of_the_prefix_alone(server: RedisServer, prefix: str) -> None:
    _made(server)
    with pytest.raises(UNAVAILABLE) as refused:
        await use(_access(server), prefix)
    assert (str(refused.value), redis_cli(server.port, "DBSIZE")) == ("Redis did not confirm: NoPermissionError", "0\n")


async def test_a_wrong_password_is_an_unavailable_redis_and_appears_in_no_message(server: RedisServer) -> None:
    _made(server)
    access = _access(server, password="zqcanaryzq")
    with pytest.raises(UNAVAILABLE) as refused:
        await use(access)
    assert str(refused.value) == "Redis did not confirm: AuthenticationError"
    assert "zqcanaryzq" not in repr(access)


@pytest.mark.redis_cluster
@pytest.mark.parametrize(("without", "refused"), [((), False), (("-cluster|slots",), True), (("-command",), True)])
async def test_the_documented_user_can_do_everything_in_a_cluster(
    redis_cluster: tuple[str, ...], without: tuple[str, ...], *, refused: bool
) -> None:
    for port in (address.rpartition(":")[2] for address in redis_cluster):
        redis_cli(int(port), "FLUSHALL")
        assert redis_cli(int(port), "ACL", "SETUSER", "shopdir", "reset", "on", ">secret", *RULES, *without) == "OK\n"
    access = RedisAccess(user="shopdir", password="secret", cluster_nodes=redis_cluster)
    if not refused:
        assert await use(access) == USED
        return
    with pytest.raises(UNAVAILABLE):
        await use(access)


@dataclass(frozen=True, slots=True)
class Guarded:
    """A Redis with a TLS port of its own alongside the plain one, which only the test uses."""

    server: RedisServer
    authority: Authority
    stranger: Authority
    client: Certificate
    port: int

    def url(self, host: str = "127.0.0.1") -> str:
        return f"rediss://{host}:{self.port}/0"

    async def stored(self) -> int:
        plain = RedisReports(RedisAccess(self.server.url))
        try:
            return len(await exported(plain))
        finally:
            await plain.close()


@pytest.fixture(params=["no"])
def guarded(request: pytest.FixtureRequest, redis_program: str, tmp_path: Path) -> Iterator[Guarded]:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    own = authority.issue("127.0.0.1")
    (port,) = free_ports(1)
    options = [
        *("--tls-port", str(port), "--tls-cert-file", str(own.file), "--tls-key-file", str(own.key_file)),
        *("--tls-ca-cert-file", str(authority.file), "--tls-auth-clients", request.param),
    ]
    folder = tmp_path / "redis"
    folder.mkdir()
    with RedisServer(redis_program, folder, options=options) as server:
        yield Guarded(server, authority, stranger, authority.issue("client"), port)


async def _refused(guarded: Guarded, access: RedisAccess) -> str:
    queue = RedisReports(access, timeout=1.5)
    with pytest.raises(ReportsUnavailable) as refused:
        await queue.append(report())
    await queue.close()
    assert await guarded.stored() == 0
    return str(refused.value)


async def test_everything_works_over_tls_with_the_right_authority(guarded: Guarded) -> None:
    assert await use(RedisAccess(guarded.url(), ca_file=guarded.authority.file)) == USED


async def test_a_server_of_another_authority_is_refused_and_gets_nothing(guarded: Guarded) -> None:
    messages = [
        await _refused(guarded, RedisAccess(guarded.url(), ca_file=guarded.stranger.file)),
        # The machine's own authorities don't know it either.
        await _refused(guarded, RedisAccess(guarded.url())),
    ]
    assert messages == ["Redis did not confirm: ConnectionError"] * 2


async def test_a_server_of_another_name_is_refused_and_gets_nothing(guarded: Guarded) -> None:
    access = RedisAccess(guarded.url("localhost"), ca_file=guarded.authority.file)
    assert await _refused(guarded, access) == "Redis did not confirm: ConnectionError"


async def test_plain_text_to_a_tls_port_is_refused_and_gets_nothing(guarded: Guarded) -> None:
    assert await _refused(guarded, RedisAccess(guarded.url().replace("rediss", "redis"))) in (
        "Redis did not confirm: ConnectionError",
        "Redis did not confirm: TimeoutError",
    )


@pytest.mark.parametrize("guarded", ["yes"], indirect=True)
async def test_a_server_that_wants_our_certificate_gets_it(guarded: Guarded) -> None:
    without = RedisAccess(guarded.url(), ca_file=guarded.authority.file)
    assert await _refused(guarded, without) == "Redis did not confirm: ConnectionError"
    shown = RedisAccess(
        guarded.url(),
        ca_file=guarded.authority.file,
        certificate_file=guarded.client.file,
        key_file=guarded.client.key_file,
    )
    assert await use(shown) == USED


@pytest.mark.rule("Q4")
@pytest.mark.parametrize(("authority", "status", "stored"), [("authority", 200, 1), ("stranger", 503, 0)])
def test_a_report_is_accepted_only_when_the_right_redis_has_it(
    guarded: Guarded, tmp_path: Path, authority: str, status: int, stored: int
) -> None:
    access = RedisAccess(guarded.url(), ca_file=getattr(guarded, authority).file)
    with reporting_to(QueueSettings("redis", redis=access), tmp_path) as service:
        reply = service.report("report_code", CODE)
    assert (reply.status, asyncio.run(guarded.stored())) == (status, stored)
