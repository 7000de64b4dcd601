"""A shop under review, a removed one and an unknown one answer with the same bytes on every transport and engine."""

import json
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from service.runtime.telemetry import CALL_FIELDS
from service.tools.registry import REGISTRY
from tests.rules.indistinguishable.conftest import Opener, World, projected
from tests.rules.indistinguishable.subjects import (
    EMPTY,
    HIDDEN,
    PUBLIC,
    REMOVED,
    UNDER_REVIEW,
    UNKNOWN,
    Records,
    Service,
    Subject,
    Whole,
    addresses,
    calls,
    catalogue,
    message,
    settled_text,
    typed,
)
from tests.support.callers import issue
from tests.support.served import until
from tests.support.wire import INITIALIZE, stdio_lines

NAMES_NO_SHOP: Final = {"list_categories"}
_TIMES: Final = re.compile(r"request=[0-9a-f]{32}|\bms=[0-9.]+|\[status:200 request:[0-9.]+s\]")
# The service writes neither of the first; pytest listens all the same. The stamp is looked up once a second.
_NO_CALL: Final = re.compile(r"^INFO (mcp\.|uvicorn\.access )|/\S+-stamp/_doc/stamp ")
Transport = Callable[[Service, str, Mapping[str, Any]], Whole]
TRANSPORTS: Final = [Service.rest, Service.mcp_modern, Service.mcp_older]


def _with_hidden() -> Records:
    return catalogue((PUBLIC, "public"), (UNDER_REVIEW, "under_review"), (REMOVED, "removed"))


def _without_hidden() -> Records:
    return catalogue((PUBLIC, "public"))


@pytest.fixture(scope="module")
def world(open_world: Opener) -> World:
    return open_world(_with_hidden())


@pytest.fixture(scope="module")
def plain_world(open_world: Opener) -> World:
    return open_world(_without_hidden())


def test_the_calls_name_a_shop_or_an_offer_to_every_tool_that_takes_one() -> None:
    assert {tool for tool, _ in calls(UNKNOWN)} == {tool.name for tool in REGISTRY} - NAMES_NO_SHOP
    lengths = {len(json.dumps([calls(subject), typed(subject)])) for subject in (PUBLIC, EMPTY, UNKNOWN, *HIDDEN)}
    assert len(lengths) == 1


@pytest.mark.rule("V1", "V2", "V1.dependents", "I6", "I55", "I57", "I60", "A8", "A9", "A12", "E5")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("hidden", HIDDEN, ids=lambda subject: subject.word)
def test_a_hidden_shop_is_answered_with_the_bytes_of_an_unknown_one(
    world: World, transport: Transport, hidden: Subject
) -> None:
    for (tool, of_unknown), (_, of_hidden) in zip(calls(UNKNOWN), calls(hidden), strict=True):
        unknown, answer = transport(world.service, tool, of_unknown), transport(world.service, tool, of_hidden)
        assert (tool, answer.settled(hidden.blanked)) == (tool, unknown.settled(UNKNOWN.blanked))


@pytest.mark.rule("V2")
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_public_shop_is_answered_with_other_bytes_by_every_one_of_these_calls(
    world: World, transport: Transport
) -> None:
    for (tool, of_unknown), (_, of_public) in zip(calls(UNKNOWN), calls(PUBLIC), strict=True):
        unknown, answer = transport(world.service, tool, of_unknown), transport(world.service, tool, of_public)
        assert (tool, answer.settled(PUBLIC.blanked).body) != (tool, unknown.settled(UNKNOWN.blanked).body)


@pytest.mark.rule("I60", "A8", "V2", "I32")
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_trust_of_a_public_shop_without_measurements_has_the_bytes_of_an_unknown_one(
    world: World, transport: Transport
) -> None:
    for reference, of_unknown in ((EMPTY.id, UNKNOWN.id), (EMPTY.domain, UNKNOWN.domain)):
        empty = transport(world.service, "get_trust", {"shop_domain": reference})
        unknown = transport(world.service, "get_trust", {"shop_domain": of_unknown})
        assert (empty.status, empty.settled(EMPTY.blanked)) == (200, unknown.settled(UNKNOWN.blanked))
        assert b"no_signals_collected" in empty.body


