"""GET /api/ops/state and the log: all that is known is there, without what was asked."""

import asyncio
import io
import json
import logging
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from index_mappings.documents import SCHEMA_VERSION
from indexer.sinks.opensearch.sink import OpenSearchSink
from service.app import create_app
from service.observability.logs import LogFormat, configure_logging
from service.operations import SCHEMA_ID, OpsState
from service.reports.opening import QueueSettings, open_queue
from service.reports.protocol import Report
from service.settings.service import Settings
from shop_directory.runtime.request_context import bind_request, new_request_context
from shop_directory.search.failures import BackendUnavailable
from shop_directory.search.protocol import Generations
from tests.rules.mcp.asking import SHOP_TEMPLATE, complete, read
from tests.rules.operations.test_metrics import samples_of
from tests.rules.operations.worlds import ACCOUNTS, BUILT_AT, COMMIT, serving, settings_of, world
from tests.rules.transports.test_probes_and_headers import FailingBackend
from tests.support.callers import issue
from tests.support.catalogues import build_into, write_catalogue_directory
from tests.support.emptying import unused_prefix
from tests.support.real.plugin import NodeFactory
from tests.support.real.redis import RedisServer
from tests.support.served import ask, get, post, served, until
from tests.support.wire import Era, call, connect
from tests.support.worlds import SHOPS

SCHEMA_FILE: Final = Path(__file__).parents[3] / "docs" / "ops-state.schema.json"
# Of docs/ops-state.schema.json.
SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": SCHEMA_ID,
    **OpsState.model_json_schema(mode="serialization"),
}
VALIDATOR: Final = Draft202012Validator(SCHEMA, format_checker=FormatChecker())
_UNSTATED: Final = dict.fromkeys(("unit", "used", "limit", "remaining", "resets_at", "status", "observed_at"))
SHOWN_ACCOUNTS: Final = [
    {**ACCOUNTS[0], "limit": 1000.0, "remaining": 299.9},
    {**_UNSTATED, **ACCOUNTS[1], "remaining": -2.0},
    {**_UNSTATED, **ACCOUNTS[2]},
]
OF_A_FOLLOWER: Final = ("source", "position", "waiting", "caught_up_at", "lag_seconds", "reported_at")


def state_of(base: str) -> dict[str, Any]:
    reply = get(base, "/api/ops/state")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert list(VALIDATOR.iter_errors(reply.json)) == []
    state: dict[str, Any] = reply.json
    return state


def _queue(**given: object) -> dict[str, Any]:
    known = dict.fromkeys(("depth", "lag", "pending", "dead_letters", "consumers"))
    return {"available": True, "reason": None, "group": "workers", **known, **given}


def _unavailable(reason: str, *names: str) -> dict[str, Any]:
    return {"available": False, "reason": reason, **dict.fromkeys(names)}


@pytest.mark.rule("I76")
def test_the_state_has_everything_that_there_is(tmp_path: Path) -> None:
    index = world(tmp_path)
    with serving(index) as base:
        state = state_of(base)
        live = get(base, "/ready").headers
    asked = datetime.fromisoformat(state["asked_at"])
    age = state["shops"]["live"].pop("age_seconds")
    assert abs((datetime.now(UTC) - asked).total_seconds()) < 30
    assert 0 <= age < 60
    counts = state["shops"]["live"].pop("counts")
    assert (counts["shops"], counts["categories"], state["catalogue"]["sizes"]) == (3, 3, counts)
    assert state["shops"] == {
        "available": True,
        "reason": None,
        "live": {
            "generation": live["x-generation"],
            "schema_version": SCHEMA_VERSION,
            "readable": True,
            "sequence": 1,
            "built_at": live["x-data-as-of"],
            "shops": 3,
        },
        "previous": None,
    }
    assert state["consumers"] == {
        "rechecks": _queue(depth=0, lag=0, pending=0, dead_letters=0, consumers=[]),
        "follower": _unavailable("not_reported", *OF_A_FOLLOWER),
    }
    assert state["resource_accounts"] == {"available": True, "reason": None, "accounts": SHOWN_ACCOUNTS}
    service = state["service"]
    assert service.pop("started_at") <= state["asked_at"]
    assert service == {
        "name": "shop-directory",
        "version": "0.1.1",
        "commit": COMMIT,
        "built_at": BUILT_AT,
        "pid": os.getpid(),
    }


