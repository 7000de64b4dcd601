"""Clients that send or read too slowly are cut, each by its own bound; the others notice nothing of it."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.locations import Location, embedded_location
from tests.processes.endurance.worlds import COLOURS, write_world
from tests.processes.load.loads import load, loaded
from tests.processes.load.plan import LoadResult, Plan, Question
from tests.processes.load.questions import http, suggestion, tool
from tests.support.service_process import Service, serving

BOUND_S: Final = 1.0
SLOW: Final = 10
_LATE_S: Final = 1.5
_EVERYTHING: Final = http("POST", "/tool/list_coupons", "{}")
_NORMAL: Final = (tool("get_shop", {"shop_domain": "s4"}), suggestion("q=lam"))


@pytest.fixture(scope="module")
def service(embedded: Location, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service, which works on few requests at once, with bounds of a second."""
    settings = {**embedded.settings(), "MAX_CONCURRENCY": "4"}
    with serving(tmp_path_factory.mktemp("service"), settings, module="tests.processes.load.bounded") as service:
        yield service


def drop_by_drop(port: int, whole: bytes, first: bytes = b"") -> float:
    """Send a byte every twentieth of a second after the first ones; returns after how long the service hung up."""
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as caller:
        began = time.monotonic()
        caller.sendall(first)
        caller.settimeout(0.05)
        for byte in whole:
            try:
                caller.send(bytes([byte]))
                if caller.recv(1_000) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        return time.monotonic() - began


def slow_head(port: int) -> float:
    return drop_by_drop(port, b"GET /suggest?q=lamp HTTP/1.1\r\nhost: 127.0.0.1\r\nx-filler: " + b"a" * 1_000)


def slow_body(port: int) -> float:
    head = b"POST /tool/find_shop HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
    return drop_by_drop(port, b" " * 200, first=head)


@pytest.mark.rule("E6")
@pytest.mark.parametrize("slowly", [slow_head, slow_body])
def test_a_slow_client_is_disconnected_after_its_bound_and_blocks_no_other_client(
    service: Service, slowly: Callable[[int], float]
) -> None:
    with load(Plan((service.port,), _NORMAL, 2, pause=0.01)) as making, ThreadPoolExecutor(SLOW) as pool:
        time.sleep(0.5)
        seconds = list(pool.map(slowly, [service.port] * SLOW))
        result = making.stopped()
    assert min(seconds) > 0.8 * BOUND_S
    assert max(seconds) < BOUND_S + _LATE_S, seconds
    assert_as_always(result)
    assert service.wrong_lines() == []


@pytest.fixture
def large_answers(tmp_path: Path) -> Iterator[Service]:
    """The same over a catalogue whose coupons, all together, are more than what a system keeps for a connection."""
    settings = {"MAX_CONCURRENCY": "4", "REQUEST_TIMEOUT": "10"}
    with embedded_location(tmp_path) as location:
        location.build(write_world(tmp_path / "catalogue", COLOURS[0], 3_000))
        with serving(
            tmp_path / "service", {**location.settings(), **settings}, module="tests.processes.load.bounded"
        ) as service:
            yield service


@pytest.mark.slow
@pytest.mark.rule("E6")
def test_a_client_that_reads_nothing_is_disconnected_after_its_bound(large_answers: Service) -> None:
    service = large_answers
    # What it opens for good with the first answers is open before.
    loaded(Plan((service.port,), (*_NORMAL, Question("everything", _EVERYTHING)), 4, seconds=1.5))
    time.sleep(0.3)
    before = service.vitals().descriptors
    with ExitStack() as stack:
        for _ in range(SLOW // 2):
            caller = stack.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            caller.connect(("127.0.0.1", service.port))
            # One after the other: the service works on few at once.
            caller.sendall(_EVERYTHING.encode() * 3)
            time.sleep(0.8)
        making = stack.enter_context(load(Plan((service.port,), _NORMAL, 2, pause=0.01)))
        until = time.monotonic() + 10.0
        # The two callers who are served have theirs.
        while service.vitals().descriptors > before + 2:
            assert time.monotonic() < until, "they are not cut"
            time.sleep(0.1)
        time.sleep(2.0)
        assert_as_always(making.stopped())
    assert service.wrong_lines() == []


def assert_as_always(result: LoadResult) -> None:
    assert result.cut == ()
    assert {(row.status, row.code) for row in result.rows} == {(200, "")}
    assert len(result.rows) > 50
