"""One address opens more connections than it may have, or than the system lets the service have: others are served.

1,100 connections; SHOP_DIRECTORY_CONNECTIONS=10050 is the long form.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.worlds import Location
from tests.processes.load.plan import quantile
from tests.processes.load.questions import http
from tests.support.real.sources import REPOSITORY
from tests.support.service_process import Service, serving

CONNECTIONS: Final = int(os.environ.get("SHOP_DIRECTORY_CONNECTIONS", "1100"))
P99_S: Final = 0.05
# Other work of the machine only ever adds: one round of these in which the bound holds shows that it can.
ROUNDS: Final = 3
_HEALTH: Final = http("GET", "/health").encode()
_SUGGEST: Final = http("GET", "/suggest?q=lam").encode()
_OTHER: Final = "127.0.0.2"
# The system's default for a process, and no more than that.
_FEW_DESCRIPTORS: Final = "-n 1024"


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5.0, source_address=(address, 0))


def status_of(caller: socket.socket, request: bytes = _HEALTH) -> int:
    """The status of the answer; 0 when the connection is closed without one."""
    try:
        caller.sendall(request)
        came = caller.recv(65_536)
    except ConnectionError:
        return 0
    return int(came[9:12]) if came else 0


@contextmanager
def silent(port: int, count: int) -> Iterator[None]:
    """So many connections of 127.0.0.1, made by another process, that say nothing."""
    command = [sys.executable, "-m", "tests.processes.load.silent", str(port), str(count)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield
            assert process.stdout.readline() == b"tried\n"
        finally:
            process.kill()


def waits_of_another_address(service: Service, seconds: float) -> list[float]:
    """How long each answer took; all are right."""
    waits = []
    until = time.monotonic() + seconds
    with connect(service.port, _OTHER) as caller:
        while time.monotonic() < until:
            began = time.monotonic()
            assert status_of(caller, _SUGGEST) == 200
            waits.append(time.monotonic() - began)
            time.sleep(0.002)
            with connect(service.port, _OTHER) as fresh:
                assert status_of(fresh) == 200
    return waits


@pytest.mark.slow
@pytest.mark.rule("E6")
@pytest.mark.parametrize("descriptors", ["", _FEW_DESCRIPTORS])
def test_an_address_with_too_many_connections_slows_down_no_other_one(
    embedded: Location, tmp_path: Path, descriptors: str
) -> None:
    times: list[float] = []
    with serving(tmp_path / "service", embedded.settings(), descriptors=descriptors) as service:
        while len(times) < ROUNDS and (not times or times[-1] >= P99_S):
            with silent(service.port, CONNECTIONS):
                times.append(quantile(waits_of_another_address(service, 3.0 + CONNECTIONS / 1_000), 0.99))
        assert service.wrong_lines() == []
        assert "the bound on connections per address is reached" in service.log.read_text(encoding="utf-8")
    print(f"p99 of each round: {times}")  # noqa: T201 - the figures, for pytest -s
    assert times[-1] < P99_S, times


@pytest.mark.rule("E6", "E1.retry_after")
def test_where_all_connections_have_a_request_the_next_one_is_refused_with_a_problem_document(
    embedded: Location, tmp_path: Path
) -> None:
    settings = {**embedded.settings(), "MAX_CONNECTIONS": "20", "MAX_CONNECTIONS_PER_ADDRESS": "5"}
    head = http("POST", "/tool/find_shop", "{}").encode()[:-2]
    with serving(tmp_path / "service", settings) as service, ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(connect(service.port)).sendall(head)
        time.sleep(0.2)
        with connect(service.port) as refused:
            refused.sendall(_HEALTH)
            came = refused.recv(1)
            # A client that still sends can read the reason.
            refused.sendall(b"x" * 400_000)
            while part := refused.recv(65_536):
                came += part
        with connect(service.port, _OTHER) as other:
            assert status_of(other) == 200
    lines, _, body = came.partition(b"\r\n\r\n")
    assert lines.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nretry-after: 1\r\n" in lines
    assert b"\r\nconnection: close" in lines
    assert json.loads(body)["code"] == "overloaded"


@pytest.mark.rule("E6")
def test_connections_on_which_something_is_not_http_make_room_and_get_no_second_answer(
    embedded: Location, tmp_path: Path
) -> None:
    settings = {**embedded.settings(), "MAX_CONNECTIONS_PER_ADDRESS": "5"}
    # The application answers without reading the body, which is refused first.
    broken = b"POST /nowhere HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n"
    with serving(tmp_path / "service", settings) as service, ExitStack() as stack:
        callers = [stack.enter_context(connect(service.port)) for _ in range(5)]
        assert {status_of(caller, broken) for caller in callers} == {400}
        with connect(service.port) as another:
            assert status_of(another) == 200
        assert {caller.recv(1) for caller in callers} == {b""}
        assert service.wrong_lines() == []
