"""Clients that read too slowly are cut by their own bound; the others notice nothing of it."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.locations import embedded_location
from tests.processes.endurance.worlds import COLOURS, write_world
from tests.processes.load.loads import load, loaded
from tests.processes.load.plan import LoadResult, Plan, Question
from tests.processes.load.questions import http, suggestion, tool
from tests.support.service_process import Service, serving

SLOW: Final = 10
_EVERYTHING: Final = http("POST", "/tool/list_coupons", "{}")
_NORMAL: Final = (tool("get_shop", {"shop_domain": "s4"}), suggestion("q=lam"))


@pytest.fixture
def large_answers(tmp_path: Path) -> Iterator[Service]:
    """The service, with bounds of a second, whose coupons are together more than a system keeps for a connection."""
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
