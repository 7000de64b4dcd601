"""Mixed traffic over all transports for a long time, with generations replaced meanwhile: nothing fails, nothing grows.

Eight seconds; SHOP_DIRECTORY_SOAK_SECONDS=600 is the long form. What grows slowly shows in the long form alone: the
short one still warms up, and is held to a bound that only something gross passes.
"""

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.worlds import COLOURS, Location, embedded_location, opensearch_location, write_world
from tests.processes.load.conftest import SHOPS
from tests.processes.load.plan import Plan, Question, Watch, load
from tests.processes.load.questions import http, mcp, reads, report_code, suggestion, tool, usual
from tests.support.callers import in_redis, issue, issue_in_redis
from tests.support.service_process import serving
from tests.support.wire import Era

SECONDS: Final = float(os.environ.get("SHOP_DIRECTORY_SOAK_SECONDS", "8"))
IS_LONG: Final = SECONDS >= 600
CLIENTS: Final = 6
MEMORY_GROWTH: Final = 1.05 if IS_LONG else 1.3
# What may come and go while it is looked: connections to the engine and Redis, files of a generation.
DESCRIPTORS: Final = 1.1 if IS_LONG else 2.0
# In the long form as many in the first fifth as readers of generations stay open: then nothing more is to come.
SWAPS: Final = 20 if IS_LONG else 2
_OPS_KEY: Final = "a-key-of-the-soak-test"

# Status and code, by question.
Expected = dict[Question, tuple[int, str]]


def expected_of(token: str) -> Expected:
    right = (
        *usual(token),
        *reads(token),
        tool("list_coupons", {}, token),
        report_code(token),
        tool("report_issue", {"subject_type": "shop", "shop_domain": "s4", "reason": "unreachable"}, token),
        mcp(Era.STATELESS, "get_trust", {"shop_domain": "s6"}, token),
        mcp(Era.HANDSHAKE, "list_categories", {}, token),
        Question("health", http("GET", "/health")),
        Question("ready", http("GET", "/ready")),
        Question("openapi", http("GET", "/openapi.json")),
        *(Question(path, http("GET", path, headers={"x-ops-key": _OPS_KEY})) for path in _OPERATIONS),
    )
    wrong = {
        tool("get_shop", {"shop_domain": "unknown.internal"}, token): (404, "shop_not_found"),
        tool("find_shop", {"query": "lamp", "category": "nothing-such"}, token): (400, "unknown_category"),
        tool("find_shop", {"query": "lamp", "limit": 1_000}, token): (400, "invalid_input"),
        tool("get_trust", {"shop_domain": "s6"}): (401, "token_required"),
        Question("not JSON", http("POST", "/tool/get_shop", "{")): (400, "invalid_input"),
        Question("too large", http("POST", "/tool/get_shop", "a" * 70_000)): (413, "body_too_large"),
        Question("no such path", http("GET", "/nothing")): (404, "not_found"),
        Question("other method", http("GET", "/tool/get_shop")): (405, "method_not_allowed"),
        suggestion("limit=3", name="suggest without q"): (400, "invalid_input"),
        suggestion("q=lamp&limit=99"): (400, "invalid_input"),
        Question("no key", http("GET", "/api/ops/state")): (401, "ops_key_required"),
        mcp(Era.STATELESS, "get_shop", {"shop_domain": "unknown.internal"}, token): (200, "shop_not_found"),
        mcp(Era.HANDSHAKE, "get_trust", {"shop_domain": "s6"}): (401, "token_required"),
    }
    return dict.fromkeys(right, (200, "")) | wrong


_OPERATIONS: Final = ("/api/ops/state", "/metrics/resources", "/metrics")


def soak(location: Location, folder: Path, settings: dict[str, str], issued: Callable[[Path], str]) -> None:
    first, second = (write_world(folder / colour, colour, SHOPS) for colour in COLOURS)
    catalogues = (first, second)
    location.build(first)
    with serving(folder / "service", {**location.settings(), **settings, "OPS_KEY": _OPS_KEY}) as service:
        expected = expected_of(issued(service.tokens))
        questions = tuple(expected)
        # All files of an embedded generation stay open with its readers: begin with a second generation, as it goes on.
        location.build(second)
        with (
            Watch(service, SECONDS / 200).looking() as watch,
            load(Plan((service.port,), questions, CLIENTS, pause=0.03)) as making,
        ):
            for swap in range(SWAPS):
                time.sleep(SECONDS / (SWAPS + 1))
                location.build(catalogues[swap % 2])
            time.sleep(SECONDS / (SWAPS + 1))
            result = making.stopped()
        assert result.cut == ()
        failures = Counter(
            f"{questions[row.question].name[:100]}: {row.status} {row.code}"
            for row in result.rows
            if (row.status, row.code) != expected[questions[row.question]]
        )
        assert failures == {}
        assert {row.question for row in result.rows} == set(range(len(questions)))
        assert service.wrong_lines() == []
    grown = {
        "memory": watch.growth(lambda vitals: vitals.memory),
        "descriptors": watch.growth(lambda vitals: vitals.descriptors),
        "threads": watch.growth(lambda vitals: vitals.threads),
    }
    print(f"{len(result.rows)} answers in {result.seconds:.0f} s; {watch.seen[-1]}; grown {grown}")  # noqa: T201 - figures
    assert grown["memory"] < MEMORY_GROWTH
    assert grown["descriptors"] < DESCRIPTORS
    assert grown["threads"] < DESCRIPTORS


@pytest.mark.slow
@pytest.mark.timeout(120 + 2 * SECONDS)
def test_nothing_fails_and_nothing_grows_over_the_embedded_engine(tmp_path: Path) -> None:
    """Takes a quarter of a minute: the last fifth of `SECONDS` is compared with the second one, between builds."""
    with embedded_location(tmp_path) as location:
        soak(location, tmp_path, {}, lambda tokens: issue(tokens).text)


@pytest.mark.slow
@pytest.mark.opensearch
@pytest.mark.redis
@pytest.mark.timeout(120 + 2 * SECONDS)
def test_nothing_fails_and_nothing_grows_over_opensearch_and_redis(
    opensearch_url: str, tmp_path: Path, redis_url: str
) -> None:
    """Takes a quarter of a minute, as the one above."""
    prefix = f"soak-{time.monotonic_ns()}"
    settings = in_redis(redis_url, prefix)
    with opensearch_location(opensearch_url, tmp_path) as location:
        soak(location, tmp_path, settings, lambda _: issue_in_redis(redis_url, prefix).text)
