"""Whatever goes wrong in a tool or behind it, no transport lets any of it out but the request id (E3, E5)."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from service.app import create_app
from service.search.failures import BackendUnavailable
from service.settings.service import Settings
from tests.rules.transports.test_probes_and_headers import UNAVAILABLE, FailingBackend
from tests.support.problems import problem
from tests.support.raising import RAISING, SECRET
from tests.support.rpc import Era, call
from tests.support.sample import SampleService
from tests.support.served import post, served
from tests.support.transports import MODES, over_mcp, stdio_transport

PROBLEM: Final = problem(
    500, "internal_error", "The service failed to answer. The operator finds the cause by the request id."
)
# Whatever the example of a tool is, its code fails before it looks at it.
CALLS: Final[dict[str, dict[str, Any]]] = {tool.name: tool.examples[0].arguments for tool in RAISING}


@pytest.fixture(scope="module")
def failing(sample: SampleService) -> Iterator[str]:
    """The sample's service with tools that all fail."""
    settings = _settings(sample)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.parts.REGISTRY", RAISING)
        app = create_app(settings)
    with served(app) as base:
        yield base


@pytest.fixture(scope="module")
def away(sample: SampleService) -> Iterator[str]:
    """The sample's service without its engine."""
    with served(create_app(_settings(sample), search=FailingBackend(BackendUnavailable(SECRET)))) as base:
        yield base


@pytest.mark.rule("E5", "E5.request_id", "E1", "E2", "I58")
@pytest.mark.parametrize("tool", CALLS)
def test_a_fault_in_a_tool_is_an_internal_error_over_http(
    failing: str, sample: SampleService, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    raw = json.dumps(CALLS[tool]).encode()
    with caplog.at_level(logging.ERROR):
        reply = post(failing, f"/tool/{tool}", raw, x_api_token=sample.token)
        replies = [call(failing, era, tool, raw, x_api_token=sample.token) for era in Era]
    assert reply.summary == (500, "application/problem+json", PROBLEM)
    results = [other.json["result"] for other in replies]
    for result in results:
        assert (result["isError"], "structuredContent" in result) == (True, False)
        assert [block["text"] for block in result["content"]] == [reply.body.decode()]
    for one in (reply, *replies):
        sent = f"{dict(one.headers)} {one.body.decode()}"
        assert [word for word in (SECRET, "RuntimeError", "KeyError", "Traceback") if word in sent] == []
    ids = [reply.headers["x-request-id"], *(result["_meta"]["x-request-id"] for result in results)]
    assert [request_id for request_id in ids if f"request={request_id}" not in caplog.text] == []
    assert SECRET in caplog.text


@pytest.mark.rule("I58", "E3", "E1.retry_after", "E5", "I7", "I5")
@pytest.mark.parametrize("tool", CALLS)
def test_with_the_engine_away_every_tool_fails_and_none_is_empty(away: str, sample: SampleService, tool: str) -> None:
    raw = json.dumps(CALLS[tool]).encode()
    reply = post(away, f"/tool/{tool}", raw, x_api_token=sample.token)
    assert reply.summary == (503, "application/problem+json", UNAVAILABLE)
    assert (reply.headers["retry-after"], "x-generation" in reply.headers) == ("1", False)
    for era in Era:
        result = call(away, era, tool, raw, x_api_token=sample.token).json["result"]
        assert (result["isError"], "structuredContent" in result) == (True, False)
        assert [block["text"] for block in result["content"]] == [reply.body.decode()]


@pytest.mark.rule("E5", "E5.request_id", "E2", "I4")
@pytest.mark.parametrize("mode", MODES)
async def test_a_fault_in_a_tool_is_an_internal_error_over_stdio(sample: SampleService, mode: str) -> None:
    variables = {**sample.variables, "SHOP_DIRECTORY_API_TOKEN": sample.token}
    async with stdio_transport(sample.index, mode, variables, module="tests.support.raising") as client:
        for tool, arguments in CALLS.items():
            answer = await over_mcp(client, tool, arguments)
            assert (json.loads(answer.text), answer.structured, answer.failed) == (PROBLEM, None, True)
            assert len(answer.request_id) == 32


def _settings(sample: SampleService) -> Settings:
    return Settings(
        data_dir=sample.index,
        token_file=Path(sample.variables["SHOP_DIRECTORY_TOKEN_FILE"]),
        reports_file=Path(sample.variables["SHOP_DIRECTORY_REPORTS_FILE"]),
        request_timeout=10.0,
    )
