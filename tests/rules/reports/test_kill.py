"""Kill -9 under a stream of reports: what was acknowledged is there, once, and each with its re-check.

Three kills of each process; SHOP_DIRECTORY_KILLS=20 is the long form.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings, open_queue
from tests.rules.reports.stores import exported
from tests.support.real.redis import RedisServer
from tests.support.real.sources import REPOSITORY

pytestmark = pytest.mark.slow

KILLS: Final = int(os.environ.get("SHOP_DIRECTORY_KILLS", "3"))
LANES: Final = 6
STREAM_BOUND_S: Final = 30.0


class Appender:
    """A child process that reports, started and killed as often as wanted, and the list of what was acknowledged."""

    def __init__(self, kind: str, target: str, acknowledgements: Path) -> None:
        self._kind = kind
        self._target = target
        self._acknowledgements = acknowledgements
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Go on with the first report of each lane that was not acknowledged: its outcome is unknown."""
        starts = ",".join(str(1 + max(self.acknowledged(lane), default=-1)) for lane in range(LANES))
        command = [sys.executable, "-m", "tests.rules.reports.appender", self._kind, self._target, starts]
        with self._acknowledgements.open("ab") as acknowledgements:
            self._child = subprocess.Popen(command, cwd=REPOSITORY, stdout=acknowledgements)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def lines(self) -> list[str]:
        return (
            self._acknowledgements.read_text(encoding="utf-8").splitlines() if self._acknowledgements.exists() else []
        )

    def acknowledged(self, lane: int) -> list[int]:
        return [int(line.split()[1]) for line in self.lines() if line.split()[0] == str(lane)]

    def stream_on(self, seconds: float) -> None:
        """Wait until more was acknowledged, and then for some time more, so that a kill falls anywhere."""
        before = len(self.lines())
        end = time.monotonic() + STREAM_BOUND_S
        while len(self.lines()) < before + LANES:
            assert time.monotonic() < end, "nothing is acknowledged any more"
            time.sleep(0.02)
        time.sleep(seconds)


async def _judged(appender: Appender, settings: QueueSettings) -> tuple[int, int, int, int]:
    """How many acknowledged reports are lost, are doubled, were never sent, and lack a re-check."""
    queue = open_queue(settings)
    stored = Counter((one.source, one.shop_id) for one in await exported(queue))
    queued = Counter((one.report.source, one.report.shop_id) for one in (await queue.waiting(1_000_000)).rechecks)
    await queue.close()
    acknowledgements = {lane: appender.acknowledged(lane) for lane in range(LANES)}
    acknowledged = {(f"lane-{lane}", f"s{number}") for lane, numbers in acknowledgements.items() for number in numbers}
    # Of each lane one report may be stored whose answer the kill cut off.
    in_flight = {(f"lane-{lane}", f"s{max(numbers, default=-1) + 1}") for lane, numbers in acknowledgements.items()}
    said_to_be_new = sum(line.startswith("doubled") for line in appender.lines())
    return (
        len(acknowledged - set(stored)),
        sum(stored.values()) - len(stored) + said_to_be_new,
        len(set(stored) - acknowledged - in_flight),
        len(stored - queued) + len(queued - stored),
    )


@pytest.mark.redis
@pytest.mark.rule("Q5")
@pytest.mark.timeout(60 + 10 * KILLS)
async def test_kills_of_redis_and_of_the_reporting_process_lose_and_double_nothing(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    chance = random.Random(5)  # noqa: S311 - when to kill is no secret
    appender = Appender("redis", own_redis.url, tmp_path / "acknowledged")
    with ExitStack() as exit_code:
        exit_code.callback(appender.kill)
        appender.start()
        for _ in range(KILLS):
            appender.stream_on(chance.uniform(0.05, 0.4))
            own_redis.kill()
            time.sleep(chance.uniform(0, 0.2))
            own_redis.start()
            appender.stream_on(chance.uniform(0.05, 0.4))
            appender.kill()
            appender.start()
        appender.stream_on(0.1)
    settings = QueueSettings(kind="redis", redis=RedisAccess(own_redis.url), timeout=30.0)
    assert await _judged(appender, settings) == (0, 0, 0, 0)
    assert len(appender.lines()) > LANES * KILLS


@pytest.mark.rule("Q5")
@pytest.mark.timeout(60 + 10 * KILLS)
async def test_kills_of_the_process_that_writes_the_file_lose_and_double_nothing(tmp_path: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - as above
    path = tmp_path / "reports.sqlite"
    appender = Appender("embedded", str(path), tmp_path / "acknowledged")
    with ExitStack() as exit_code:
        exit_code.callback(appender.kill)
        for _ in range(KILLS):
            appender.start()
            appender.stream_on(chance.uniform(0.05, 0.4))
            appender.kill()
        appender.start()
        appender.stream_on(0.1)
    assert await _judged(appender, QueueSettings(kind="embedded", path=path, timeout=30.0)) == (0, 0, 0, 0)
    assert len(appender.lines()) > LANES * KILLS
