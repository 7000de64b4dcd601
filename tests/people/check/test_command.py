"""The command as a process and against any server: what it prints, how it ends, that it is polite and bounded."""

import asyncio
import io
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any, Final

import pytest
from rich.console import Console
from starlette.types import ASGIApp, Receive, Scope, Send
from typer.testing import CliRunner

from service.app import create_app
from service.settings.service import Settings
from shop_directory.command_line import command_line
from shop_directory.conformance.bounds import Bounds
from shop_directory.conformance.exchange import Client
from shop_directory.conformance.report import print_run, run_document
from shop_directory.conformance.rule import RuleOutcome
from shop_directory.conformance.rules import RULES, UNSEEN
from shop_directory.conformance.run import NoServiceError, RunOptions, run
from tests.people.check.breaking import ANY, Answered, Changed, answering, more, rewriting, turn
from tests.people.check.breaking import body as bodied
from tests.people.check.stage import OPS_KEY, Stage, right_settings
from tests.people.commands import world
from tests.support.callers import issue
from tests.support.loopback import listening
from tests.support.served import served

_NO_RULE: Final = "--only names an unknown rule; --list shows all rules."


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


def test_with_everything_given_all_that_can_be_seen_holds(base: str, settings: Settings, tmp_path: Path) -> None:
    token = issue(settings.token_file).text
    hidden = ("--under-review", "shop_quillomere", "--under-review", "zathrune.internal")
    variables = {"SHOP_DIRECTORY_API_TOKEN": token, "SHOP_DIRECTORY_OPS_KEY": OPS_KEY}
    done = world.run(tmp_path, "check", base, *hidden, "--write", "--json", **variables)
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


Spoken = Callable[[StreamRequestHandler], None]

_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED: Final = _OK + b"transfer-encoding: chunked\r\n\r\n"
# Time enough for an answer that comes, however busy the machine is.
BOUNDS = Bounds(timeout=5.0, within=20.0, requests=50)
SHORT = Bounds(timeout=0.3, within=3.0, requests=50)
SECRET = "sd_a-token-of-this-test"
_JSON = b"content-type: application/json"


def endless(handler: StreamRequestHandler) -> None:
    handler.wfile.write(CHUNKED)
    while True:
        handler.wfile.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")


def dripping(handler: StreamRequestHandler) -> None:
    handler.wfile.write(_OK + b"content-length: 1000000\r\n\r\n")
    while True:
        handler.wfile.write(b" ")
        time.sleep(0.05)


def silent(handler: StreamRequestHandler) -> None:
    handler.rfile.read()


def garbage(handler: StreamRequestHandler) -> None:
    handler.wfile.write(b"\x00\xff\x16\x03\x01 hello\r\n\r\n" * 50)


def heads(handler: StreamRequestHandler) -> None:
    handler.wfile.write(_OK)
    while True:
        handler.wfile.write(b"x-more: " + b"y" * 1000 + b"\r\n")


def cut_short(handler: StreamRequestHandler) -> None:
    handler.wfile.write(_OK + b'content-length: 1000\r\n\r\n{"results": [')


def plain(status: bytes, body: bytes, *headers: bytes) -> Spoken:
    def speak(handler: StreamRequestHandler) -> None:
        length = b"content-length: " + str(len(body)).encode()
        handler.wfile.write(b"\r\n".join((b"HTTP/1.1 " + status, length, *headers, b"connection: close", b"", body)))

    return speak


@contextmanager
def speaking(speak: Spoken) -> Iterator[tuple[str, list[bytes]]]:
    """A server on a loopback port; yields its base URL and the first line of each request that it got."""
    asked: list[bytes] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                asked.append(self.rfile.readline())
                while self.rfile.readline() not in {b"\r\n", b""}:
                    pass
                speak(self)

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}", asked


def judged(base: str, bounds: Bounds = BOUNDS) -> tuple[str, float]:
    """What a run against it comes to, and the seconds that it takes."""
    began = time.monotonic()
    with pytest.raises(NoServiceError) as raised:
        asyncio.run(run(RunOptions(base, SECRET, bounds=bounds), RULES))
    return str(raised.value), time.monotonic() - began