@pytest.mark.rule("I76")
def test_flags_are_settings_that_change_behaviour_and_no_text_of_the_operator(index: Path) -> None:
    secret = "hidden-by-its-kind"
    url = f"redis://user:{secret}@cache.internal:6379/0"
    with serving(index, ops_key=None, redis_url=url, api_token=secret, country_header=secret) as base:
        flags = state_of(base)["flags"]
    parts = [flags[name] for name in ("engine", "limiter", "reports", "token_store")]
    assert parts == ["embedded", "memory", "embedded", "sqlite"]
    assert (flags["request_timeout"], flags["category_cap"], flags["most_coupons_rest"]) == (10.0, 50, None)
    quotas = (flags["quota_anonymous"], flags["quota_classes"]["default"])
    assert [set(quota) for quota in quotas] == [{"reads", "suggest", "reports"}] * 2
    assert {"redis_url", "ops_key", "api_token", "data_dir", "host", "country_header"} & flags.keys() == set()
    assert secret not in json.dumps(flags)


@pytest.mark.rule("I76")
def test_reports_and_workers_show_as_consumers(tmp_path: Path) -> None:
    index = world(tmp_path)
    path = tmp_path / "queue.sqlite"

    async def report() -> None:
        queue = open_queue(QueueSettings(path=path))
        for code in ("A", "B", "C"):
            await queue.append(Report("token", "code", "shop_books", code, "invalid", datetime.now(UTC)))
        await queue.claim("checker-1", 1, 60.0)
        await queue.close()

    asyncio.run(report())
    with serving(index, reports_file=path) as base:
        rechecks = state_of(base)["consumers"]["rechecks"]
    (consumer,) = rechecks.pop("consumers")
    assert 0 <= consumer.pop("idle_seconds") < 60
    assert consumer == {"name": "checker-1", "pending": 1}
    assert rechecks == {
        "available": True,
        "reason": None,
        "group": "workers",
        "depth": 3,
        "lag": 2,
        "pending": 1,
        "dead_letters": 0,
    }


@pytest.mark.rule("I76", "I7")
def test_before_the_first_build_everything_of_the_engine_is_not_published(tmp_path: Path) -> None:
    with serving(tmp_path / "index") as base:
        state = state_of(base)
    assert state["shops"] == _unavailable("nothing_published", "live", "previous")
    assert state["catalogue"] == _unavailable("nothing_published", "sizes")
    assert state["consumers"]["follower"] == _unavailable("nothing_published", *OF_A_FOLLOWER)
    assert state["resource_accounts"] == _unavailable("nothing_published", "accounts")
    assert state["consumers"]["rechecks"]["available"]


@pytest.mark.rule("I76", "I7")
def test_with_redis_killed_the_consumers_say_so_and_the_rest_is_reported(
    index: Path, redis_program: str, tmp_path: Path
) -> None:
    with (
        RedisServer(redis_program, tmp_path) as redis,
        serving(index, reports="redis", redis_url=redis.url, request_timeout=2.0) as base,
    ):
        before = state_of(base)["consumers"]["rechecks"]
        redis.kill()
        state = state_of(base)
    assert before == _queue(depth=0, lag=0, pending=0, dead_letters=0, consumers=[])
    away = _queue() | {"available": False, "reason": "queue_unavailable"}
    assert (state["consumers"]["rechecks"], state["shops"]["available"]) == (away, True)


