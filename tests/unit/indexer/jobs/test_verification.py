"""What an engine loses, alters or adds is found before publishing: the live generation stays what it was (G1)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.documents import CouponDocument, ShopDocument
from indexer.sinks.failures import SinkError
from tests.support.catalogues import build_into, coupon, offer, shop, write_catalogue_directory
from tests.support.memory_sink import MemorySink, MemoryWriter

Defect = Callable[[str, list[object]], list[object]]
PUBLIC: Final = 400
HIDDEN: Final = "s_hidden"


def _loses_one(of: str) -> Defect:
    return lambda kind, given: given[1:] if kind == of else given


def _adds_one(kind: str, given: list[object]) -> list[object]:
    return [*given, given[0]] if kind == "shops" else given


def _alters_a_name(kind: str, given: list[object]) -> list[object]:
    match given:
        case [ShopDocument() as first, *others] if kind == "shops":
            return [replace(first, name="Other"), *others]
    return given


def _holds_a_hidden_one(of: str) -> Defect:
    def defect(kind: str, given: list[object]) -> list[object]:
        # In the position of a document that the sample passes over, so that counts and sample are right.
        match given:
            case [first, (ShopDocument() | CouponDocument()) as second, *others] if kind == of:
                return [first, replace(second, id=HIDDEN), *others]
        return given

    return defect


def _alters_the_coupons(kind: str, given: list[object]) -> list[object]:
    del kind
    return [replace(found, view={}) if isinstance(found, CouponDocument) else found for found in given]


def _catalogue(folder: Path) -> Path:
    shops: list[Mapping[str, Any]] = [shop(f"Shop {n}", f"s{n}.internal", id=f"s{n:03}") for n in range(PUBLIC)]
    return write_catalogue_directory(
        folder / "catalogue",
        shops=[*shops, shop("Hidden", id=HIDDEN, visibility="under_review")],
        coupons=[coupon("A", HIDDEN), *(coupon("A", f"s{n:03}") for n in range(PUBLIC))],
        offers=[offer("o1", "s001"), offer("o2", HIDDEN)],
    )


@pytest.mark.rule("G1.verified", "G1", "V1.silent")
@pytest.mark.parametrize(
    ("defect", "message"),
    [
        (_loses_one("shops"), "holds 399 shops, 400 were written"),
        (_loses_one("categories"), "holds 0 categories, 1 were written"),
        (_adds_one, "holds 401 shops, 400 were written"),
        (_alters_a_name, "shops read back from the new generation differ from what was written"),
        (_holds_a_hidden_one("shops"), "the new generation holds shops that may not be public"),
        (_loses_one("coupons"), "holds 399 coupons, 400 were written"),
        (_loses_one("offers"), "holds 0 offers, 1 were written"),
        (_loses_one("facts"), "holds 399 facts, 400 were written"),
        (_alters_the_coupons, "coupons read back from the new generation differ from what was written"),
        (_holds_a_hidden_one("coupons"), "the new generation holds coupons that may not be public"),
    ],
)
def test_a_generation_that_is_not_what_was_written_is_never_published(
    tmp_path: Path, defect: Defect, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, path = MemorySink(), _catalogue(tmp_path)
    live, documents = build_into(sink, path).stamp, sink.documents

    def add(writer: MemoryWriter, kind: str, documents: Iterable[object]) -> int:
        """Store other documents than were given, and return that all were stored."""
        given = list(documents)
        writer.documents[kind] = defect(kind, given)
        return len(given)

    monkeypatch.setattr(MemoryWriter, "add", add)
    with pytest.raises(SinkError, match=message) as error:
        build_into(sink, path)
    assert HIDDEN not in str(error.value)
    assert (sink.live(), sink.documents, sink._unpublished) == (live, documents, {})