@pytest.mark.parametrize(
    ("speak", "came"),
    [
        (endless, "more than 4,194,304 bytes"),
        (dripping, "no complete response within 0.3 seconds"),
        (silent, "no complete response within 0.3 seconds"),
        (garbage, "no HTTP response (RemoteProtocolError)"),
        (heads, "no HTTP response (RemoteProtocolError)"),
        (cut_short, "no HTTP response (RemoteProtocolError)"),
    ],
    ids=["endless", "dripping", "silent", "garbage", "heads", "cut short"],
)
def test_a_server_that_never_answers_completely_is_no_service_and_left_early(speak: Spoken, came: str) -> None:
    with speaking(speak) as (base, asked):
        printed, seconds = judged(base, SHORT if speak in {dripping, silent} else BOUNDS)
    assert printed == f"Nothing answers at {base}: {came}."
    assert (len(asked), seconds < BOUNDS.timeout) == (1, True)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Welcome</html>",
        b'"\xff\xfe"',
        b"[" * 100_000,
        b'{"results": {}}',
        b"\x1f\x8b\x08\x00garbage",
        b"",
        b"null",
    ],
    ids=["html", "no UTF-8", "deep", "other JSON", "compressed", "empty", "null"],
)
def test_what_answers_otherwise_is_no_shop_directory(body: bytes) -> None:
    with speaking(plain(b"200 OK", body, _JSON, b"content-encoding: gzip")) as (base, asked):
        printed, _ = judged(base)
    assert printed == f"Something answers at {base}, but it is not a Shop Directory."
    assert [line.split()[1] for line in asked] == [
        b"/health",
        b"/tool/find_shop",
        b"/tool/list_categories",
        b"/tool/list_coupons",
        b"/openapi.json",
    ]


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with speaking(plain(b"200 OK", b"{}", _JSON)) as (elsewhere, asked_elsewhere):
        target = f"location: {elsewhere}/tool/find_shop".encode()
        with speaking(plain(b"307 Temporary Redirect", b"", target)) as (base, asked):
            printed, _ = judged(base)
    assert printed == f"Something answers at {base}, but it is not a Shop Directory."
    assert (len(asked), asked_elsewhere) == (5, [])


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with speaking(plain(b"200 OK", b"{}", _JSON)) as (proxy, asked_proxy), speaking(cut_short) as (base, asked):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("http_proxy", proxy)
        judged(base)
    assert (len(asked), asked_proxy) == (1, [])


def test_a_quota_that_is_used_up_for_long_ends_the_run_unjudged() -> None:
    with speaking(plain(b"429 Too Many Requests", b"{}", b"retry-after: 999999999999")) as (base, _):
        printed, seconds = judged(base)
    assert (
        printed == "The service cannot be checked: the quota for this request is used up for another 999999999 seconds."
    )
    assert seconds < BOUNDS.timeout


def test_a_quota_that_is_never_there_again_ends_with_the_time_of_the_run() -> None:
    with speaking(plain(b"429 Too Many Requests", b"{}", b"retry-after: 0")) as (base, _):
        printed, seconds = judged(base, replace(BOUNDS, within=1.0))
    assert printed == "The service cannot be checked: the run has used its 1 seconds."
    assert seconds < BOUNDS.timeout


