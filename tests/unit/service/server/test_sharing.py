"""Which worker may accept a connection."""

import time

import pytest

from service.server.sharing import WorkerTable


def table_of(*connections: int) -> WorkerTable:
    """Workers that run, with these connections."""
    table = WorkerTable(len(connections))
    for worker, number in enumerate(connections):
        table.tick(worker)
        table.count(worker, number)
    return table


@pytest.mark.parametrize(
    ("connections", "accepting"),
    [
        ((0,), [True]),
        ((9,), [True]),
        ((0, 0), [True, True]),
        ((1, 0), [False, True]),
        ((3, 3, 3), [True, True, True]),
        ((4, 3, 3), [False, True, True]),
        ((5, 4, 3), [False, True, True]),
        ((83, 3, 8, 19), [False, True, True, True]),
    ],
)
def test_a_worker_with_at_most_the_mean_accepts(connections: tuple[int, ...], accepting: list[bool]) -> None:
    table = table_of(*connections)
    assert [table.may_accept(worker) for worker in range(len(connections))] == accepting


def test_a_worker_that_has_ended_or_does_not_run_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(5, 0, 0)
    table.end(1)
    table.count(0, 5)
    assert not table.may_accept(0)
    later = time.monotonic() + 1.1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert table.may_accept(0)
    table.tick(2)
    assert not table.may_accept(0)


def test_a_worker_that_starts_with_the_others_is_waited_for_at_most_two_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = WorkerTable(2)
    table.await_start(1)
    table.tick(0)
    table.count(0, 1)
    assert not table.may_accept(0)
    assert table.ran_at(1) == 0.0
    later = time.monotonic() + 2.1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert table.may_accept(0)
