"""The command itself, as a process against sockets and in this one: what it prints, and how it ends."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.types import Receive, Scope, Send
from typer.testing import CliRunner

from service.app import create_app
from service.settings.service import Settings
from shop_directory.command_line import command_line
from shop_directory.conformance.rules import RULES, UNSEEN
from tests.people.check.breaking import rewriting
from tests.people.check.changes import more, turn
from tests.people.check.stage import OPS_KEY, right_settings
from tests.people.commands.page import command_descriptions
from tests.people.commands.world import run
from tests.support.callers import issue
from tests.support.served import served

_EXAMPLE: Final = "http://127.0.0.1:8080"
_NO_RULE: Final = "--only names an unknown rule; --list shows all rules."
EXAMPLES: Final = [
    example
    for command in command_descriptions()
    if command.words == "shop-directory check"
    for example in command.examples
]


@pytest.fixture(scope="module")
def settings(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return right_settings(sample_index, tmp_path_factory.mktemp("command"))


@pytest.fixture(scope="module")
def base(settings: Settings) -> Iterator[str]:
    with served(create_app(settings)) as url:
        yield url


def asked(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(command_line(), ["check", *words])
    return done.exit_code, done.stdout, done.stderr


def document_of(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output)
    return found


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_help_ends_well(example: str, base: str, tmp_path: Path) -> None:
    done = run(tmp_path, *example.replace(_EXAMPLE, base).split()[1:])
    assert (done.code, done.err) == (0, "")


def test_with_everything_given_all_that_can_be_seen_holds(base: str, settings: Settings, tmp_path: Path) -> None:
    token = issue(settings.token_file).text
    hidden = ("--under-review", "shop_quillomere", "--under-review", "zathrune.internal")
    variables = {"SHOP_DIRECTORY_API_TOKEN": token, "SHOP_DIRECTORY_OPS_KEY": OPS_KEY}
    done = run(tmp_path, "check", base, *hidden, "--write", "--json", **variables)
    document = done.document
    assert (done.code, done.err) == (0, "")
    assert document["counts"] == {"passed": len(RULES) - 1, "failed": 0, "not_seen": 1, "not_asked": 0}
    assert (document["base"], document["waited_seconds"]) == (base, 0)
    assert [rule["id"] for rule in document["rules"]] == [rule.id for rule in RULES]
    assert [rule for rule in document["rules"] if rule["outcome"] != "passed"] == [
        {
            "id": "I75",
            "statement": next(rule.statement for rule in RULES if rule.id == "I75"),
            "outcome": "not_seen",
            "reason": "a build without its commit and time",
            "finding": None,
        }
    ]
    assert (token in done.out, OPS_KEY in done.out) == (False, False)


def test_a_broken_rule_ends_with_1_and_says_what_came(settings: Settings) -> None:
    with served(rewriting("/tool/list_coupons", turn("total_count", more))(create_app(settings))) as url:
        code, printed, problems = asked(url, "--only", "I18,I20")
        json_code, as_json, _ = asked(url, "--only", "I18,I20", "--json")
    assert (code, json_code, problems) == (1, 1, "")
    for words in ("I18", "passed", "I20", "FAILED", "POST /tool/list_coupons {}", "total_count = "):
        assert words in printed
    document = document_of(as_json)
    assert [rule["outcome"] for rule in document["rules"]] == ["passed", "failed"]
    finding = document["rules"][1]["finding"]
    assert finding["request"] == "POST /tool/list_coupons {}"
    assert re.fullmatch(r"total_count = \d+ results \+ \d+ withheld", finding["expected"])
    assert re.fullmatch(r"total_count = \d+", finding["actual"])


def test_no_service_at_the_url_ends_with_3() -> None:
    message = "Nothing answers at http://127.0.0.1:9: no HTTP response (ConnectError)."
    assert asked("http://127.0.0.1:9/") == (3, "", f"{message}\n")
    code, printed, problems = asked("http://127.0.0.1:9/", "--json")
    assert (code, printed) == (3, "")
    assert json.loads(problems) == {"error": {"code": "unavailable", "message": message}}


def test_a_run_that_has_no_time_for_every_rule_ends_with_3_and_says_which(settings: Settings) -> None:
    app = create_app(settings)

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in {"/health", "/tool/find_shop"}:
            time.sleep(0.2)
        await app(scope, receive, send)

    with served(slow) as url:
        code, printed, problems = asked(url, "--within", "2", "--only", "I1,I43,I52,I56,I57", "--json")
    document = document_of(printed)
    assert (code, document["counts"]["failed"]) == (3, 0)
    reasons = {rule["reason"] for rule in document["rules"] if rule["outcome"] == "not_asked"}
    assert reasons == {"the run has used its 2 seconds"}
    message = "Not every rule could be checked; the report has the reasons."
    assert json.loads(problems) == {"error": {"code": "unavailable", "message": message}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "URL must be the address of a service, such as https://shops.example."),
        (("shops.example",), "URL must be the address of a service, such as https://shops.example."),
        (("ftp://shops.example",), "URL must be the address of a service, such as https://shops.example."),
        (("http://[::1",), "URL must be the address of a service, such as https://shops.example."),
        (("http://shops.example:port",), "URL must be the address of a service, such as https://shops.example."),
        (("http://me:secret@shops.example",), "URL must have no credentials, no query and no fragment."),
        (("http://shops.example/?token=a",), "URL must have no credentials, no query and no fragment."),
        (("http://a.example", "--only", "I20,I999"), _NO_RULE),
        (("http://a.example", "--only", ""), _NO_RULE),
        (("http://a.example", "--token", "pass\nword"), "--token must be printable ASCII."),
        (("http://a.example", "--ops-key", "schlüssel"), "--ops-key must be printable ASCII."),
    ],
)  # fmt: skip
def test_a_wrong_url_or_option_ends_with_2_and_sends_no_request(words: tuple[str, ...], message: str) -> None:
    assert asked(*words) == (2, "", f"{message}\n")


def test_the_list_of_rules_has_their_needs_and_what_is_not_checked(base: str) -> None:
    code, printed, _ = asked("--list", "--json")
    document = document_of(printed)
    assert (code, len(document["rules"])) == (0, len(RULES))
    assert {"id": "I80", "needs": []}.items() <= next(r for r in document["rules"] if r["id"] == "I80").items()
    assert document["unseen"] == [{"id": rule_id, "reason": reason} for rule_id, reason in UNSEEN.items()]
    code, table, _ = asked("--list", "--only", "I37")
    assert code == 0
    assert all(word in table for word in ("I37", "--ops-key", "--token", "--write", "I58"))
