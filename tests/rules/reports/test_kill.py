"""Reports over HTTP while the service, and Redis where it stores them, are killed again and again (Q5).

What was acknowledged is there, once, and each with its re-check. Three kills of each; SHOP_DIRECTORY_KILLS=20 is the
long form.
"""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import httpx2
import pytest

from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings
from tests.support.callers import issue, stored_in
from tests.support.real.process import ServerProcess, free_ports
from tests.support.real.redis import RedisServer
from tests.support.worlds import embedded_world

LANES: Final = 4
KILLS: Final = int(os.environ.get("SHOP_DIRECTORY_KILLS", "3"))
START_BOUND_S: Final = 30.0


class Reporting:
    """Somebody who reports one code after another, each until it is acknowledged; the codes name the lane."""

    def __init__(self, base: str, token: str, lane: int) -> None:
        self.acknowledged: list[str] = []
        self.unexpected: list[int] = []
        self._base = base
        self._lane = lane
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
        wanted, end = len(self.acknowledged) + more, time.monotonic() + START_BOUND_S
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < end, "nothing is acknowledged any more"
            time.sleep(0.01)

    def _report(self) -> None:
        number = 0
        with httpx2.Client(base_url=self._base, timeout=5.0, headers={"x-api-token": self._token}) as client:
            while not self._ended.is_set():
                code = f"C{self._lane}-{number}"
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


@dataclass(frozen=True, slots=True)
class World:
    """A service as a process of its own, its base URL, where it stores reports, and what is killed with it."""

    service: ServerProcess
    base: str
    reports: QueueSettings
    redis: RedisServer | None


@pytest.fixture(params=["embedded", pytest.param("redis", marks=pytest.mark.redis)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    (port,) = free_ports(1)
    settings = {
        "DATA_DIR": str(embedded_world(tmp_path / "world")),
        "TOKEN_FILE": str(tmp_path / "tokens.sqlite"),
        "QUOTA_CLASSES": '{"default": {"reads": 1, "suggest": 1, "reports": 1000000}}',
        "REPORTS": request.param,
        "REPORTS_FILE": str(tmp_path / "reports.sqlite"),
    }
    reports, redis = QueueSettings(path=tmp_path / "reports.sqlite", timeout=30.0), None
    if request.param == "redis":
        redis = request.getfixturevalue("own_redis")
        settings["REDIS_URL"] = redis.url
        reports = QueueSettings(kind="redis", redis=RedisAccess(redis.url), timeout=30.0)
    command = ["/usr/bin/env", *(f"SHOP_DIRECTORY_{name}={value}" for name, value in settings.items())]
    command += [sys.executable, "-m", "shop_directory", "serve", "--port", str(port)]
    process = ServerProcess("the service", command, tmp_path / "service.log")
    with ExitStack() as exit_code:
        exit_code.callback(process.stop)
        process.launch()
        yield World(process, f"http://127.0.0.1:{port}", reports, redis)


@pytest.mark.slow
@pytest.mark.rule("Q5", "A9")
@pytest.mark.timeout(120 + 20 * KILLS)
def test_an_acknowledged_report_survives_kills_of_the_service_and_of_redis(world: World, tmp_path: Path) -> None:
    token = issue(tmp_path / "tokens.sqlite")
    with ExitStack() as streams:
        lanes = [streams.enter_context(Reporting(world.base, token.text, lane)) for lane in range(LANES)]
        for _ in range(KILLS):
            stream_on(lanes)
            world.service.kill()
            world.service.launch()
            stream_on(lanes)
            if world.redis is not None:
                world.redis.kill()
                world.redis.start()
        stream_on(lanes)
    reports, waiting = stored_in(world.reports)
    stored = Counter(report.code for report in reports)
    acknowledged = {code for lane in lanes for code in lane.acknowledged}
    assert [status for lane in lanes for status in lane.unexpected] == []
    assert acknowledged - set(stored) == set(), "acknowledged and lost"
    assert [code for code, times in stored.items() if times > 1] == [], "doubled"
    # Of the last report of each lane the answer may have been cut off.
    assert len(set(stored) - acknowledged) <= LANES
    assert waiting == len(reports), "without its re-check"
    assert len(acknowledged) >= 10 * LANES * KILLS


def stream_on(lanes: list[Reporting]) -> None:
    for lane in lanes:
        lane.stream_on(5)