@pytest.mark.rule("V2", "I68", "C1.http")
@pytest.mark.parametrize("hidden", HIDDEN, ids=lambda subject: subject.word)
def test_suggestions_for_a_hidden_name_have_the_bytes_of_those_for_an_unknown_one(
    world: World, hidden: Subject
) -> None:
    for text, of_unknown in zip(typed(hidden), typed(UNKNOWN), strict=True):
        answer, unknown = world.service.suggest(text), world.service.suggest(of_unknown)
        assert unknown.status == 200
        # The tag is made of what was typed; two catalogues are compared by it below.
        settled = [
            answer.settled(partial(_typed_blanked, asked)).without("etag")
            for answer, asked in ((answer, text), (unknown, of_unknown))
        ]
        assert settled[0] == settled[1]


@pytest.mark.rule("F18", "V2", "I6")
@pytest.mark.parametrize("hidden", HIDDEN, ids=lambda subject: subject.word)
def test_the_page_of_a_hidden_shop_has_the_bytes_of_that_of_an_unknown_one(world: World, hidden: Subject) -> None:
    statuses = []
    for path, of_unknown, of_public in zip(addresses(hidden), addresses(UNKNOWN), addresses(PUBLIC), strict=True):
        answer, unknown, public = (world.service.get(asked) for asked in (path, of_unknown, of_public))
        # The tag of a page is made of what was searched for, too.
        settled = answer.settled(hidden.blanked).without("etag")
        assert settled == unknown.settled(UNKNOWN.blanked).without("etag")
        assert settled.body != public.settled(PUBLIC.blanked).body
        statuses.append(answer.status)
    assert statuses == [404, 404, 404, 400, 200, 200, 200]


@pytest.mark.rule("V2", "Q2")
def test_a_hidden_shop_costs_as_much_of_the_quota_as_an_unknown_one(world: World) -> None:
    service = Service(world.service.base, issue(world.settings.token_file).text)
    asked = [UNKNOWN, UNDER_REVIEW, REMOVED, UNKNOWN, UNDER_REVIEW]
    headers = [service.rest("get_trust", {"shop_domain": subject.id}).header("ratelimit") for subject in asked]
    assert [value.partition(";t=")[0] for value in headers] == [
        f'"reads";r={100_000 - 1 - n}' for n in range(len(asked))
    ]


def _extra(record: logging.LogRecord) -> str:
    """The fields of a call that its line holds, but those that differ from call to call."""
    fields = {name: getattr(record, name) for name in CALL_FIELDS if hasattr(record, name)}
    return str({name: value for name, value in fields.items() if name not in ("request_id", "ms", "engine_ms")})


