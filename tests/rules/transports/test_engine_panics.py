"""The embedded engine panics: its binding raises what is no `Exception`, and callers get a failure like any other (E3).

The panics are real: the binding is asked for a document of a segment that does not exist, where the service calls it.
"""

import json
import time
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
import tantivy

from service.app import create_app
from service.search.embedded import engine, indices
from service.settings.service import Settings
from tests.rules.transports.test_probes_and_headers import UNAVAILABLE
from tests.support.problems import problem
from tests.support.rpc import Era, call
from tests.support.sample import SampleService
from tests.support.served import Reply, get, post, served, until_ready

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
    """Make the engine panic, whatever it was asked for."""
    empty = tantivy.Index(tantivy.SchemaBuilder().build())
    empty.searcher().doc(tantivy.DocAddress(0, 0))
    raise AssertionError("the engine did not panic")


def test_a_panic_of_the_binding_is_no_exception() -> None:
    with pytest.raises(BaseException, match="index out of bounds") as panicked:
        panic()
    assert not isinstance(panicked.value, Exception)


@pytest.mark.rule("E3", "E5", "E1.retry_after", "I58", "I7")
@pytest.mark.parametrize(
    ("tool", "where"),
    [
        ("find_shop", "query_of"),  # in a thread, as it counts
        ("get_shop", "query_of"),  # in the event loop
        ("list_coupons", "query_of"),
        ("resolve_conflict", "_stored"),  # in a scan
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
    until = time.monotonic() + _BACK_SECONDS
    while (after := ask()).status != 200 and time.monotonic() < until:
        time.sleep(0.1)
    assert (after.status, after.body) == (200, before.body)


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
