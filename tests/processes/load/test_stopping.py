"""Services are stopped and started again under load, behind callers that heed /ready: nothing is cut, nothing is lost.

Two stops; SHOP_DIRECTORY_STOPS=10 is the long form.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings
from tests.processes.endurance.worlds import Location
from tests.processes.load.plan import Plan, load
from tests.processes.load.questions import report_code, usual
from tests.processes.load.test_workers import lines_of, started
from tests.support.callers import in_redis, issue_in_redis, stored_in
from tests.support.service_process import Service, serving

STOPS: Final = int(os.environ.get("SHOP_DIRECTORY_STOPS", "2"))
CLIENTS: Final = 8
DRAIN_S: Final = 1.0
# Draining, and then as long as the server waits at most for running requests.
END_S: Final = DRAIN_S + 10.0
_SETTLED_S: Final = 0.7
_HOG: Final = "while True: pass"


def stored_codes(settings: QueueSettings) -> Counter[str]:
    return Counter(report.code or "" for report in stored_in(settings)[0])


def stop(service: Service) -> None:
    service.signal(signal.SIGTERM)
    began = time.monotonic()
    assert service.ended() == 0
    assert DRAIN_S <= time.monotonic() - began < END_S


@pytest.mark.slow
@pytest.mark.redis
@pytest.mark.rule("O1", "Q5")
@pytest.mark.timeout(90 + 15 * STOPS)
def test_no_request_is_cut_when_services_are_stopped_in_turn_under_load(
    embedded: Location, tmp_path: Path, redis_url: str
) -> None:
    """Takes a quarter of a minute: four starts of a service, and a second of draining at each stop."""
    prefix = f"stops-{time.monotonic_ns()}"
    token = issue_in_redis(redis_url, prefix).text
    settings = {**embedded.settings(), **in_redis(redis_url, prefix), "DRAIN_SECONDS": str(DRAIN_S)}
    questions = (*usual(token), report_code(token))
    with ExitStack() as stack:
        # One of a single process, and one of several.
        services = [
            stack.enter_context(serving(tmp_path / workers, settings, options=("--workers", workers)))
            for workers in ("1", "2")
        ]
        ports = tuple(service.port for service in services)
        making = stack.enter_context(load(Plan(ports, questions, CLIENTS, balanced=True, pause=0.01)))
        time.sleep(1.0)
        for turn in range(STOPS):
            stop(services[turn % 2])
            services[turn % 2].start()
            time.sleep(_SETTLED_S)
        result = making.stopped()
        assert [service.wrong_lines() for service in services] == [[], []]
    stored = stored_codes(QueueSettings(kind="redis", redis=RedisAccess(redis_url), prefix=prefix, timeout=10.0))
    assert result.cut == ()
    assert Counter(row.status for row in result.rows) == {200: len(result.rows)}
    assert len(result.rows) > 100
    of_reports = {f"LOAD-{row.number:08d}" for row in result.rows if questions[row.question].numbered}
    assert of_reports
    assert {code: stored[code] for code in of_reports} == dict.fromkeys(of_reports, 1)


@pytest.mark.redis
@pytest.mark.rule("O1")
def test_callers_that_connect_until_all_workers_have_ended_are_answered_or_refused_and_never_reset(
    embedded: Location, tmp_path: Path, redis_url: str
) -> None:
    settings = {**embedded.settings(), **in_redis(redis_url, f"late-{time.monotonic_ns()}"), "DRAIN_SECONDS": "0.5"}
    with serving(tmp_path / "service", settings, options=("--workers", "2")) as service:
        with ThreadPoolExecutor(CLIENTS) as callers:
            answered = [callers.submit(answered_until_refused, service.port) for _ in range(CLIENTS)]
            time.sleep(1.0)
            service.signal(signal.SIGTERM)
        assert service.ended() == 0
    assert sum(caller.result() for caller in answered) > 10 * CLIENTS


def answered_until_refused(port: int) -> int:
    """Connect for one request after another until nobody listens; returns how many were answered."""
    answered = 0
    while True:
        try:
            caller = socket.create_connection(("127.0.0.1", port), timeout=END_S)
        except ConnectionRefusedError:
            return answered
        with caller:
            caller.sendall(b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            assert caller.makefile("rb").read().startswith(b"HTTP/1.1 200 ")
        answered += 1


@pytest.mark.slow
@pytest.mark.redis
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system can't pin processes")
def test_workers_start_on_one_processor_under_full_load(embedded: Location, tmp_path: Path, redis_url: str) -> None:
    """Takes a quarter of a minute: four programs that never rest have the same processor."""
    settings = {**embedded.settings(), **in_redis(redis_url, "one-processor")}
    processors = os.sched_getaffinity(0)
    hogs = []
    try:
        os.sched_setaffinity(0, {min(processors)})
        hogs = [subprocess.Popen([sys.executable, "-c", _HOG]) for _ in range(4)]
        with serving(tmp_path / "service", settings, options=("--workers", "2")) as service:
            started(service, 2)
            assert lines_of(service, "ended") + lines_of(service, "hangs") == []
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        os.sched_setaffinity(0, processors)