HOSTILE = {
    "huge": b'{"id": "' + b"x" * 5_000_000 + b'"}',
    "no UTF-8": b'{"id": "\xff\xfe"}',
    "deep": b'{"id": ' * 900 + b"1" + b"}" * 900,
    "deep arrays": b'{"id": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    "lone surrogate": b'{"id": "\\ud800"}',
    "large numbers": b'{"id": 1e999, "offers": 99999999999999999999999999999999}',
    "names twice": b'{"id": "a", "id": {"id": []}}',
    "an array": b"[1, 2, 3]",
    "a number": b"17",
    "nothing": b"",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_body_breaks_rules_and_not_the_run(stage: Stage, body: bytes) -> None:
    rules = [rule for rule in RULES if rule.id in {"I9", "I11", "I54"}]
    found = stage.check(rules, answering("/tool/get_shop", bodied(body)))
    assert len(found.of(RuleOutcome.FAILED)) == len(rules)
    assert len(json.dumps(run_document(found, ()))) < 10_000


@pytest.mark.parametrize("name", ["deep", "an array", "nothing"])
def test_hostile_bodies_everywhere_but_at_one_tool_leave_every_rule_judged(stage: Stage, name: str) -> None:
    def change(answered: Answered) -> None:
        if answered.asked.path not in {"/tool/find_shop", "/health"}:
            answered.body = HOSTILE[name]

    found = stage.check(wrap=answering(ANY, change, None))
    assert len(found.verdicts) == len(RULES)
    assert len(found.of(RuleOutcome.FAILED)) > len(RULES) / 2
    assert [verdict for verdict in found.of(RuleOutcome.FAILED) if verdict.finding is None] == []


def test_what_came_is_shown_as_text_without_control_characters_and_without_credentials(stage: Stage) -> None:
    token = stage.options.token
    assert token is not None

    def change(answered: Answered) -> None:
        sent = dict(answered.asked.headers)
        answered.document = {"id": f"\x1b[2J\u202e[bold]{sent.get(b'x-api-token', b'').decode()}[/bold]", "name": []}

    rules = [rule for rule in RULES if rule.id in {"I9", "I54"}]
    found = stage.check(rules, answering("/tool/get_shop", change))
    assert [verdict.outcome for verdict in found.verdicts] == [RuleOutcome.FAILED, RuleOutcome.FAILED]
    shown = io.StringIO()
    print_run(found, (token,), Console(width=200, file=shown, color_system=None))
    printed = shown.getvalue() + json.dumps(run_document(found, (token,)), ensure_ascii=False)
    assert "[hidden]" in printed
    assert (token in printed, "\x1b" in printed, "\u202e" in printed) == (False, False, False)
    assert "[bold]" in printed


def test_the_request_is_reported_without_the_token(stage: Stage) -> None:
    rules = [rule for rule in RULES if rule.id == "I54"]
    found = stage.check(rules, answering("/tool/get_shop", bodied(b"[]")))
    finding = found.verdicts[0].finding
    assert finding is not None
    assert re.fullmatch(r'POST /tool/get_shop {"shop_domain":"[^"]+"} \(with x-api-token\)', finding.request)
    assert (finding.expected, finding.actual) == ("the body: an object", "body = []")


READING: Final = [rule for rule in RULES if not rule.alone and rule.id.startswith("I")]


def test_every_nth_refusal_is_waited_for_and_breaks_no_rule(stage: Stage) -> None:
    counted = 0

    def after(answered: Answered) -> None:
        nonlocal counted
        counted += 1
        if counted in {20, 40}:
            answered.be(429, {"status": 429, "code": "quota_exceeded"}, b"application/problem+json")
            answered.set_header(b"retry-after", b"0")

    found = stage.check(READING, lambda app: Changed(app, after=after), RunOptions(stage.options.base))
    assert [(verdict.rule.id, verdict.finding) for verdict in found.of(RuleOutcome.FAILED)] == []
    # "0" is a short wait all the same, so that a service that means no good is not asked without a pause.
    assert 0.1 <= found.waited <= 0.3
    assert counted == found.requests


def test_a_wait_that_several_answers_ask_for_is_one_wait_and_reported_once() -> None:
    reported: list[float] = []
    spent = Client("http://a.example", on_wait=reported.append)
    spent.wait_until(10.0, 11.0)
    spent.wait_until(10.25, 11.25)
    spent.wait_until(10.5, 11.0)
    assert (reported, spent.waited, spent.not_before) == ([1.0], 1.25, 11.25)
    spent.wait_until(12.0, 14.0)
    assert (reported, spent.waited, spent.not_before) == ([1.0, 2.0], 3.25, 14.0)


def test_no_more_than_four_requests_are_in_flight_at_once(stage: Stage) -> None:
    in_flight, most = 0, 0

    def crowded(app: ASGIApp) -> ASGIApp:
        async def counting(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(0.002)
            await app(scope, receive, send)
            in_flight -= 1

        return counting

    stage.check(READING, crowded)
    assert most == 4


def test_equal_questions_of_different_rules_are_asked_once(stage: Stage) -> None:
    asked: Counter[tuple[str, bytes]] = Counter()

    def after(answered: Answered) -> None:
        if answered.asked.path.startswith("/tool/"):
            asked[answered.asked.path, answered.asked.body] += 1

    rules = [
        rule for rule in READING if rule.id in {"I9", "I11", "I16", "I17", "I18", "I19", "I20", "I21", "I39", "I47"}
    ]
    stage.check(rules, lambda app: Changed(app, after=after), RunOptions(stage.options.base))
    assert asked
    assert set(asked.values()) == {1}


def test_a_run_sends_no_more_requests_than_it_may_and_says_what_it_left(stage: Stage) -> None:
    options = replace(stage.options, bounds=Bounds(requests=60))
    found = stage.check(RULES, options=options)
    left = [
        verdict for verdict in found.of(RuleOutcome.NOT_ASKED) if verdict.reason == "the run has sent its 60 requests"
    ]
    assert (found.requests, found.unfinished, found.of(RuleOutcome.FAILED)) == (60, True, ())
    assert len(left) > len(RULES) / 2


def test_what_differs_once_only_because_the_catalogue_changed_is_asked_again(stage: Stage) -> None:
    seen = 0

    def once(answered: Answered) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            answered.document = {**answered.document, "total_count": 10_000}

    rules = [rule for rule in RULES if rule.id == "I21"]
    found = stage.check(rules, answering("/tool/find_shop", once))
    assert [verdict.outcome for verdict in found.verdicts] == [RuleOutcome.PASSED]


def test_a_list_of_all_coupons_that_is_not_handed_out_is_not_seen_and_single_shops_are_judged(stage: Stage) -> None:
    def too_many(answered: Answered) -> None:
        if not answered.asked.arguments:
            answered.be(400, {"status": 400, "code": "too_many_coupons"}, b"application/problem+json")

    rules = [rule for rule in RULES if rule.id in {"I16", "I18", "I20", "I39", "I56"}]
    found = stage.check(rules, answering("/tool/list_coupons", too_many))
    assert [(verdict.rule.id, verdict.outcome) for verdict in found.verdicts] == [
        ("I16", RuleOutcome.PASSED),
        ("I18", RuleOutcome.PASSED),
        ("I20", RuleOutcome.PASSED),
        ("I39", RuleOutcome.PASSED),
        ("I56", RuleOutcome.NOT_SEEN),
    ]
