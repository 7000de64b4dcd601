"""The README, then the tools and how to run it, in one shell, as a newcomer does.

Clone, start, check, ask each tool, issue tokens, go on with Redis, then with OpenSearch: nothing is left out but what
the list of what is not run names.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from service.limits.policy import ANONYMOUS, WITH_TOKEN
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from shop_directory.settings.reading import PREFIX
from tests.people.docs.conftest import MakeWorld
from tests.people.docs.pages import BY_PATH, SHELL
from tests.people.docs.world import commands, sample_catalogue, without_comment

README: Final = BY_PATH["README.md"]
TOOLS: Final = BY_PATH["docs/tools.md"]
RUNNING: Final = BY_PATH["docs/running.md"]
_ASKED: Final = re.compile(r"^curl '?localhost:8080/(?:tool/)?(\w+)")
_ROW: Final = re.compile(r"^\| `(\w+)` \| .+ \| (optional|required) \|$", re.MULTILINE)
TAKEN: Final = {"status": "wird gemeldet, Pruefung laeuft"}
KIEFERNHAUS: Final = ["shop_kiefernhaus", "shop_store-kiefernhaus"]
SENSIBLE: Final[dict[str, Callable[[Any], bool]]] = {
    "suggest": lambda answer: answer["shops"][0]["domain"] == "lumen-larch.internal",
    "find_shop": lambda answer: [shop["id"] for shop in answer["results"]] == KIEFERNHAUS,
    "list_categories": lambda answer: answer["total_count"] == len(answer["results"]) > 20,
    "get_shop": lambda answer: (answer["id"], len(answer["offers"])) == (KIEFERNHAUS[0], answer["offers_total"]),
    "get_shops": lambda answer: (
        ([entry["shop"] and entry["shop"]["id"] for entry in answer["results"]], answer["found"])
        == ([KIEFERNHAUS[0], "shop_lumen-larch", None], 2)
    ),
    "list_coupons": lambda answer: answer["results"][0]["code"] == "*RIMONA*" and answer["withheld"]["expired"] > 0,
    "get_shipping_policy": lambda answer: (answer["collected"], answer["ships_to"]) == (True, "yes"),
    "get_shop_policies": lambda answer: (answer["returns"]["days"], answer["shipping"]["ships_to"]) == (30, "yes"),
    "get_trust": lambda answer: answer["status"] == "signals_collected" and len(answer["signals"]) > 2,
    "report_code": lambda answer: answer == TAKEN,
    "report_issue": lambda answer: answer == TAKEN,
    "monetize_offer": lambda answer: answer["affiliate"]["applied"] and bool(answer["monetization"]["disclosure"]),
    "resolve_checkout_url": lambda answer: (
        answer["checkout_url"] == "https://lumen-larch.internal/lamps/larch-desk-lamp"
    ),
    "resolve_conflict": lambda answer: [answer["from"]["id"], answer["to"]["id"]] == KIEFERNHAUS,
}


def calls() -> dict[str, str]:
    given = [command for block in TOOLS.blocks if block.language == SHELL for command in commands(block.text)]
    return {asked[1]: without_comment(command) for command in given if (asked := _ASKED.match(command))}


@pytest.mark.rule("I1", "I2", "I68", "I78")
@pytest.mark.opensearch
@pytest.mark.redis
@pytest.mark.timeout(600)
def test_the_readme_and_what_it_leads_to_can_be_typed_from_the_first_command_to_the_last(
    make_world: MakeWorld, source: Path, opensearch_url: str, redis_url: str, own_prefix: str, tmp_path: Path
) -> None:
    """Takes most of a minute: some forty commands run one after the other, each in a process of its own."""
    world = make_world(
        cloned=False,
        stands_for={
            "<this repository>": str(source),
            "/path/to/catalogue": str(sample_catalogue(tmp_path / "catalogue")),
            "http://127.0.0.1:9200": opensearch_url,
            "redis://127.0.0.1:6379/0": redis_url,
        },
        SHOP_DIRECTORY_INDEX_PREFIX=own_prefix,
        SHOP_DIRECTORY_REDIS_PREFIX=own_prefix,
    )
    for page in (README, TOOLS, RUNNING):
        for block in page.blocks:
            if block.language == SHELL:
                world.do(block)
    answers = {asked: orjson.loads(world.printed[command]) for asked, command in calls().items()}
    assert {asked: answer for asked, answer in answers.items() if not SENSIBLE[asked](answer)} == {}
    world.shell.end_lasting()


def test_there_is_one_call_of_every_tool_and_of_suggest() -> None:
    assert list(calls()) == ["suggest", *(tool.name for tool in REGISTRY)]


@pytest.mark.rule("I1", "I80")
def test_the_table_has_every_tool_with_its_token_rule() -> None:
    assert _ROW.findall(README.text) == [(tool.name, tool.token.value) for tool in REGISTRY]


@pytest.mark.rule("Q2")
def test_the_quotas_are_those_that_hold_by_default() -> None:
    assert ANONYMOUS.reports == 0
    assert f"| without a token | {ANONYMOUS.reads:,} | {ANONYMOUS.suggest:,} | none |" in RUNNING.text
    assert f"| with a token | {WITH_TOKEN.reads:,} | {WITH_TOKEN.suggest:,} | {WITH_TOKEN.reports:,} |" in RUNNING.text


def test_the_examples_of_settings_set_what_they_seem_to(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in re.findall(rf"({PREFIX}[A-Z_]+)=('[^']*'|\S+)", RUNNING.text):
        if name.removeprefix(PREFIX).lower() in Settings.model_fields:
            monkeypatch.setenv(name, value.strip("'"))
    settings = Settings()
    assert (settings.quota_classes["partner"].reads, settings.quota_anonymous.reads) == (12_000, 60)
    assert (settings.token_store, settings.reports, settings.limiter) == ("redis", "redis", "redis")
