"""The cost of reading and changing a state: what one shop costs does not grow with the number of shops.

Costs are counted in steps of SQLite's virtual machine, which are the same in every run.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.projection import Projector
from indexer.records.related import RECORDS
from indexer.records.shop import VERSION, Order
from indexer.sources.protocol import Change
from indexer.state.changing import apply_changes
from indexer.state.state import State
from tests.support.catalogues import coupon, offer, policy, program, redirect, shipping, shop, trust

FEW, MANY = 100, 400
KINDS: Final = ("shops", "categories", "coupons", "offers", "facts")
# A tree of four times the rows is at most one level deeper, and a sort takes more than four times the comparisons.
MORE_FOR_ALL: Final = 1.2 * MANY / FEW
MORE_FOR_ONE: Final = 1.5
_WRITTEN: Final = Path("/proc/self/io")


def _records(number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """A shop with one related record of each type and more, as lines after their types."""
    shop_id, domain = f"s{number:03}", f"d{number:03}.internal"
    yield "shops", shop(f"Name {number}", domain, id=shop_id, popularity=float(number))
    yield "coupons", coupon("CODE", shop_id)
    yield "offers", offer(f"o{number:03}", shop_id)
    yield "shipping", shipping(shop_id)
    yield from (("policies", policy(shop_id, kind)) for kind in ("returns", "payment_methods"))
    yield from (("trust", trust(shop_id, kind, "known")) for kind in ("tls_issuer", "tls_grade"))
    yield "affiliate_programs", program(shop_id, "network")
    yield "redirects", redirect(domain, f"d{number + 1:03}.internal")


@contextmanager
def _settled(path: Path, shops: int) -> Iterator[State]:
    with State.create(path) as state:
        for number in range(shops):
            for kind, line in _records(number):
                state.rows.put(kind, RECORDS[kind].model_validate(line), number)
        state.index()
        state.public.settle()
        yield state


def _steps(state: State, work: Callable[[State], object]) -> int:
    """The steps that some work takes in the state's database."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    state.connection.set_progress_handler(count, 1)
    work(state)
    state.connection.set_progress_handler(None, 1)
    return steps


def _growth(directory: Path, work: Callable[[State], object]) -> float:
    """How many times more steps some work takes among MANY shops than among FEW."""
    with _settled(directory / "few", FEW) as few, _settled(directory / "many", MANY) as many:
        return _steps(many, work) / _steps(few, work)


@pytest.mark.rule("G3")
@pytest.mark.parametrize("kind", KINDS)
def test_reading_all_documents_of_a_kind_grows_with_the_number_of_shops_alone(tmp_path: Path, kind: str) -> None:
    def read(state: State) -> int:
        (projected,) = (projected for projected in Projector(state).all() if projected.kind == kind)
        return len(list(projected.documents()))

    assert _growth(tmp_path, read) < MORE_FOR_ALL


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("kind", "document_id"),
    [("shops", "s050"), ("coupons", coupon("CODE", "s050")["id"]), ("offers", "o050"), ("facts", "s050")],
)
def test_one_document_costs_the_same_among_any_number_of_shops(tmp_path: Path, kind: str, document_id: str) -> None:
    def read(state: State) -> None:
        assert Projector(state).document(kind, document_id) is not None

    assert _growth(tmp_path, read) < MORE_FOR_ONE


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("kind", "line"), [pytest.param(kind, line, id=f"{kind}-{at}") for at, (kind, line) in enumerate(_records(50))]
)
def test_one_change_costs_the_same_among_any_number_of_shops(tmp_path: Path, kind: str, line: dict[str, Any]) -> None:
    record = RECORDS[kind].model_validate({**line, "version": 1})

    def change(state: State) -> None:
        with state.transaction():
            assert apply_changes(state, [Change(kind, record.key, Order(VERSION, 1), record, "here")]) == (1, 0)

    assert _growth(tmp_path, change) < MORE_FOR_ONE


@pytest.mark.skipif(not _WRITTEN.exists(), reason="only Linux counts the bytes that a process writes")
def test_public_shops_are_settled_without_writing_a_page_for_each_of_them(tmp_path: Path) -> None:
    """With a cache of twenty pages, as it is with millions of shops and the usual cache."""
    path, shops = tmp_path / "state.sqlite", 5_000
    with State.create(path) as state:
        state.connection.execute("BEGIN")
        for number in range(shops):
            # Their domains are in another order than their ids.
            line = shop("Name", f"d{number * 7_919 % shops:05}.internal", id=f"s{number:05}")
            state.rows.put("shops", RECORDS["shops"].model_validate(line), number)
        state.connection.execute("COMMIT")
        state.connection.execute("PRAGMA cache_size = 20")
        state.index()
        before, size = _written_bytes(), path.stat().st_size
        state.public.settle()
        written, grown = _written_bytes() - before, path.stat().st_size - size
    assert grown > 0
    assert written < 5 * grown


def _written_bytes() -> int:
    (written,) = re.findall(r"^wchar: (\d+)$", _WRITTEN.read_text(encoding="ascii"), re.MULTILINE)
    return int(written)
