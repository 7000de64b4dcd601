"""GET /api/ops/state: everything that is known, and of what is not, why (I76)."""

import asyncio
import json
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from index_mappings.documents import SCHEMA_VERSION
from indexer.sinks.opensearch.sink import OpenSearchSink
from service.operations import OpsState, ops_state_schema
from service.reports.opening import QueueSettings, open_queue
from service.reports.protocol import Report
from tests.rules.operations.worlds import ACCOUNTS, BUILT_AT, COMMIT, serving, world
from tests.support.catalogues import build_into, write_catalogue_directory
from tests.support.real.plugin import NodeFactory
from tests.support.real.redis import RedisServer
from tests.support.served import get
from tests.support.worlds import SHOPS

SCHEMA_FILE: Final = Path(__file__).parents[3] / "docs" / "ops-state.schema.json"
VALIDATOR: Final = Draft202012Validator(ops_state_schema(), format_checker=FormatChecker())
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
    written = json.dumps(ops_state_schema(), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("SHOP_DIRECTORY_RENEW_GOLDEN") == "1":
        SCHEMA_FILE.write_text(written, encoding="utf-8")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == written
    Draft202012Validator.check_schema(ops_state_schema())


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
