"""Reports as callers send them: one word back, one durable row, and nothing that is delivered changes (A9, Q5)."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings
from service.reports.protocol import Reason
from tests.support.callers import Reporting, reporting_to
from tests.support.real.disks import small_disk
from tests.support.served import Reply, get, post, until
from tests.support.transports import mcp_transports, over_mcp, over_rest
from tests.support.wire import Era, call, invalid_input

TAKEN: Final = b'{"status":"wird gemeldet, Pruefung laeuft"}'
CODE: Final[dict[str, Any]] = {"shop_domain": "shop_books", "code": "SPRING10", "reason": "invalid"}
GONE: Final[dict[str, Any]] = {"subject_type": "shop", "shop_domain": "shop_books", "reason": "no_longer_exists"}
SHOP_REASONS: Final = (
    "unreachable, no_longer_exists, info_outdated, wrong_category, wrong_name_or_domain for the subject_type shop"
)
FACT_REASONS: Final = "shipping_cost, return_period, payment_methods, evidence_broken for the subject_type fact"
ALPHABET: Final = "AZaz09._+*%!#&$/@-"
CANT: Final = "Reports can't be taken just now; try again in 1 second. Sending the same report twice is safe."


@pytest.fixture(params=["embedded", pytest.param("redis", marks=pytest.mark.redis)])
def reporting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reporting]:
    queue = QueueSettings("embedded", tmp_path / "reports.sqlite")
    if request.param == "redis":
        prefix = request.getfixturevalue("redis_prefix")
        queue = QueueSettings("redis", redis=RedisAccess(request.getfixturevalue("redis_url")), prefix=prefix)
    with reporting_to(queue, tmp_path) as service:
        yield service


@pytest.mark.rule("A9", "I62", "I36", "I61", "I63", "Q5", "I80")
def test_each_report_is_answered_by_the_same_word_and_stored_as_one_row(reporting: Reporting) -> None:
    answers = [
        reporting.report("report_code", CODE),
        reporting.report("report_issue", GONE),
        reporting.report("report_issue", {**GONE, "subject_type": "fact", "reason": "return_period"}),
    ]
    assert [(reply.status, reply.headers["content-type"], reply.body) for reply in answers] == [
        (200, "application/json", TAKEN)
    ] * 3
    rows = [
        reporting.row("code", "invalid", "SPRING10"),
        reporting.row("shop", "no_longer_exists"),
        reporting.row("fact", "return_period"),
    ]
    assert reporting.stored() == (rows, 3)


@pytest.mark.rule("Q5", "I37", "A9", "I5")
async def test_the_same_report_over_every_transport_is_one_row_and_one_recheck(reporting: Reporting) -> None:
    spellings = ["shop_books", "harbour-lane-books.example", "https://WWW.Harbour-Lane-Books.example/x"]
    answers = [
        over_rest(reporting.base, "report_code", {**CODE, "shop_domain": spelling}, x_api_token=reporting.token.text)
        for spelling in spellings
    ]
    async with mcp_transports(reporting.base, reporting.index, reporting.token.text, reporting.variables) as transports:
        answers += [
            await over_mcp(client, "report_code", {**CODE, "code": "spring10"}) for client in transports.values()
        ]
    assert [(answer.text.encode(), answer.failed) for answer in answers] == [(TAKEN, False)] * 7
    assert await asyncio.to_thread(reporting.stored) == ([reporting.row("code", "invalid", "SPRING10")], 1)


@pytest.mark.rule("A9", "I61", "I63", "E1", "I36", "I82")
@pytest.mark.parametrize(
    ("tool", "arguments", "errors"),
    [
        ("report_code", CODE | {"reason": "unreachable"}, [("reason", "invalid")]),
        ("report_code", CODE | {"reason": "it did not work"}, [("reason", "invalid")]),
        ("report_issue", GONE | {"subject_type": "coupon"}, [("subject_type", "shop")]),
        ("report_issue", GONE | {"reason": "invalid"}, [("reason", "unreachable")]),
        ("report_issue", GONE | {"reason": "shipping_cost"}, [("reason", f"must be one of {SHOP_REASONS}")]),
        ("report_issue", GONE | {"subject_type": "fact"}, [("reason", f"must be one of {FACT_REASONS}")]),
        ("report_issue", GONE | {"comment": "free text"}, [("comment", "is not a field")]),
        ("report_code", {}, [("code", "is required"), ("reason", "is required"), ("shop_domain", "is required")]),
    ],
)
def test_there_is_no_free_text_and_every_wrong_field_is_named(
    reporting: Reporting, tool: str, arguments: dict[str, Any], errors: list[tuple[str, str]]
) -> None:
    reply = reporting.report(tool, arguments)
    found = sorted((error["field"], error["message"]) for error in reply.json["errors"])
    assert (reply.status, [field for field, _ in found]) == (400, [field for field, _ in errors])
    assert all(part in message for (_, message), (_, part) in zip(found, errors, strict=True))
    assert "free text" not in reply.body.decode()
    assert reporting.stored() == ([], 0)


@pytest.mark.rule("A9", "I36")
def test_a_code_holds_letters_marks_and_numbers_of_any_script_and_few_signs(reporting: Reporting) -> None:
    codes = [ALPHABET, "A", "x" * 64, "Ä10", "割引٢٠"]
    # Twice the fourth one: decomposed and in small letters, and with spaces around it.
    sent = [*codes, "a\u030810", "  \u00a0Ä10\u3000"]
    assert [reporting.report("report_code", {**CODE, "code": code}).body for code in sent] == [TAKEN] * 7
    message = "must be 1 to 64 letters, marks and numbers of any script, or ._+*%!#&$/@-"
    for code in ("x" * 65, "A B", "   ", "A\u200bB", "A\ufe0f", "<b>", "a,b", "a:b", "😀"):
        _assert_invalid(reporting.report("report_code", {**CODE, "code": code}), ("code", message), code)
    _assert_invalid(reporting.report("report_code", {**CODE, "code": "A\n"}), ("code", "holds a control character"))
    _assert_invalid(reporting.report("report_code", {**CODE, "code": 5}), ("code", "must be a string"))
    assert reporting.stored() == ([reporting.row("code", "invalid", code) for code in codes], 5)


@pytest.mark.rule("O1.degraded", "Q5", "E1.retry_after", "E2.wait")
def test_with_the_file_away_nothing_is_acknowledged_and_reads_go_on(tmp_path: Path) -> None:
    in_the_way = tmp_path / "not-a-folder"
    in_the_way.write_text("a file", encoding="utf-8")
    with reporting_to(QueueSettings("embedded", in_the_way / "reports.sqlite"), tmp_path) as service:
        _assert_not_taken(service, Reason.READ_ONLY)
        in_the_way.unlink()
        _assert_taken_again(service)


@pytest.mark.rule("O1.degraded", "Q5", "E1.retry_after", "E2.wait")
def test_with_a_full_disk_ready_is_degraded_and_says_so_before_a_report_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "disk" / "reports.sqlite"
    with small_disk(path.parent) as disk, reporting_to(QueueSettings("embedded", path), tmp_path) as service:
        assert get(service.base, "/ready").json == _readiness()
        with disk.full():
            _until_ready_says(service, _readiness(Reason.FULL))
            _assert_not_taken(service, Reason.FULL)
        _assert_taken_again(service)


@pytest.mark.rule("O1.degraded", "Q5", "E1.retry_after", "E2.wait")
def test_with_a_read_only_disk_ready_is_degraded_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "disk" / "reports.sqlite"
    with small_disk(path.parent) as disk, reporting_to(QueueSettings("embedded", path), tmp_path) as service:
        with disk.read_only():
            _assert_not_taken(service, Reason.READ_ONLY)
        _assert_taken_again(service)


def _assert_not_taken(service: Reporting, reason: Reason) -> None:
    reply = service.report("report_code", CODE)
    problem = reply.json
    assert (reply.status, problem["code"], problem["detail"]) == (503, "backend_unavailable", CANT)
    assert reply.headers["retry-after"] == "1"
    for era in Era:
        raw = json.dumps(CODE).encode()
        result = call(service.base, era, "report_code", raw, x_api_token=service.token.text).json["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, reply.body.decode())
    # What does not depend on the queue is as ever, the refusals of reports among it.
    assert service.report("report_code", {**CODE, "shop_domain": "nowhere"}).status == 404
    assert post(service.base, "/tool/list_coupons", {"shop_domain": "shop_books"}).status == 200
    ready = get(service.base, "/ready")
    assert ready.summary == (200, "application/json", _readiness(reason))


def _assert_taken_again(service: Reporting) -> None:
    assert service.report("report_code", CODE).body == TAKEN
    assert service.stored() == ([service.row("code", "invalid", "SPRING10")], 1)
    _until_ready_says(service, _readiness())


def _until_ready_says(service: Reporting, document: dict[str, Any]) -> None:
    # What was found is cached for a second.
    until(lambda: get(service.base, "/ready").json, lambda ready: ready == document, 3.0)


def _assert_invalid(reply: Reply, error: tuple[str, str], sent: object = None) -> None:
    assert reply.summary == (400, "application/problem+json", invalid_input(error)), sent


_ENGINE: Final = ({"name": "search", "status": "ok"}, {"name": "typeahead", "status": "ok"})


def _readiness(reason: str | None = None) -> dict[str, Any]:
    reports = {"name": "reports", "status": "ok"} if reason is None else _degraded(reason)
    status = "ready" if reason is None else "degraded"
    return {"status": status, "checks": [*_ENGINE, reports]}


def _degraded(reason: str) -> dict[str, str]:
    return {"name": "reports", "status": "degraded", "reason": reason}
