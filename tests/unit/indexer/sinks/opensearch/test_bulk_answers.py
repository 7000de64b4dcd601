"""What an answer says of each operation: done, refused for good, to be sent again, or that nothing helps."""

from typing import Any

import pytest

from indexer.sinks.opensearch.bulk_requests import BulkOutcome, RequestFailure, UnreadableAnswerError, bulk_outcome

_DONE = {"index": {"status": 201}}


def _failed(status: int, kind: str) -> dict[str, Any]:
    return {"index": {"status": status, "error": {"type": kind}}}


def test_each_failure_is_reported_by_its_position() -> None:
    full, closed = RequestFailure(429, "rejected"), RequestFailure(503, "unavailable")
    items = [_DONE, _failed(429, "rejected"), _failed(400, "mapper"), _failed(503, "unavailable"), _DONE]
    assert bulk_outcome({"errors": True, "items": items}, 5) == BulkOutcome(
        done=2, refused=((2, RequestFailure(400, "mapper")),), again=(1, 3), failures=frozenset({full, closed})
    )


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "index_closed_exception"), (401, "x"), (403, "cluster_block_exception"), (409, "x")]
)
def test_what_no_document_is_to_blame_for_is_fatal(status: int, kind: str) -> None:
    answer = {"errors": True, "items": [_DONE, _failed(status, kind)]}
    assert bulk_outcome(answer, 2) == BulkOutcome(done=1, fatal=RequestFailure(status, kind))


def test_an_index_that_a_node_does_not_know_is_asked_for_again() -> None:
    missing = RequestFailure(404, "index_not_found_exception")
    answer = {"errors": True, "items": [_failed(404, "index_not_found_exception")]}
    assert bulk_outcome(answer, 1) == BulkOutcome(done=0, again=(0,), failures=frozenset({missing}))


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
def test_an_answer_that_does_not_say_it_of_each_operation_is_none(answer: Any) -> None:  # noqa: ANN401
    with pytest.raises(UnreadableAnswerError):
        bulk_outcome(answer, 1)
