"""An engine that takes two seconds an answer: it gets no more requests for it, and no caller waits beyond the deadline.

And callers who do not wait at all: what was done for them is given up.
"""

import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from tests.processes.endurance.locations import Location
from tests.processes.load.loads import load, loaded
from tests.processes.load.plan import Plan, quantile
from tests.processes.load.questions import mcp, reads, suggestion, tool
from tests.processes.load.relay import CountingRelay, counting_relay
from tests.support.callers import issue
from tests.support.rpc import Era
from tests.support.served import post
from tests.support.service_process import Service, serving

SLOW_S: Final = 2.0
# The deadline of a request, and the time to report that it has passed.
ANSWER_S: Final = 2.0
CALLS: Final = 200
CALLERS: Final = 20
LEAVING: Final = 50
# Until all callers have been let in: well before the first of their searches runs out of time (1.5 s).
ARRIVED_S: Final = 1.0
# Until good answers of before count no more, and one deadline.
OPEN_S: Final = 5.0 + 1.8
BACK_S: Final = 10.0

pytestmark = [pytest.mark.slow, pytest.mark.opensearch]


@pytest.fixture(scope="module")
def relay_of_module(opensearch: Location) -> Iterator[CountingRelay]:
    """To the OpenSearch of the location."""
    with counting_relay(opensearch.target) as relay:
        yield relay


@pytest.fixture
def relay(relay_of_module: CountingRelay) -> CountingRelay:
    """The relay, which delays nothing yet."""
    relay_of_module.delay, relay_of_module.left = 0.0, 0
    return relay_of_module


@pytest.fixture(scope="module")
def service(
    opensearch: Location, relay_of_module: CountingRelay, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The service, its engine behind the relay; as many requests at once as there are callers who leave."""
    settings = {**opensearch.settings(), "OPENSEARCH_URLS": relay_of_module.url, "MAX_CONCURRENCY": str(LEAVING)}
    with serving(tmp_path_factory.mktemp("service"), settings) as service:
        yield service


@pytest.mark.rule("E3", "E2.wait", "E1.retry_after")
def test_a_slow_engine_is_asked_no_more_than_once_a_request_and_soon_not_at_all(
    service: Service, relay: CountingRelay
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
    relay.only, relay.delay = "_search", SLOW_S
    before = len(relay.asked)
    with load(Plan((service.port,), questions, CALLERS, pause=0.05)) as making:
        time.sleep(OPEN_S + 1.0)
        result = making.stopped()
    asked = relay.asked[before:]
    failed = [row for row in result.rows if row.code]

    assert result.cut == ()
    assert len(result.rows) >= CALLS
    # list_categories and what is cached for the stamp need no search, for as long as the stamp is confirmed.
    assert {(row.status, row.code) for row in failed} <= {(503, "backend_unavailable"), (200, "backend_unavailable")}
    assert {questions[row.question].mcp for row in failed} == {True, False}
    assert all(row.retry for row in failed if not questions[row.question].mcp)
    assert max(row.seconds for row in result.rows) < ANSWER_S
    assert len(asked) <= 1.1 * len(result.rows), Counter(asked)
    late = [row for row in result.rows if row.at > result.rows[-1].at - 1.0]
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
@pytest.mark.parametrize("transport", ["rest", "mcp"])
def test_for_callers_who_leave_nothing_is_worked_on(service: Service, relay: CountingRelay, transport: str) -> None:
    token = issue(service.tokens).text
    arguments = {"query": "lamp"}
    rest, over_mcp = tool("find_shop", arguments, token), mcp(Era.STATELESS, "find_shop", arguments, token)
    question = rest if transport == "rest" else over_mcp
    logged = _logged_as_left(service)
    loaded(Plan((service.port,), (suggestion("q=amb"), tool("get_shop", {"shop_domain": "s4"}, token)), 1, seconds=0.5))
    relay.only, relay.delay = "_search", SLOW_S
    before = len(relay.asked)
    with ExitStack() as stack:
        address = ("127.0.0.1", service.port)
        callers = [stack.enter_context(socket.create_connection(address, ANSWER_S)) for _ in range(LEAVING)]
        for caller in callers:
            caller.sendall(question.raw.encode())
        until = time.monotonic() + ARRIVED_S
        while _searches(relay, before) != LEAVING:
            assert time.monotonic() < until
            time.sleep(0.01)
        # The bound of concurrent requests is reached.
        assert _asked_another(service, token) == (503, "overloaded")
        for caller in callers:
            caller.close()
        relay.delay = 0.0
        time.sleep(0.2)

        # Long before any of the searches could have been answered.
        assert _searches(relay, before) == LEAVING
        assert relay.left == LEAVING
    assert _asked_another(service, token) == (200, "")
    assert service.wrong_lines() == []
    assert _logged_as_left(service) == logged + LEAVING


@pytest.mark.rule("C1")
def test_suggestions_are_answered_while_searches_are_slow(service: Service, relay: CountingRelay) -> None:
    question = suggestion("q=lam")
    loaded(Plan((service.port,), (question,), 1, seconds=0.5))
    relay.only, relay.delay = "_search", SLOW_S
    before = len(relay.asked)

    run = loaded(Plan((service.port,), (question,), 4, seconds=3.0, pause=0.02))

    assert {(row.status, row.code) for row in run.rows} == {(200, "")}
    assert max(row.seconds for row in run.rows) < ANSWER_S
    assert _searches(relay, before) == 0


def _searches(relay: CountingRelay, before: int) -> int:
    """Searches among the requests after so many; the rest is the look at the stamp that is due each second."""
    lines = relay.asked[before:]
    searches = [line for line in lines if "search" in line]
    assert all("_mget" in line for line in lines if line not in searches), lines
    return len(searches)


def _asked_another(service: Service, token: str) -> tuple[int, str]:
    """The status and code of something else that is asked now; from here, as a process takes its time to begin."""
    reply = post(service.base, "/tool/get_shop", {"shop_domain": "s4"}, x_api_token=token)
    return reply.status, reply.json.get("code", "")


def _logged_as_left(service: Service) -> int:
    return service.log.read_text(encoding="utf-8").count('"outcome":"left"')
