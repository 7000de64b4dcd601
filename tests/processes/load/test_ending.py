"""How a service ends on signals, with a report on its way or at once; how busy the machine is does not matter."""

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.reports.opening import QueueSettings
from tests.processes.endurance.worlds import Location
from tests.processes.load.questions import http
from tests.processes.load.test_stopping import DRAIN_S, END_S, stored_codes
from tests.support.callers import in_redis, issue
from tests.support.service_process import Service, serving


@contextmanager
def a_report_on_its_way(service: Service, token: str, code: str) -> Iterator[socket.socket]:
    """The head of a report and half of its body are sent; the rest is for the test to send."""
    body = json.dumps({"shop_domain": "s3", "code": code, "reason": "invalid"})
    request = http("POST", "/tool/report_code", body, {"x-api-token": token}).encode()
    rest = len(body) - 10
    with socket.create_connection(("127.0.0.1", service.port), timeout=END_S) as caller:
        caller.sendall(request[:-rest])
        time.sleep(0.2)
        yield caller
        caller.sendall(request[-rest:])
        came = b""
        while some := caller.recv(65_536):
            came += some
        assert came.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in came


@pytest.mark.rule("O1", "Q5")
def test_a_report_whose_rest_comes_after_the_signal_is_answered_and_stored(embedded: Location, tmp_path: Path) -> None:
    settings = {**embedded.settings(), "DRAIN_SECONDS": str(DRAIN_S)}
    with serving(tmp_path / "service", settings) as service:
        token = issue(service.tokens).text
        with a_report_on_its_way(service, token, "DRAINING"), a_report_on_its_way(service, token, "DRAINED"):
            service.signal(signal.SIGTERM)
            time.sleep(DRAIN_S + 0.5)
        assert service.ended() == 0
    assert stored_codes(QueueSettings(path=service.reports)) == {"DRAINING": 1, "DRAINED": 1}


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.redis)])
@pytest.mark.parametrize("signals", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT,)], ids=["term twice", "int"])
def test_a_second_sigterm_or_a_sigint_ends_it_without_draining(
    embedded: Location,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    workers: int,
    signals: tuple[signal.Signals, ...],
) -> None:
    settings = {**embedded.settings(), "DRAIN_SECONDS": "60"}
    if workers > 1:
        settings |= in_redis(request.getfixturevalue("redis_url"), "ending")
    with serving(tmp_path / "service", settings, options=("--workers", str(workers))) as service:
        began = time.monotonic()
        for number in signals:
            service.signal(number)
            time.sleep(1.0)
        service.ended()
        assert time.monotonic() - began < 10.0
        assert service.wrong_lines() == []
