"""What the pages for operators name is there: every error, every variable of the composition, every command."""

import re
import subprocess
from typing import Final

from service.errors import ServiceError
from tests.people.containers.composition import BOUND_S, composition, program
from tests.support.real.sources import REPOSITORY

DOCS: Final = REPOSITORY / "docs"
PAGES: Final = (DOCS / "operations.md", DOCS / "containers.md")
OPERATIONS, CONTAINERS = (page.read_text(encoding="utf-8") for page in PAGES)
_NAMES: Final = re.compile(r"^\| ((?:`[\w.]+`(?:, )?)+) \|", re.MULTILINE)


def named(text: str, title: str) -> set[str]:
    """What the first column of the table below a title names."""
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"`([\w.]+)`", " ".join(_NAMES.findall(section))))


def test_every_error_that_a_caller_can_get_has_its_line() -> None:
    assert named(OPERATIONS, "Errors that callers see") == {kind.code for kind in ServiceError.__subclasses__()}


def test_every_alert_has_its_line() -> None:
    alerts = re.findall(
        r"^\| ([a-z][\w -]+) \| `", (DOCS / "metrics.md").read_text("utf-8").partition("## Alerts")[2], re.MULTILINE
    )
    runbook = OPERATIONS.partition("## When you are called")[2]
    assert len(alerts) > 5
    assert [alert for alert in alerts if alert not in runbook] == []


def test_every_variable_of_the_composition_is_documented_and_no_other() -> None:
    words = [program("docker-compose"), "--file", str(REPOSITORY / "docker-compose.yml"), "--env-file", "/dev/null"]
    done = subprocess.run(
        [*words, "config", "--variables"], capture_output=True, text=True, timeout=BOUND_S, check=True
    )
    variables = {line.split()[0] for line in done.stdout.splitlines()[1:]}
    assert named(CONTAINERS, "Settings") == variables


def test_every_container_is_documented_and_no_other() -> None:
    assert named(CONTAINERS, "What is there") == {*composition()["services"], *composition()["volumes"]}
