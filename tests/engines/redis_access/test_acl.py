"""The ACL user of docs/redis.md: its rights are enough for all that the service does, and none of them is too many."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from service.redis.access import RedisAccess
from tests.engines.redis_access.using import UNAVAILABLE, USED, use
from tests.support.real.redis import RedisServer, redis_cli

_PAGE: Final = (Path(__file__).parents[3] / "docs" / "redis.md").read_text(encoding="utf-8")
_LINE: Final = re.search(r"^ACL SETUSER shopdir on >PASSWORD ((?:.*\\\n)*.*)$", _PAGE, re.MULTILINE)
assert _LINE is not None
RULES: Final = tuple(_LINE[1].replace("\\\n", " ").split())
COMMANDS: Final = tuple(rule for rule in RULES if rule.startswith("+"))
# These are for a cluster only, the last one while slots are moved.
_ELSEWHERE: Final = ("+cluster|slots", "+command", "+asking")


@pytest.fixture(scope="module")
def server(redis_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis that only its test and the user can use."""
    folder = tmp_path_factory.mktemp("redis")
    with RedisServer(redis_program, folder) as running:
        yield running


def _access(server: RedisServer, *, password: str = "secret") -> RedisAccess:  # noqa: S107 - of this test's Redis
    return RedisAccess(server.url, user="shopdir", password=password)


def _made(server: RedisServer, *without: str) -> None:
    """The user of the page, perhaps without something."""
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
