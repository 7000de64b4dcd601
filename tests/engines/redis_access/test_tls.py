"""Redis over TLS: a server or client that the certificates do not name is sent nothing and is not trusted."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings
from service.reports.protocol import ReportsUnavailable
from service.reports.redis import RedisReports
from tests.engines.redis_access.using import USED, use
from tests.rules.reports.stores import exported, report
from tests.rules.transports.test_reports import CODE
from tests.support.real.certificates import Authority, Certificate
from tests.support.real.process import free_ports
from tests.support.real.redis import RedisServer
from tests.support.reporting import reporting_to


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
    """A Redis that wants certificates of its clients, or not."""
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
