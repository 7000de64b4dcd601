"""The judges of others: Schemathesis, the protocol's conformance suite, the quality of tool definitions."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from service.settings.service import Settings
from service.tools.registry import REGISTRY
from tests.rules.judges.conformance_suite import installed_suite, judge
from tests.rules.judges.inexpressible import ENTRIES, Entry, is_inexpressible
from tests.support.sample import SampleService, sample_service
from tests.support.served import get, post

EXAMPLES: Final = int(os.environ.get("SHOP_DIRECTORY_SCHEMATHESIS") or 800)
BOUND_S: Final = 120 + EXAMPLES // 10
REPOSITORY: Final = Path(__file__).parents[3]
PHASES: Final = ("examples", "coverage", "fuzzing")
# What would make a green run say less than it seems to.
SILENCERS: Final = ("rate_limited", "missing_auth", "unsupported_regex", "unresolvable_reference", "base_url_mismatch")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[SampleService]:
    folder = tmp_path_factory.mktemp("sample")
    with sample_service(folder, commit=settings.commit, built_at=settings.built_at) as service:
        yield service


@pytest.mark.rule("I42", "I84", "E1", "E6", "R3", "O1")
@pytest.mark.slow
@pytest.mark.timeout(BOUND_S + 60)
def test_schemathesis_finds_nothing(sample: SampleService, tmp_path: Path) -> None:
    """Takes half a minute: three phases ask each operation, the third as often as `EXAMPLES` allows."""
    operations = sum(len(methods) for methods in get(sample.base, "/openapi.json").json["paths"].values())
    report = _judged(sample.base, sample.token, tmp_path, EXAMPLES // operations)
    assert (report["exit_code"], report["failures"], report["errors"]) == (0, [], [])
    assert {phase: report["phases"][phase]["status"] for phase in PHASES} == dict.fromkeys(PHASES, "success")
    assert report["operations"]["tested"] == operations
    assert report["test_cases"]["generated"] > EXAMPLES / 2
    assert {name: report["warnings"][name] for name in SILENCERS} == {name: [] for name in SILENCERS}


@pytest.mark.rule("I42", "E1")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.code} {entry.field} {entry.message}")
def test_a_refusal_that_no_schema_expresses_is_needed_and_narrow(base: str, token: str, entry: Entry) -> None:
    content = get(base, "/openapi.json").json["paths"][entry.path]["post"]["requestBody"]["content"]
    validator = Draft202012Validator(content["application/json"]["schema"])
    assert [*validator.iter_errors(entry.refused), *validator.iter_errors(entry.accepted)] == []
    with_token = {"x-api-token": token}
    refused = post(base, entry.path, entry.refused, **with_token)
    problem = refused.json
    assert (refused.status, problem["code"], is_inexpressible(refused.status, refused.body)) == (400, entry.code, True)
    assert all(entry.explains(problem["code"], error) for error in problem.get("errors", [{}]))
    assert post(base, entry.path, entry.accepted, **with_token).status == 200


@pytest.mark.rule("E1")
@pytest.mark.parametrize(
    ("status", "code", "errors"),
    [
        (500, "page_too_deep", []),
        (400, "invalid_input", []),
        (400, "invalid_input", [{"field": "query", "message": "must be a string"}]),
        (
            400,
            "invalid_input",
            [{"field": "shop_domain", "message": "must not be blank"}, {"field": "limit", "message": "is wrong"}],
        ),
    ],
)
def test_any_other_refusal_of_valid_input_stays_a_finding(status: int, code: str, errors: list[dict[str, str]]) -> None:
    assert not is_inexpressible(status, json.dumps({"code": code, "errors": errors}).encode())


def _judged(base: str, token: str, directory: Path, examples: int) -> Any:  # noqa: ANN401 - the report's JSON
    """Run it in a process and a folder of its own, with so many examples for an operation; returns its report."""
    report = directory / "report.json"
    options = ["--phases", ",".join(PHASES), "--checks", "all", "--mode", "all", "--generation-deterministic"]
    options += ["--max-examples", str(examples), "--continue-on-failure", "--request-timeout", "15"]
    options += ["--header", f"x-api-token: {token}", "--report", "json", "--report-json-path", str(report)]
    done = subprocess.run(
        [str(Path(sys.executable).with_name("st")), "--no-color", "run", f"{base}/openapi.json", *options],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "SCHEMATHESIS_HOOKS": "tests.rules.judges.inexpressible"},
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report.read_text(encoding="utf-8"))


# Of the scenarios that a revision requires of servers; the suite runs some more, which it does not score.
REQUIRED: Final = {"2025-11-25": 30, "2026-07-28": 37}
UNSCORED: Final = {
    "2025-11-25": {"server-session-lifecycle", "json-schema-2020-12", "server-sse-polling"},
    "2026-07-28": {"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"},
}


@pytest.fixture(scope="session")
def suite() -> Path:
    return installed_suite()


@pytest.mark.rule("I3", "E1.transport", "R5")
@pytest.mark.parametrize(("revision", "passing"), [("2025-11-25", 7), ("2026-07-28", 11)])
def test_the_service_fails_only_what_asks_for_fixtures_or_for_a_session(
    suite: Path, base: str, revision: str, passing: int
) -> None:
    verdict = judge(suite, f"{base}/mcp", revision, f"baseline-service-{revision}.yml")
    assert verdict.exit_code == 0, verdict.printed
    assert _scored(verdict.passed | verdict.failed, revision) == REQUIRED[revision]
    assert _scored(verdict.passed, revision) == passing


def _scored(scenarios: frozenset[str], revision: str) -> int:
    return sum(not name.startswith("tasks-") for name in scenarios - UNSCORED[revision])


@pytest.mark.rule("R2.schema")
def test_nothing_is_wrong_with_how_the_tools_are_described(base: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tdqs", "lint", "--url", f"{base}/mcp", "--fail-on", "warning", "--format", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert {tool["name"] for tool in report["tools"]} == {tool.name for tool in REGISTRY}
