"""How well the tools explain themselves, by the Tool Definition Quality Score's deterministic checks."""

import json
import subprocess
import sys

import pytest

from service.tools.registry import REGISTRY


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
