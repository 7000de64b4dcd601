"""The outcome of each operation of a bulk request."""

from typing import Any

import pytest

from indexer.sinks.opensearch.bulk_loading import operation_failures
from indexer.sinks.opensearch.retries import UNREADABLE, RequestFailure

_DONE = {"index": {"status": 201}}


@pytest.mark.parametrize(
    ("status", "kind", "is_transient", "concerns_document"),
    [
        (None, "no connection", True, False),
        (429, "rejected", True, False),
        (503, "unavailable", True, False),
        (404, "index_not_found_exception", True, False),
        (400, "mapper", False, True),
        (413, "x", False, True),
        (400, "index_closed_exception", False, False),
        (401, "x", False, False),
        (403, "cluster_block_exception", False, False),
        (409, "x", False, False),
    ],
)
def test_a_failure_is_transient_or_due_to_the_document_or_fatal(
    status: int | None, kind: str, *, is_transient: bool, concerns_document: bool
) -> None:
    failure = RequestFailure(status, kind)
    assert (failure.is_transient, failure.concerns_document) == (is_transient, concerns_document)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"items": None},
        {"items": [{}]},
        {"items": ["x"]},
        {"items": [{"index": None}]},
        {"items": [_DONE, _DONE]},
        {"items": []},
        {"items": [{"index": {"status": 400, "error": "text"}}]},
        "<html>",
    ],
    ids=str,
)
def test_an_answer_that_does_not_say_it_of_each_operation_is_a_failure_of_all(answer: Any) -> None:  # noqa: ANN401
    assert operation_failures(answer, 1) == [UNREADABLE]
