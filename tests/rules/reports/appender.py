"""A process that reports without end until it is killed, and writes down each report that was acknowledged.

`python -m tests.rules.reports.appender KIND TARGET FROM,FROM,...`: one lane a number, each lane counts on from its
own. A line "lane number" is written in one write after the store has answered for that report, never before. A
report that was not acknowledged is sent again until it is; every third acknowledged one is sent once more, and must be
known.
"""

import asyncio
import sys
from pathlib import Path
from typing import Final

from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings, open_queue
from service.reports.protocol import ReportQueue, ReportsUnavailable
from tests.rules.reports.stores import report

_AGAIN_AFTER_S: Final = 0.02
_TIMEOUT_S: Final = 1.0


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _acknowledged(queue: ReportQueue, lane: int, number: int) -> bool:
    while True:
        try:
            return await queue.append(report(f"s{number}", source=f"lane-{lane}"))
        except ReportsUnavailable:
            await asyncio.sleep(_AGAIN_AFTER_S)


async def _report_on(queue: ReportQueue, lane: int, number: int) -> None:
    while True:
        await _acknowledged(queue, lane, number)
        _print_line(f"{lane} {number}")
        if number % 3 == 0 and await _acknowledged(queue, lane, number):
            _print_line(f"doubled {lane} {number}")
        number += 1


async def _report(kind: str, target: str, starts: list[int]) -> None:
    settings = (
        QueueSettings(kind="redis", redis=RedisAccess(target), timeout=_TIMEOUT_S)
        if kind == "redis"
        else QueueSettings(kind="embedded", path=Path(target), timeout=_TIMEOUT_S)
    )
    queue = open_queue(settings)
    await asyncio.gather(*(_report_on(queue, lane, start) for lane, start in enumerate(starts)))


if __name__ == "__main__":
    asyncio.run(_report(sys.argv[1], sys.argv[2], [int(start) for start in sys.argv[3].split(",")]))
