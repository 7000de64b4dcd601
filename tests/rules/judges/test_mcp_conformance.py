"""The protocol's own conformance suite against the service, both revisions."""

from pathlib import Path
from typing import Final

import pytest

from tests.rules.judges.conformance_suite import installed_suite, judge

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
