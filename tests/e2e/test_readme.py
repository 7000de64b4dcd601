"""The README's calls work as they stand on the sample catalogue, and what it says of tools and settings is so."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import pytest

from service.limits.policy import ANONYMOUS, WITH_TOKEN
from service.settings import PREFIX, Settings
from service.tools.registry import REGISTRY
from tests.e2e.sample import SampleService

README: Final = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
CURL: Final = shutil.which("curl")
SHELL: Final = shutil.which("sh")
HOST: Final = "localhost:8080"
_COMMAND: Final = re.compile(r"^    (curl (?:.*\\\n)*.*)$", re.MULTILINE)
_ASKED: Final = re.compile(rf"{HOST}/(?:tool/)?(\w+)")
_ROW: Final = re.compile(r"^\| `(\w+)` \| .+ \| (optional|required) \|$", re.MULTILINE)
TAKEN: Final = {"status": "wird gemeldet, Pruefung laeuft"}

COMMANDS: Final = {_ASKED.findall(command)[0]: command for command in _COMMAND.findall(README)}
SENSIBLE: Final[dict[str, Callable[[Any], bool]]] = {
    "suggest": lambda told: told["shops"][0]["domain"] == "lumen-larch.internal",
    "find_shop": lambda told: [shop["domain"] for shop in told["results"]] == ["lumen-larch.internal"],
    "list_categories": lambda told: told["total_count"] == len(told["results"]) > 20,
    "get_shop": lambda told: (told["id"], len(told["offers"])) == ("shop_lumen-larch", told["offers_total"]),
    "list_coupons": lambda told: told["results"][0]["code"] == "LARCH-APPLIED" and told["withheld"]["expired"] > 0,
    "get_shipping_policy": lambda told: (told["collected"], told["ships_to"]) == (True, "yes"),
    "get_trust": lambda told: told["status"] == "signals_collected" and len(told["signals"]) > 2,
    "report_code": lambda told: told == TAKEN,
    "report_issue": lambda told: told == TAKEN,
    "monetize_offer": lambda told: told["affiliate"]["applied"] and bool(told["monetization"]["disclosure"]),
    "resolve_checkout_url": lambda told: told["checkout_url"] == "https://lumen-larch.internal/p/lamp",
    "resolve_conflict": lambda told: told["candidates"][0]["to"]["domain"] != told["from"]["domain"],
}


def test_there_is_one_call_of_every_tool_and_of_suggest() -> None:
    assert list(COMMANDS) == ["suggest", *(tool.name for tool in REGISTRY)]
    assert len(_COMMAND.findall(README)) == len(COMMANDS)


@pytest.mark.rule("I1", "I2", "I68", "I78")
@pytest.mark.parametrize("asked", SENSIBLE)
def test_a_call_of_the_readme_is_answered_sensibly(sample: SampleService, asked: str) -> None:
    assert CURL is not None, "these tests need curl"
    assert SHELL is not None, "these tests need a shell"
    command = COMMANDS[asked].replace(HOST, urlsplit(sample.base).netloc)
    told = subprocess.run(
        [SHELL, "-c", f"{command} --silent --show-error --write-out '\n%{{http_code}}'"],
        capture_output=True,
        timeout=30,
        check=True,
        env={"PATH": str(Path(CURL).parent), "TOKEN": sample.token},
    ).stdout
    body, _, status = told.rpartition(b"\n")
    assert (status, body[:1]) == (b"200", b"{"), body
    assert SENSIBLE[asked](orjson.loads(body)), body


@pytest.mark.rule("I1", "I80")
def test_the_table_has_every_tool_with_its_token_rule() -> None:
    assert _ROW.findall(README) == [(tool.name, tool.token.value) for tool in REGISTRY]


@pytest.mark.rule("Q2")
def test_the_quotas_are_those_that_hold_by_default() -> None:
    assert ANONYMOUS.reports == 0
    assert f"| without a token | {ANONYMOUS.reads:,} | {ANONYMOUS.suggest:,} | none |" in README
    assert f"| with a token | {WITH_TOKEN.reads:,} | {WITH_TOKEN.suggest:,} | {WITH_TOKEN.reports:,} |" in README


def test_every_setting_that_is_named_exists_and_its_example_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    named = set(re.findall(rf"{PREFIX}([A-Z_]+)", README))
    assert named
    assert {name.lower() for name in named} - set(Settings.model_fields) == set()
    examples = re.findall(rf"({PREFIX}[A-Z_]+)=('[^']*'|\S+)", README)
    for name, value in examples:
        monkeypatch.setenv(name, value.strip("'"))
    settings = Settings()
    assert (settings.quota_classes["partner"].reads, settings.quota_anonymous.reads) == (12_000, 60)
    assert (settings.token_store, settings.reports, settings.limiter) == ("redis", "redis", "redis")


@pytest.mark.parametrize("command", sorted(set(re.findall(r"shop-directory ((?:token|rechecks|index) \w+)", README))))
def test_every_command_that_is_named_exists(command: str) -> None:
    program = shutil.which("shop-directory", path=str(Path(sys.executable).parent))
    assert program is not None
    done = subprocess.run([program, *command.split(), "--help"], capture_output=True, timeout=30, check=False)
    assert (command, done.returncode) == (command, 0), done.stderr
