"""The fault matrix: each fault of OpenSearch and of Redis times each tool, and what is answered while it lasts.

A cell is one fault: all questions are asked before it, at once, when the service must have noticed, and until it is
over and all is as before. Once in CI; SHOP_DIRECTORY_FAULTS=all is twice each, with MCP in both eras.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Final

import pytest

from service.tools.registry import REGISTRY
from tests.processes.faults import breaking
from tests.processes.faults.breaking import Ground, ground_in
from tests.processes.faults.cell import QUESTIONS, Asker, Cell
from tests.support.callers import Issued
from tests.support.real.node_build import NodeBuild

ALL: Final = os.environ.get("SHOP_DIRECTORY_FAULTS") == "all"
TIMES: Final = 2 if ALL else 1
# For so many seconds may be answered from what was confirmed before (C1).
NOTICED_S: Final = 2.0

pytestmark = [pytest.mark.opensearch, pytest.mark.redis, pytest.mark.slow]

# What is answered while a fault lasts:
#   same       the very answer of before the fault, byte for byte, and for a report that it was taken
#   503        503 backend_unavailable with the time to try again; nothing is acknowledged
#   not_ready  503 not_ready
#   degraded   200, ready for reads, and says that reports can't be taken
# A read with OpenSearch away is never 404 or empty either: hence the rows of an unknown shop. Nothing here is 503
# overloaded: thirty questions at once are no load.
ENGINE: Final = """
asked      kill       stop       slow       full_disk  read_only
read       503        503        503        same       same
new_token  503        503        503        same       same
report     503        503        503        same       same
ready      not_ready  not_ready  not_ready  same       same
health     same       same       same       same       same
"""

# With its memory full, or read-only, Redis still finds tokens: so a new one counts. With a full disk it ends itself
# at the first write, the count of a quota, before it would answer for what is not on disk.
REDIS: Final = """
asked      kill      stop      slow      full_disk  full_memory  read_only
read       same      same      same      same       same         same
new_token  503       503       503       503        same         same
report     503       503       503       503        503          503
ready      degraded  degraded  degraded  degraded   degraded     degraded
health     same      same      same      same       same         same
"""

Breaks = Callable[[Ground], AbstractContextManager[None]]
ENGINE_FAULTS: Final[Mapping[str, Breaks]] = {
    "kill": breaking.killed_engine,
    "stop": breaking.stopped_engine,
    "slow": breaking.slow_engine,
    "full_disk": breaking.full_disk_engine,
    "read_only": breaking.read_only_engine,
}
REDIS_FAULTS: Final[Mapping[str, Breaks]] = {
    "kill": breaking.killed_redis,
    "stop": breaking.stopped_redis,
    "slow": breaking.slow_redis,
    "full_disk": breaking.full_disk_redis,
    "full_memory": breaking.full_memory_redis,
    "read_only": breaking.read_only_redis,
}
# What only a relay can do; its service has both parts through relays.
RELAYED: Final = "slow"


def columns(matrix: str) -> dict[str, dict[str, str]]:
    (_, *faults), *rows = (line.split() for line in matrix.strip().splitlines())
    declared = {kind: dict(zip(faults, outcomes, strict=True)) for kind, *outcomes in rows}
    return {fault: {question.name: declared[question.kind][fault] for question in QUESTIONS} for fault in faults}


def cells(matrix: str, faults: Mapping[str, Breaks], part: str) -> Iterator[object]:
    for fault, declared in columns(matrix).items():
        for turn in range(1, TIMES + 1):
            name = f"{part}-{fault}-{turn}" if ALL else f"{part}-{fault}"
            yield pytest.param(faults[fault], declared, fault == RELAYED, id=name)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, node_build: NodeBuild, redis_program: str) -> Iterator[Ground]:
    """One of each for the whole matrix; a cell leaves it as it found it."""
    with ground_in(tmp_path_factory.mktemp("faults"), node_build, redis_program) as ground:
        yield ground


@pytest.fixture(scope="module")
def known(ground: Ground) -> Issued:
    return ground.issue()


def test_every_tool_and_every_fault_has_its_declared_outcome() -> None:
    assert {question.tool for question in QUESTIONS} == {
        *(tool.name for tool in REGISTRY),
        *("/suggest", "/ready", "/health"),
    }
    assert [list(columns(matrix)) for matrix in (ENGINE, REDIS)] == [list(ENGINE_FAULTS), list(REDIS_FAULTS)]


@pytest.mark.rule("E3", "I58", "C1.stale", "Q1", "Q4", "Q5", "O1.degraded", "E1.retry_after", "E2", "E2.wait", "E5")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("breaks", "declared", "relayed"),
    [*cells(ENGINE, ENGINE_FAULTS, "opensearch"), *cells(REDIS, REDIS_FAULTS, "redis")],
)
def test_a_fault_is_reported_as_declared_and_passes(
    ground: Ground, known: Issued, breaks: Breaks, declared: Mapping[str, str], *, relayed: bool
) -> None:
    base = ground.relayed if relayed else ground.straight
    cell = Cell(Asker(base, known, ground.issue()), declared, both_eras=ALL)
    cell.look_before()
    with ExitStack() as fault:
        fault.enter_context(breaks(ground))
        began = time.monotonic()
        assert cell.wrong_while_it_begins() == []
        time.sleep(max(0.0, began + NOTICED_S - time.monotonic()))
        assert cell.wrong_when_noticed() == []
        assert cell.wrong_until_back(fault.close) == []
    assert cell.wrong_reports(*ground.stored_reports()) == []
