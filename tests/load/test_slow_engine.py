"""An engine that takes two seconds an answer: it is not asked more for it, and nobody waits beyond the deadline.

And callers who do not wait at all: what was done for them is given up.
"""

import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.callers import issue
from tests.e2e.rpc import Era
from tests.endurance.places import Place
from tests.load.loads import load, loaded
from tests.load.plan import Plan, quantile
from tests.load.questions import mcp, reads, suggestion, tool
from tests.load.relay import CountingRelay, counting_relay
from tests.load.serving import Service, serving

SLOW_S: Final = 2.0
# The deadline of a request, and what it takes to tell that it has passed.
ANSWER_S: Final = 2.0
CALLS: Final = 200
CALLERS: Final = 20
LEAVING: Final = 50
# Until good answers of before count no more, and one deadline.
OPEN_S: Final = 5.0 + 1.8
BACK_S: Final = 10.0

pytestmark = [pytest.mark.slow, pytest.mark.opensearch]


@pytest.fixture
def relay(opensearch: Place) -> Iterator[CountingRelay]:
    """To the OpenSearch of the place."""
    with counting_relay(opensearch.target) as relay:
        yield relay


@pytest.fixture
def service(opensearch: Place, relay: CountingRelay, tmp_path: Path) -> Iterator[Service]:
    """The service, its engine behind the relay; as many requests at once as there are callers who leave."""
    settings = {**opensearch.settings(), "OPENSEARCH_URLS": relay.url, "MAX_CONCURRENCY": str(LEAVING)}
    with serving(tmp_path / "service", settings) as service:
        yield service


@pytest.mark.rule("E3", "E2.wait", "E1.retry_after")
@pytest.mark.parametrize("only", ["", "_search"], ids=["everything", "searches"])
def test_a_slow_engine_is_asked_no_more_than_once_a_request_and_soon_not_at_all(
    service: Service, relay: CountingRelay, only: str
) -> None:
    token = issue(service.tokens).text
    questions = (
        *reads(token),
        suggestion("q=lam"),
        mcp(Era.STATELESS, "find_shop", {"query": "lam"}, token),
        mcp(Era.HANDSHAKE, "get_shop", {"shop_domain": "s4"}, token),
    )
    warm = loaded(Plan((service.port,), questions, 4, seconds=1.0))
    assert {(row.status, row.code) for row in warm.rows} == {(200, "")}

    # Each of the callers waits for its answer, then asks again.
    relay.only, relay.delay = only, SLOW_S
    before = len(relay.asked)
    with load(Plan((service.port,), questions, CALLERS, pause=0.05)) as making:
        time.sleep(OPEN_S + 1.0)
        told = making.stopped()
    asked = relay.asked[before:]
    failed = [row for row in told.rows if row.code]

    assert told.cut == ()
    assert len(told.rows) >= CALLS
    # list_categories and what is kept of the stamp need no search, for as long as the stamp is confirmed.
    assert {(row.status, row.code) for row in failed} <= {(503, "backend_unavailable"), (200, "backend_unavailable")}
    assert {questions[row.question].mcp for row in failed} == {True, False}
    assert all(row.retry for row in failed if not questions[row.question].mcp)
    assert max(row.seconds for row in told.rows) < ANSWER_S
    assert len(asked) <= 1.1 * len(told.rows), Counter(asked)
    late = [row for row in told.rows if row.at > told.rows[-1].at - 1.0]
    assert quantile([row.seconds for row in late], 0.5) < 0.1
    assert service.wrong_lines() == []

    relay.delay = 0.0
    well = time.monotonic()
    with load(Plan((service.port,), questions, 4, pause=0.02)) as making:
        time.sleep(4.0)
        again = making.stopped()
    failures = [row.at for row in again.rows if row.code or row.status != 200]
    assert max(failures, default=well) - well < BACK_S - 7.0
    assert again.rows[-1].status == 200


@pytest.mark.rule("E1.retry_after")
@pytest.mark.parametrize("door", ["rest", "suggest", "mcp"])
def test_for_callers_who_leave_nothing_is_worked_on(service: Service, relay: CountingRelay, door: str) -> None:
    token = issue(service.tokens).text
    question = {
        "rest": tool("find_shop", {"query": "lamp"}, token),
        "suggest": suggestion("q=lam"),
        "mcp": mcp(Era.STATELESS, "find_shop", {"query": "lamp"}, token),
    }[door]
    other = tool("get_shop", {"shop_domain": "s4"}, token)
    loaded(Plan((service.port,), (question, other), 1, seconds=0.5))

    relay.only, relay.delay = "_search", SLOW_S
    before = len(relay.asked)
    callers = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(LEAVING)]
    for caller in callers:
        caller.sendall(question.raw.encode())
    time.sleep(0.4)
    # All places are taken.
    assert {row.code for row in loaded(Plan((service.port,), (other,), 1, seconds=0.2)).rows} == {"overloaded"}
    for caller in callers:
        caller.close()
    relay.delay = 0.0
    time.sleep(0.2)

    # Long before any of the searches could have been answered.
    assert len(relay.asked) - before == LEAVING
    assert relay.left == LEAVING
    free = loaded(Plan((service.port,), (other,), 1, seconds=0.5))
    assert {(row.status, row.code) for row in free.rows} == {(200, "")}
    assert service.wrong_lines() == []
    outcomes = [line for line in service.log.read_text().splitlines() if '"outcome":"left"' in line]
    assert len(outcomes) == LEAVING