@pytest.mark.rule("V1.silent", "V2", "E5.request_id")
def test_the_log_does_not_distinguish_hidden_from_unknown_shops_and_names_neither(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def said(transport: Transport, tool: str, arguments: Mapping[str, Any]) -> list[str]:
        caplog.clear()
        transport(world.service, tool, arguments)
        # A call's line is written when its answer has been sent.
        until(
            lambda: {record.name for record in caplog.records}, lambda found: "service.runtime.telemetry" in found, 5.0
        )
        lines = [f"{record.levelname} {record.name} {record.getMessage()}{_extra(record)}" for record in caplog.records]
        return [_TIMES.sub("-", line) for line in lines if not _NO_CALL.search(line)]

    for transport in TRANSPORTS:
        for of_unknown, of_review, of_removed in zip(calls(UNKNOWN), *map(calls, HIDDEN), strict=True):
            expected = said(transport, *of_unknown)
            assert [line for line in expected if f"'route': '{of_unknown[0]}'" in line]
            assert [said(transport, *of_review), said(transport, *of_removed)] == [expected, expected]
            assert UNKNOWN.blanked("\n".join(expected).encode()) == "\n".join(expected).encode()


@pytest.mark.rule("V1", "V1.dependents", "V1.silent", "I15")
def test_the_documents_are_the_same_with_and_without_hidden_shops(tmp_path: Path) -> None:
    assert projected(_with_hidden(), tmp_path / "with") == projected(_without_hidden(), tmp_path / "without")
    shown = catalogue((PUBLIC, "public"), (UNDER_REVIEW, "public"), (REMOVED, "public"))
    assert projected(shown, tmp_path / "shown") != projected(_without_hidden(), tmp_path / "without again")


@pytest.mark.rule("V1", "V2", "I6", "I15", "M6", "M6.did_you_mean", "M10", "C1", "C2", "A12")
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_no_total_list_or_tag_shows_whether_the_catalogue_holds_hidden_shops(
    world: World, plain_world: World, transport: Transport
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("list_categories", {}),
        ("list_coupons", {}),
        ("find_shop", {"query": ""}),
        ("find_shop", {"query": "", "category": "gifts", "country": "DE", "limit": 1}),
        ("find_shop", {"query": "common house alias"}),
        ("find_shop", {"query": UNDER_REVIEW.name.replace("x", "z")}),
        ("find_shop", {"query": f"{PUBLIC.name} {UNDER_REVIEW.word}"}),
        ("find_shop", {"query": "shared10 ardentun"}),
        *(call for subject in (PUBLIC, EMPTY, UNKNOWN, *HIDDEN) for call in calls(subject)),
    ]
    for tool, arguments in asked:
        with_hidden, without = (
            transport(world.service, tool, arguments),
            transport(plain_world.service, tool, arguments),
        )
        assert (tool, with_hidden.settled(_as_it_is)) == (tool, without.settled(_as_it_is))


@pytest.mark.rule("V1", "V2", "M10", "C1", "C1.http")
def test_no_suggestion_or_tag_shows_whether_the_catalogue_holds_hidden_shops(world: World, plain_world: World) -> None:
    subjects = (PUBLIC, EMPTY, UNKNOWN, *HIDDEN)
    for text in ("", "g", "common house alias", *(text for subject in subjects for text in typed(subject))):
        with_hidden, without = world.service.suggest(text), plain_world.service.suggest(text)
        assert with_hidden.header("etag") == without.header("etag")
        assert with_hidden.settled(_as_it_is) == without.settled(_as_it_is)


@pytest.mark.rule("F18", "F19", "V1", "V2")
def test_no_page_and_no_sitemap_shows_whether_the_catalogue_holds_hidden_shops(
    world: World, plain_world: World
) -> None:
    pages = [path for subject in (PUBLIC, EMPTY, UNKNOWN, *HIDDEN) for path in addresses(subject)]
    for path in ("/", "/?q=", "/?category=gifts", "/sitemap.xml", "/sitemap.xml?file=1", *pages):
        with_hidden, without = world.service.get(path), plain_world.service.get(path)
        assert (path, with_hidden.settled(_as_it_is)) == (path, without.settled(_as_it_is))


@pytest.mark.rule("I4", "I5", "V2", "I60")
def test_over_stdio_a_hidden_shop_is_answered_with_the_bytes_of_an_unknown_one(world: World) -> None:
    asked = [(subject, *call) for calls_of_one in zip(
        *([(subject, call) for call in calls(subject)] for subject in (UNKNOWN, *HIDDEN, PUBLIC)), strict=True
    ) for subject, call in calls_of_one]  # fmt: skip
    answers = _stdio(world, [message(tool, arguments, 7) for _, tool, arguments in asked])
    settled = [settled_text(line, subject.blanked) for (subject, *_), line in zip(asked, answers, strict=True)]
    for first in range(0, len(settled), 4):
        unknown, under_review, removed, public = settled[first : first + 4]
        assert [under_review, removed] == [unknown, unknown]
        assert public != unknown


def _as_it_is(text: bytes) -> bytes:
    return text


def _typed_blanked(text: str, body: bytes) -> bytes:
    return body.replace(text.encode(), b"?" * len(text))


def _stdio(world: World, messages: list[dict[str, Any]]) -> list[bytes]:
    settings = world.settings
    variables = {
        "SHOP_DIRECTORY_ENGINE": settings.engine,
        "SHOP_DIRECTORY_DATA_DIR": str(settings.data_dir),
        "SHOP_DIRECTORY_OPENSEARCH_URLS": ",".join(settings.opensearch_urls),
        "SHOP_DIRECTORY_INDEX_PREFIX": settings.index_prefix,
        "SHOP_DIRECTORY_TOKEN_FILE": str(settings.token_file),
        "SHOP_DIRECTORY_REPORTS_FILE": str(settings.reports_file),
        "SHOP_DIRECTORY_API_TOKEN": world.service.token,
        "SHOP_DIRECTORY_QUOTA_CLASSES": '{"default": {"reads": 100000, "suggest": 100000, "reports": 100000}}',
        "SHOP_DIRECTORY_LOG_LEVEL": "warning",
    }
    with stdio_lines(variables) as process:
        return [process.ask(json.dumps(each).encode()) for each in (INITIALIZE, *messages)][1:]
