"""Reports over HTTP while the service and its Redis are killed again and again (Q5).

Three kills of each; SHOP_DIRECTORY_KILLS=20 is the long form.
"""

import asyncio
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import httpx2
import pytest

from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings, open_queue
from tests.rules.reports.conftest import own_redis  # noqa: F401 - a fixture
from tests.rules.reports.stores import exported
from tests.support.callers import issue
from tests.support.real.process import ServerProcess, free_ports
from tests.support.real.redis import RedisServer
from tests.support.worlds import embedded_world

KILLS: Final = int(os.environ.get("SHOP_DIRECTORY_KILLS", "3"))
START_BOUND_S: Final = 30.0


class Reporting:
    """Somebody who reports one code after another, each until it is acknowledged."""

    def __init__(self, base: str, token: str) -> None:
        self.acknowledged: list[str] = []
        self.unexpected: list[int] = []
        self._base = base
        self._token = token
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._report)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def stream_on(self, more: int) -> None:
        """Wait until so many more are acknowledged."""
        wanted, end = len(self.acknowledged) + more, time.monotonic() + START_BOUND_S
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < end, "nothing is acknowledged any more"
            time.sleep(0.01)

    def _report(self) -> None:
        number = 0
        with httpx2.Client(base_url=self._base, timeout=5.0, headers={"x-api-token": self._token}) as client:
            while not self._ended.is_set():
                code = f"C{number}"
                report = {"shop_domain": "shop_books", "code": code, "reason": "invalid"}
                try:
                    status = client.post("/tool/report_code", json=report).status_code
                except httpx2.TransportError:
                    time.sleep(0.02)
                    continue
                if status == 200:
                    self.acknowledged.append(code)
                    number += 1
                elif status != 503:
                    self.unexpected.append(status)


async def _stored(url: str) -> Counter[str | None]:
    """How often each code was stored."""
    queue = open_queue(QueueSettings(kind="redis", redis=RedisAccess(url), timeout=30.0))
    stored = Counter(report.code for report in await exported(queue))
    await queue.close()
    return stored


@pytest.fixture
def service(own_redis: RedisServer, tmp_path: Path) -> Iterator[tuple[ServerProcess, str]]:  # noqa: F811 - the fixture
    """The service with its reports in Redis, as a process of its own, and its base URL."""
    (port,) = free_ports(1)
    settings = {
        "DATA_DIR": str(embedded_world(tmp_path / "world")),
        "TOKEN_FILE": str(tmp_path / "tokens.sqlite"),
        "REPORTS": "redis",
        "REDIS_URL": own_redis.url,
    }
    command = ["/usr/bin/env", *(f"SHOP_DIRECTORY_{name}={value}" for name, value in settings.items())]
    command += [sys.executable, "-m", "shop_directory", "serve", "--port", str(port)]
    process = ServerProcess("the service", command, tmp_path / "service.log")
    with ExitStack() as exit_code:
        exit_code.callback(process.stop)
        process.launch()
        yield process, f"http://127.0.0.1:{port}"


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.rule("Q5", "A9")
@pytest.mark.timeout(120 + 20 * KILLS)
def test_an_acknowledged_report_survives_kills_of_the_service_and_of_redis(
    own_redis: RedisServer,  # noqa: F811 - the fixture
    service: tuple[ServerProcess, str],
    tmp_path: Path,
) -> None:
    process, base = service
    token = issue(tmp_path / "tokens.sqlite")
    with Reporting(base, token.text) as reporting:
        reporting.stream_on(1)
        for _ in range(KILLS):
            reporting.stream_on(20)
            process.kill()
            process.launch()
            reporting.stream_on(20)
            own_redis.kill()
            own_redis.start()
        reporting.stream_on(1)
    stored = asyncio.run(_stored(own_redis.url))
    assert reporting.unexpected == []
    assert set(reporting.acknowledged) - set(stored) == set(), "acknowledged and lost"
    assert [code for code, times in stored.items() if times > 1] == [], "doubled"
    # Of the last report the answer may have been cut off.
    assert len(set(stored) - set(reporting.acknowledged)) <= 1
    assert len(reporting.acknowledged) >= 40 * KILLS