@pytest.mark.rule("I76", "I7")
def test_with_opensearch_it_is_the_same_document_and_with_it_stopped_the_rest_of_it(
    opensearch_node: NodeFactory, tmp_path: Path
) -> None:
    prefix = f"test-{secrets.token_hex(4)}"
    node = opensearch_node()
    node.start()
    catalogue = write_catalogue_directory(tmp_path / "catalogue", shops=SHOPS, resource_accounts=ACCOUNTS)
    sink = OpenSearchSink([node.url], prefix, letters=tmp_path / "letters.ndjson")
    build_into(sink, catalogue)
    given = {"engine": "opensearch", "opensearch_urls": (node.url,), "index_prefix": prefix, "request_timeout": 5.0}
    with serving(tmp_path / "none", **given) as base:
        there = state_of(base)
        build_into(sink, catalogue)
        sink.close()
        again = state_of(base)
        node.stop()
        gone = state_of(base)
    assert (there["shops"]["live"]["shops"], there["shops"]["previous"]) == (3, None)
    assert there["resource_accounts"]["accounts"] == SHOWN_ACCOUNTS
    assert again["shops"]["previous"]["generation"] == there["shops"]["live"]["generation"]
    assert again["shops"]["live"]["generation"] != there["shops"]["live"]["generation"]
    assert gone["shops"] == _unavailable("engine_unavailable", "live", "previous")
    assert gone["resource_accounts"] == _unavailable("engine_unavailable", "accounts")
    assert (gone["consumers"]["rechecks"]["available"], gone["flags"]["engine"]) == (True, "opensearch")


