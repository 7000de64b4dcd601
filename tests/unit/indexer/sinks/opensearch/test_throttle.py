"""Pressure halves the number of requests in flight, and a row of successes lets one more through."""

import threading

from indexer.sinks.opensearch.bulk_loading import Throttle


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
