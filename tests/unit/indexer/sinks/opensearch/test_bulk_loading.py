"""The outcome of each operation of a bulk request, and how many requests are in flight under pressure."""

import threading
from typing import Any

import pytest

from indexer.sinks.opensearch.bulk_loading import Throttle
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


def test_pressure_halves_once_for_all_requests_that_met_it_together() -> None:
    throttle = Throttle(8)
    with throttle.slot() as first, throttle.slot() as second:
        throttle.narrow(first)
        throttle.narrow(second)
    assert throttle.limit == 4
    with throttle.slot() as later:
        throttle.narrow(later)
    assert throttle.limit == 2


def test_one_request_is_always_let_through() -> None:
    throttle = Throttle(2)
    for _ in range(5):
        with throttle.slot() as begun:
            throttle.narrow(begun)
    assert throttle.limit == 1


def test_the_limit_grows_back_slowly_and_not_beyond_its_beginning() -> None:
    throttle = Throttle(3)
    for _ in range(2):
        with throttle.slot() as begun:
            throttle.narrow(begun)
    limits = []
    for _ in range(40):
        throttle.widen()
        limits.append(throttle.limit)
    assert limits == [1] * 3 + [2] * 8 + [3] * 29


def test_no_more_turns_are_given_than_the_limit_says() -> None:
    throttle = Throttle(2)
    inside, waited = threading.Semaphore(0), threading.Event()

    def enter() -> None:
        with throttle.slot():
            inside.release()
            waited.wait(5)

    threads = [threading.Thread(target=enter) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert [inside.acquire(timeout=5), inside.acquire(timeout=5), inside.acquire(timeout=0.1)] == [True, True, False]
    waited.set()
    assert inside.acquire(timeout=5)
    for thread in threads:
        thread.join()