@pytest.mark.rule("I76")
def test_the_documented_schema_is_the_one_of_the_code() -> None:
    written = json.dumps(SCHEMA, indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("SHOP_DIRECTORY_RENEW_GOLDEN") == "1":
        SCHEMA_FILE.write_text(written, encoding="utf-8")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == written
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.rule("I76", "I7")
def test_the_schema_refuses_what_a_state_never_is(open_base: str) -> None:
    state = get(open_base, "/api/ops/state").json
    wrong = [
        {**state, "shops": {"available": "unknown"}},
        {**state, "extra": 1},
        {name: value for name, value in state.items() if name != "resource_accounts"},
        {**state, "asked_at": None},
    ]
    assert [VALIDATOR.is_valid(document) for document in (state, *wrong)] == [True, False, False, False, False]
    with pytest.raises(ValueError, match="has a reason"):
        OpsState.model_validate({**state, "shops": {"available": False, "reason": None}})


CANARY: Final = "canaryhunter"
CALL_FIELDS: Final = {
    "timestamp", "level", "logger", "event", "request_id", "channel", "route", "outcome", "status", "ms", "engine_ms",
    "engine_calls",
}  # fmt: skip
Log = Callable[..., io.StringIO]


@pytest.fixture
def log() -> Iterator[Log]:
    """Sends the process's log to a text as the commands do; all is as before after the test."""
    root = logging.getLogger()
    names = ("service", "indexer", "index_mappings", "shop_directory", "uvicorn")
    handlers, level = list(root.handlers), root.level
    levels = {name: logging.getLogger(name).level for name in names}

    def begin(level: str = "debug", log_format: Any = "json", **given: Any) -> io.StringIO:  # noqa: ANN401 - as it takes
        written = io.StringIO()
        configure_logging(level, log_format, stream=written, **given)
        return written

    yield begin
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, former in levels.items():
        logging.getLogger(name).setLevel(former)


def lines_of(written: io.StringIO) -> list[dict[str, Any]]:
    """The lines; each is an object."""
    return [json.loads(line) for line in written.getvalue().splitlines()]


def calls_of(written: io.StringIO) -> list[dict[str, Any]]:
    return [line for line in lines_of(written) if line["event"] == "call"]


def _mcp(base: str, name: str, token: str | None = None, **arguments: object) -> None:
    headers = {} if token is None else {"x_api_token": token}
    call(base, Era.STATELESS, name, json.dumps(arguments).encode(), **headers)


@pytest.mark.rule("E5.request_id")
def test_every_transport_ends_a_call_in_one_line_and_one_count_early_refusals_too(index: Path, log: Log) -> None:
    with serving(index) as base:
        written = log("info")
        replies = [
            post(base, "/tool/find_shop", {"query": "books"}),
            post(base, "/tool/get_shop", {"shop_domain": "nobody.example"}),
            get(base, "/suggest?q=harb"),
            get(base, "/suggest?x=1"),
            get(base, "/nothing"),
            ask(base, "PUT", "/tool/find_shop"),
            post(base, "/tool/get_trust", {}),
            post(base, "/tool/find_shop", b"{"),
            ask(base, "POST", "/mcp", b"{}", {"host": "elsewhere.example"}),
        ]
        _mcp(base, "get_shop", shop_domain="shop_books")
        _mcp(base, "get_trust", shop_domain="shop_books")
        get(base, "/health")
        samples = samples_of(get(base, "/metrics"))
    calls = calls_of(written)
    assert [(line["channel"], line["route"], line["outcome"], line["status"]) for line in calls] == [
        ("rest", "find_shop", "ok", 200),
        ("rest", "get_shop", "shop_not_found", 404),
        ("rest", "suggest", "ok", 200),
        ("rest", "suggest", "invalid_input", 400),
        ("rest", "none", "not_found", 404),
        ("rest", "find_shop", "method_not_allowed", 405),
        ("rest", "get_trust", "token_required", 401),
        ("rest", "find_shop", "invalid_input", 400),
        ("mcp", "mcp", "refused", 421),
        ("mcp", "get_shop", "ok", 200),
        ("mcp", "get_trust", "token_required", 401),
    ]
    assert [line["request_id"] for line in calls][: len(replies)] == [
        reply.headers["x-request-id"] for reply in replies
    ]
    # The metrics count what the log names, and probes too.
    counted = {
        tuple(value for _, value in labels): number
        for (name, labels), number in samples.items()
        if name == "shopdir_request_duration_seconds_count"
    }
    assert counted == Counter([("ok", "health"), *((line["outcome"], line["route"]) for line in calls)])
    assert {line["logger"] for line in calls} == {"service.runtime.telemetry"}
    assert all(line.keys() - {"generation"} == CALL_FIELDS for line in calls)
    answered = [line for line in calls if line["outcome"] in {"ok", "shop_not_found"}]
    assert {line["generation"] for line in answered} == {replies[0].headers["x-generation"]}
    assert all(0 <= line["engine_ms"] <= line["ms"] + 1 for line in answered)
    # Suggestions come from the typeahead in the process.
    assert {line["route"] for line in answered if line["engine_calls"] == 0} == {"suggest"}


@pytest.mark.rule("E5.request_id")
def test_what_is_not_http_has_its_line_too(index: Path, log: Log) -> None:
    with serving(index) as base:
        written = log("info")
        with connect(base) as connection:
            connection.sendall(f"{CANARY} /x HTTP/1.1\r\n\r\n".encode())
            answer = connection.recv(65_536).decode()
    (line,) = calls_of(written)
    assert (line["route"], line["outcome"], line["status"]) == ("none", "invalid_input", 400)
    assert f"x-request-id: {line['request_id']}" in answer
    assert CANARY not in written.getvalue()


@pytest.mark.rule("E5")
def test_an_exception_is_a_field_of_kinds_and_frames_and_its_words_only_on_demand(log: Log) -> None:
    with served(create_app(Settings(), search=FailingBackend(RuntimeError(CANARY)))) as base:
        found = []
        for given in ({}, {"exception_text": True}):
            written = log("info", **given)
            reply = post(base, "/tool/find_shop", {"query": "x"})
            found.append((reply, written))
    for (reply, written), with_text in zip(found, (False, True), strict=True):
        (line,) = [line for line in lines_of(written) if line["level"] == "error"]
        assert line["request_id"] == reply.headers["x-request-id"]
        (logged,) = line["exception"]
        assert logged["type"] == "builtins.RuntimeError"
        assert any(frame.startswith(f"{FailingBackend.__module__}:") for frame in logged["frames"])
        assert logged.get("text") == (CANARY if with_text else None)
        assert (CANARY in written.getvalue()) == with_text


def _ask_about(base: str, word: str, token: str) -> None:
    for query in (word, f"{word} {word}x", f"{word}.example"):
        post(base, "/tool/find_shop", {"query": query}, x_api_token=token)
        get(base, f"/suggest?q={query.replace(' ', '+')}&limit=3")
        post(base, "/tool/get_shop", {"shop_domain": query}, x_api_token=token)
        post(base, "/tool/get_trust", {"shop_domain": query}, x_api_token=token)
        _mcp(base, "find_shop", token, query=query)
    post(base, "/tool/resolve_checkout_url", {"offer_id": word})
    post(base, "/tool/list_coupons", {"shop_domain": word})
    post(base, "/tool/report_code", {"shop_domain": "shop_books", "code": word, "reason": "invalid"}, x_api_token=token)
    post(base, f"/tool/{word}", {word: word}, x_api_token=f"{word}-token", user_agent=word)
    post(base, "/tool/find_shop", {word: word})
    post(base, "/tool/find_shop", f'{{"{word}'.encode())
    get(base, f"/suggest?{word}={word}", referer=f"https://{word}.example")
    ask(base, "POST", "/mcp", f'{{"jsonrpc":"2.0","id":"{word}","method":"{word}"}}'.encode(), _json_headers())
    for era in Era:
        read(base, era, f"shop://{word}.example")
        read(base, era, f"{word}://{word}")
        complete(base, era, SHOP_TEMPLATE, "domain", word)


def _json_headers() -> dict[str, str]:
    return {"content-type": "application/json", "accept": "application/json"}


def _tokens(folder: Path) -> tuple[Path, str]:
    path = folder / "tokens.sqlite"
    return path, issue(path).text


@pytest.mark.rule("E5", "V1.silent")
def test_at_debug_no_byte_of_what_was_asked_is_in_the_log(index: Path, tmp_path: Path, log: Log) -> None:
    path, token = _tokens(tmp_path)
    with serving(index, token_file=path) as base:
        written = log("debug")
        _ask_about(base, CANARY, token)
    assert len(calls_of(written)) >= 22
    text = written.getvalue()
    assert [word for word in (CANARY, token, "127.0.0.1", "harbour") if word in text.lower()] == []


@pytest.mark.rule("E5", "V1.silent")
@pytest.mark.opensearch
@pytest.mark.redis
def test_at_debug_the_clients_of_engines_write_no_byte_of_it_either(
    opensearch_url: str, redis_url: str, tmp_path: Path, log: Log
) -> None:
    path, token = _tokens(tmp_path)
    catalogue = write_catalogue_directory(tmp_path / "catalogue", shops=SHOPS)
    with unused_prefix(opensearch_url, redis_url) as prefix:
        sink = OpenSearchSink([opensearch_url], prefix, letters=tmp_path / "letters.ndjson")
        build_into(sink, catalogue)
        sink.close()
        given: dict[str, Any] = {
            "engine": "opensearch",
            "index_prefix": prefix,
            "limiter": "redis",
            "reports": "redis",
            "redis_url": redis_url,
            "redis_prefix": prefix,
            "token_file": path,
        }
        written = log("debug")
        with serving(tmp_path / "x" / "index", **given, opensearch_urls=(opensearch_url,)) as base:
            _ask_about(base, CANARY, token)
        # And where no server answers.
        away = {**given, "opensearch_urls": ("http://127.0.0.1:9",), "request_timeout": 1.0}
        with served(create_app(settings_of(tmp_path / "y" / "index", **away))) as base:
            _ask_about(base, CANARY, token)
    outcomes = {line["outcome"] for line in calls_of(written)}
    assert {"ok", "backend_unavailable", "shop_not_found", "token_required"} & outcomes >= {"ok", "backend_unavailable"}
    text = written.getvalue()
    assert [word for word in (CANARY, token, "harbour") if word in text.lower()] == []


@pytest.mark.rule("E5")
def test_a_library_is_logged_by_location_and_not_by_words_unless_asked_for(log: Log) -> None:
    shown = []
    for given in ({}, {"exception_text": True}):
        written = log("debug", **given)
        logging.getLogger("opensearch").debug("> %s", CANARY)
        logging.getLogger("redis.asyncio").info(CANARY)
        logging.getLogger("mcp.server").warning("Failed: %s", CANARY)
        logging.getLogger("py.warnings").warning("%s", CANARY)
        logging.getLogger("uvicorn.error").info("Started")
        shown.append(lines_of(written))
    plain, with_text = shown
    assert [(line["logger"], line["event"]) for line in plain] == [
        ("mcp.server", "a library's message; its text is not logged"),
        ("py.warnings", "a library's message; its text is not logged"),
        ("uvicorn.error", "Started"),
    ]
    assert plain[0]["where"].startswith("test_state:")
    assert with_text[0]["event"] == f"Failed: {CANARY}"


def test_a_line_written_for_a_request_names_it_and_is_one_line_whatever_it_holds(log: Log) -> None:
    written = log("debug")
    with bind_request(new_request_context("the-request")):
        logging.getLogger("service.test").warning("two\nlines and \x1b[31m red")
    logging.getLogger("service.test").warning("of no request")
    first, second = lines_of(written)
    assert (first["request_id"], first["event"]) == ("the-request", "two\nlines and \x1b[31m red")
    assert "request_id" not in second
    assert "\x1b" not in written.getvalue()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("log_format", "stream", "is_json"),
    [
        ("auto", io.StringIO, True),
        ("auto", _Terminal, False),
        ("json", _Terminal, True),
        ("console", io.StringIO, False),
    ],
)
def test_the_format_goes_by_the_setting_and_by_who_reads(
    log_format: LogFormat,
    stream: type[io.StringIO],
    *,
    is_json: bool,
    log: Log,
) -> None:
    log()
    written = stream()
    configure_logging("info", log_format, stream=written)
    fault = ValueError(CANARY)
    logging.getLogger("service.test").error("it failed", exc_info=fault)
    text = written.getvalue()
    assert (text.startswith("{"), "it failed" in text, "ValueError" in text, CANARY in text) == (
        is_json,
        True,
        True,
        False,
    )
    assert (text.count("\n") == 1) == is_json


class _Waiting(FailingBackend):
    """A search engine that never answers, and has no generations for the metrics."""

    async def generations(self) -> Generations:
        raise BackendUnavailable(CANARY)


def test_a_caller_who_leaves_is_logged_as_that(log: Log) -> None:
    with served(create_app(Settings(request_timeout=20.0), search=_Waiting(None))) as base:
        written = log("info")
        with connect(base) as connection:
            connection.sendall(b"GET /suggest?q=a HTTP/1.1\r\nhost: localhost\r\n\r\n")
            time.sleep(0.3)
        calls = until(lambda: calls_of(written), bool, 5.0)
        metrics = get(base, "/metrics").body.decode()
    (line,) = calls
    assert (line["route"], line["outcome"], "status" in line, line["ms"] < 5_000) == ("suggest", "left", False, True)
    assert 'shopdir_request_duration_seconds_count{outcome="left",route="suggest"} 1.0' in metrics
