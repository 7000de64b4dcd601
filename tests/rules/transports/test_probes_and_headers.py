"""The probes, what every answer carries, and what failing and panicking engines look like from outside."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
import tantivy

from service.app import create_app
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from shop_directory.search.embedded import engine, indices
from shop_directory.search.failures import (
    BackendUnavailable,
    GenerationGone,
    NothingPublished,
    OtherSchema,
    TypeaheadNotOpen,
)
from shop_directory.search.protocol import Generations, TypeaheadState
from tests.rules.transports.conftest import BUILT_AT, COMMIT
from tests.support.callers import issue
from tests.support.reference.backend import ReferenceBackend
from tests.support.sample import SampleService
from tests.support.served import Reply, ask, get, post, served, until, until_ready
from tests.support.wire import Era, call, problem
from tests.support.worlds import reference_world

SECRET = "node-7.internal index shops-000042"
UNAVAILABLE = problem(
    503, "backend_unavailable", "The search engine did not answer in time. The result is unknown; retry in 1 second."
)


class FailingBackend:
    """A search engine that answers every question for a snapshot with the same failure."""

    def __init__(self, failure: Exception | None) -> None:
        self._failure = failure
        self.closed = False

    async def snapshot(self) -> ReferenceBackend:
        if self._failure is None:
            await asyncio.sleep(60)
            raise AssertionError("the deadline should have passed")
        raise self._failure

    def current(self) -> None:
        """Nothing is available."""

    def typeahead_state(self) -> TypeaheadState:
        return TypeaheadState("ready")

    async def refresh(self) -> ReferenceBackend:
        return await self.snapshot()

    async def generations(self) -> Generations:
        return await (await self.snapshot()).generations()

    async def close(self) -> None:
        self.closed = True


@pytest.mark.rule("I75", "E1", "E1.retry_after")
@pytest.mark.parametrize(("commit", "built_at"), [(None, None), (COMMIT, None), (None, BUILT_AT)])
def test_a_build_that_does_not_know_itself_says_so(tmp_path: Path, commit: str | None, built_at: str | None) -> None:
    settings = Settings(commit=commit, built_at=built_at)
    with served(create_app(settings, search=reference_world(tmp_path))) as base:
        reply = get(base, "/version")
    detail = "version_unknown: this build does not have its commit and build time."
    assert reply.summary == (503, "application/problem+json", problem(503, "version_unknown", detail))
    assert int(reply.headers["retry-after"]) > 0


@pytest.mark.rule("O1", "G4.schema", "E5", "E1.retry_after")
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (
            NothingPublished(SECRET),
            (
                "search: nothing is published yet. Build the index with shop-directory index build; "
                "the log of this process says where it looks."
            ),
        ),
        (
            OtherSchema(SECRET),
            (
                "search: what is published has a schema version that this service does not read. "
                "Build the index with the indexer of this service's version."
            ),
        ),
        (BackendUnavailable(SECRET), "search: the search engine does not answer."),
        (None, "search: the search engine does not answer."),
    ],
)
def test_a_service_without_readable_data_is_alive_but_not_ready(failure: Exception | None, reason: str) -> None:
    backend = FailingBackend(failure)
    with served(create_app(Settings(request_timeout=0.2), search=backend)) as base:
        ready, health = get(base, "/ready"), get(base, "/health")
    assert ready.summary == (503, "application/problem+json", problem(503, "not_ready", reason))
    assert (ready.headers["retry-after"], health.status, backend.closed) == ("2", 200, True)


@pytest.mark.rule("O1", "E1.retry_after")
def test_a_service_without_its_typeahead_is_not_ready_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = reference_world(tmp_path)
    reason = "its files in the index are damaged. Build the index again"
    monkeypatch.setattr(world, "typeahead_state", lambda: TypeaheadState("failed", reason))
    with served(create_app(Settings(), search=world)) as base:
        ready = get(base, "/ready")
        assert (ready.status, ready.json["detail"]) == (503, f"typeahead: {reason}.")
        monkeypatch.setattr(world, "typeahead_state", lambda: TypeaheadState("ready"))
        assert get(base, "/ready").status == 200


@pytest.mark.rule("E3", "E1.retry_after", "E2.wait", "E5", "C1.stale", "I5", "I7", "I58")
@pytest.mark.parametrize("failure", [BackendUnavailable(SECRET), GenerationGone(SECRET), None])
def test_an_engine_that_does_not_answer_is_reported_as_such_on_every_transport(
    tmp_path: Path, failure: Exception | None
) -> None:
    for reply in _failed_calls(tmp_path, failure):
        assert reply.summary == (503, "application/problem+json", UNAVAILABLE)
        assert (reply.headers["retry-after"], reply.headers["cache-control"]) == ("1", "no-store")


@pytest.mark.rule("E3", "E1.retry_after", "E2.wait", "E5", "I5")
def test_a_search_before_the_typeahead_is_open_says_what_is_possible_meanwhile_on_every_transport(
    tmp_path: Path,
) -> None:
    detail = (
        "The index is not open for searches yet, which takes a minute after an installation. Shops can be looked up by "
        "domain or id meanwhile. Try again in 1 second; if it lasts, the operator finds the cause at /ready and in the "
        "log."
    )
    for reply in _failed_calls(tmp_path, TypeaheadNotOpen(SECRET)):
        assert reply.summary == (503, "application/problem+json", problem(503, "backend_unavailable", detail))
        assert reply.headers["retry-after"] == "1"


@pytest.mark.rule("G4.schema", "E1.retry_after", "E2.wait", "E5", "I5")
@pytest.mark.parametrize(("failure", "said"), [(NothingPublished(SECRET), "No index"), (OtherSchema(SECRET), "schema")])
def test_a_call_without_a_readable_index_is_not_ready_on_every_transport(
    tmp_path: Path, failure: Exception, said: str
) -> None:
    for reply in _failed_calls(tmp_path, failure):
        assert (reply.status, reply.json["code"], reply.headers["retry-after"]) == (503, "not_ready", "2")
        assert said in reply.json["detail"]
        assert "shop-directory index build" in reply.json["detail"] or "indexer of this service" in reply.json["detail"]
        assert reply.json["detail"].endswith("Try again in 2 seconds.")


def _failed_calls(folder: Path, failure: Exception | None) -> list[Reply]:
    """What a service whose engine fails answers over REST: nothing of the failure, and the same over MCP."""
    # Without a failure each call takes all of its time, of which a busy machine needs some to look at the token.
    settings = Settings(request_timeout=10.0 if failure else 1.0, token_file=folder / "tokens.sqlite")
    token = {"x_api_token": issue(settings.token_file).text}
    tools = REGISTRY if failure else REGISTRY[:1]
    with served(create_app(settings, search=FailingBackend(failure))) as base:
        replies = [get(base, "/suggest?q=books"), get(base, "/suggest?q=books", if_none_match="*")]
        for tool in tools:
            arguments = json.dumps(tool.examples[0].arguments).encode()
            reply = post(base, f"/tool/{tool.name}", arguments, **token)
            replies.append(reply)
            for era in Era:
                result = call(base, era, tool.name, arguments, **token).json["result"]
                assert (result["isError"], result["content"][0]["text"]) == (True, reply.body.decode())
                assert "structuredContent" not in result
                assert set(result["_meta"]) & {"x-generation", "x-data-as-of"} == set()
    for reply in replies:
        assert (SECRET in reply.body.decode(), "x-generation" in reply.headers) == (False, False)
    return replies


@pytest.mark.rule("C3", "Q2")
def test_pages_of_an_allowed_origin_may_call_and_read(base: str) -> None:
    origin = {"origin": "https://shop-finder.example"}
    preflight = ask(base, "OPTIONS", "/tool/find_shop", headers=origin | {"access-control-request-method": "POST"})
    assert (preflight.status, preflight.body) == (204, b"")
    assert preflight.headers["access-control-allow-origin"] == "https://shop-finder.example"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "content-type" in preflight.headers["access-control-allow-headers"]
    reply = post(base, "/tool/list_categories", {}, **origin)
    assert (reply.headers["access-control-allow-origin"], reply.headers["vary"]) == (origin["origin"], "origin")
    for answer in (reply, get(base, "/suggest?q=")):
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"ratelimit", "ratelimit-policy", "retry-after"} <= set(exposed)


_BACK_SECONDS: Final = 5.0
_CALLS: Final[dict[str, dict[str, Any]]] = {
    "find_shop": {"query": "kiefernhaus"},
    "get_shop": {"shop_domain": "kiefernhaus.internal"},
    "list_coupons": {"shop_domain": "rimona.internal"},
    "resolve_conflict": {"from_shop_id": "shop_kiefernhaus", "to_shop_id": "shop_store-kiefernhaus"},
}
_OPENING: Final = problem(
    503, "not_ready", "typeahead: the files of the live generation are missing or damaged; this is tried again."
)


def panic(*_: object) -> NoReturn:
    empty = tantivy.Index(tantivy.SchemaBuilder().build())
    empty.searcher().doc(tantivy.DocAddress(0, 0))
    raise AssertionError("the engine did not panic")


@pytest.mark.rule("E3", "E5", "E1.retry_after", "I58", "I7")
@pytest.mark.parametrize(
    ("tool", "where"),
    [
        ("find_shop", "query_of"),  # in a thread, as it counts
        ("get_shop", "query_of"),  # in the event loop
        ("list_coupons", "query_of"),
        ("resolve_conflict", "_all_hits"),  # in a scan
    ],
)
def test_a_panic_in_a_search_is_a_failure_on_each_transport_and_the_next_call_is_answered(
    sample: SampleService, tool: str, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    raw = json.dumps(_CALLS[tool]).encode()

    def ask() -> Reply:
        return post(sample.base, f"/tool/{tool}", raw, x_api_token=sample.token)

    before = ask()
    assert before.status == 200
    with monkeypatch.context() as panicking:
        panicking.setattr(engine, where, panic)
        failed = ask()
        results = [call(sample.base, era, tool, raw, x_api_token=sample.token).json["result"] for era in Era]
        health = get(sample.base, "/health")
    assert failed.summary == (503, "application/problem+json", UNAVAILABLE)
    assert (failed.headers["retry-after"], "x-generation" in failed.headers) == ("1", False)
    for result in results:
        assert (result["isError"], "structuredContent" in result) == (True, False)
        assert [block["text"] for block in result["content"]] == [failed.body.decode()]
    assert health.status == 200
    assert "the embedded engine failed" in caplog.text
    # The circuit of the searches may be open for a second.
    after = until(ask, lambda reply: reply.status == 200, _BACK_SECONDS)
    assert after.body == before.body


@pytest.mark.rule("E3", "O1")
def test_a_panic_while_an_index_is_opened_is_a_failure_until_it_can_be_opened(
    sample: SampleService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(Settings(data_dir=sample.index, reports_file=tmp_path / "reports.sqlite", request_timeout=10.0))
    with monkeypatch.context() as panicking:
        panicking.setattr(indices, "OpenIndex", panic)
        with served(app) as base:
            ready, found = get(base, "/ready"), post(base, "/tool/get_shop", _CALLS["get_shop"])
            panicking.undo()
            until_ready(base)
            after = post(base, "/tool/get_shop", _CALLS["get_shop"])
    assert ready.summary == (503, "application/problem+json", _OPENING)
    assert found.summary == (503, "application/problem+json", UNAVAILABLE)
    assert (after.status, after.json["id"]) == (200, "shop_kiefernhaus")
