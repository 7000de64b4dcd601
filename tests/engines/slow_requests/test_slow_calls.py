"""No call of any tool takes long, whatever it asks for, and whatever shops and codes a feed states (A14, F17).

The cost of a call may grow with its answer, and not with the catalogue. SHOP_DIRECTORY_FUZZED_REQUESTS=100000 is the
long form: this many calls among 100,000 shops.
"""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from time import process_time_ns
from typing import Any, Final, NamedTuple

import orjson
import pytest

from service.calls.dispatch import to_wire
from service.errors import InvalidInputError, ServiceError
from service.reports.sqlite import SqliteReports
from service.tools.registry import REGISTRY
from service.tools.request import validated
from service.tools.tool import Tool, ToolContext
from shop_directory.search.embedded.engine import EmbeddedBackend
from tests.engines.slow_requests.conftest import FUZZED, HostileIndex
from tests.support.generated_calls import GeneratedCalls
from tests.support.processor import slowness

# The middle of the years in which the codes of the hostile index are valid.
NOW: Final = datetime(2031, 1, 1, 12, tzinfo=UTC)
CALLS: Final = FUZZED or 1_000
_AGAIN: Final = 5
# Milliseconds of a usual processor's time of a call, besides those for each kilobyte of its answer.
BOUND: Final = 10.0
# An audit compares up to 200 shops, and counts what ten merges would affect.
BOUNDS: Final = {"resolve_conflict": 40.0}
FOR_A_KILOBYTE: Final = 0.12

Call = tuple[Tool[Any], dict[str, Any]]


class Cost(NamedTuple):
    """The least processor time of a call in milliseconds, and the length of its answer in bytes."""

    ms: float
    length: int


Ask = Callable[[Call], Cost]
TOOLS: Final[dict[str, Tool[Any]]] = {tool.name: tool for tool in REGISTRY}
UNKNOWN: Final = tuple(f"unknown-{number}.internal" for number in range(20))


@pytest.fixture(scope="module")
def ask(hostile_index: HostileIndex, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Asks the hostile index, as a caller over REST from Germany."""
    backend = EmbeddedBackend(hostile_index.directory)
    reports = SqliteReports(tmp_path_factory.mktemp("reports") / "reports.sqlite")
    with asyncio.Runner() as runner:
        snapshot = runner.run(backend.snapshot())
        context = ToolContext(snapshot, NOW, "rest", "DE", None, reports, "a caller")

        async def timed(call: Call) -> Cost:
            tool, arguments = call
            request = validated(tool.request, arguments)
            start = process_time_ns()  # of all threads: searches run in threads
            try:
                answer: object = to_wire(await tool.run(request, context))
            except ServiceError as error:
                answer = error.code
            return Cost((process_time_ns() - start) / 1e6, len(orjson.dumps(answer)))

        yield lambda call: min(runner.run(timed(call)) for _ in range(_AGAIN))
        runner.run(backend.close())


def worst(index: HostileIndex) -> Iterator[Call]:
    """The calls that took longest once, or could: of the shop with the most records, and of as many as a call takes."""
    first, *others = ids = [shop["id"] for shop in index.shops]
    for name in ("list_coupons", "get_shipping_policy", "get_shop_policies"):
        for shops in ([first], UNKNOWN, others[:20], [first, *UNKNOWN[1:]]):
            yield TOOLS[name], {"shop_domains": list(shops), **({} if name == "list_coupons" else {"country": "AT"})}
    yield TOOLS["list_coupons"], {}
    yield TOOLS["get_shops"], {"shop_domains": ids[:100]}
    yield TOOLS["get_shops"], {"shop_domains": [f"unknown-{number}.internal" for number in range(100)]}
    for offset in (0, 900, 100_000):
        yield TOOLS["get_shop"], {"shop_domain": first, "offers_offset": offset}
    for other in (None, others[0], index.shops[-1]["id"]):
        yield TOOLS["resolve_conflict"], {"from_shop_id": first, "to_shop_id": other}
        yield TOOLS["resolve_conflict"], {"from_shop_id": others[-1], "to_shop_id": other}
    every = {"ships_to": "AT", "include_unsettled": True, "facets": ["category", "country"], "limit": 100}
    for codes in ({}, {"has_code": True}, {"verified_code": True}):
        yield TOOLS["find_shop"], {"query": "", **every, **codes}
        yield TOOLS["find_shop"], {"query": "shop books", **every, **codes, "countries": ["DE", "AT", "CH", "FR", "PL"]}


@pytest.mark.rule("A14", "F3", "F17")
@pytest.mark.timeout(240 + FUZZED // 10)
@pytest.mark.parametrize("name", TOOLS)
def test_no_call_of_a_tool_takes_long_but_for_a_long_answer(ask: Ask, hostile_index: HostileIndex, name: str) -> None:
    generated = [(TOOLS[tool], arguments) for tool, arguments in GeneratedCalls(hostile_index.catalogue, 1).take(CALLS)]
    calls = [call for call in (*worst(hostile_index), *generated) if call[0].name == name and _is_valid(call)]
    assert len(calls) > CALLS // (4 * len(TOOLS))
    slow = {}
    slower = slowness()
    for call in calls:
        cost = ask(call)
        if cost.ms >= slower * (BOUNDS.get(name, BOUND) + FOR_A_KILOBYTE * cost.length / 1_000):
            slow[str(call[1])] = cost
    assert slow == {}


def _is_valid(call: Call) -> bool:
    try:
        validated(call[0].request, call[1])
    except InvalidInputError:
        return False
    return True


@pytest.mark.rule("A4", "F17")
def test_coupons_of_a_shop_cost_the_same_whatever_coupons_the_catalogue_has(
    ask: Ask, hostile_index: HostileIndex
) -> None:
    known = [shop["id"] for shop in hostile_index.shops[1:21]]
    calls: dict[str, dict[str, Any]] = {
        "an unknown shop": {"shop_domain": UNKNOWN[0]},
        "20 unknown shops": {"shop_domains": list(UNKNOWN)},
        "a shop": {"shop_domain": known[0]},
        "20 shops": {"shop_domains": known},
    }
    costs = {text: ask((TOOLS["list_coupons"], arguments)).ms for text, arguments in calls.items()}
    # Several times what they take on an idle machine, and a fraction of what a scan of all coupons takes.
    bounds = {"an unknown shop": 3.0, "20 unknown shops": 8.0, "a shop": 4.0, "20 shops": 20.0}
    slower = slowness()
    assert {text: ms for text, ms in costs.items() if ms >= bounds[text] * slower} == {}
