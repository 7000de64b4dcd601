"""A build that would only repeat what is live is left out where that is certain; a dry run writes nothing at all."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.embedded import stamp_path
from tests.support.catalogues import coupon, shop
from tests.unit.indexer.commands.index_operator import Operator

LAMP, BOOK, COAT = (shop(name, id=name.lower()) for name in ("Lamp", "Book", "Coat"))
# As `make run` builds; a change of these tests may lose one of two shops.
USUAL: Final = ("--if-changed", "--allow-shrink")


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    operator = Operator(tmp_path)
    assert operator.build(LAMP, BOOK, arguments=USUAL).exit_code == 0
    return operator


def built_again(operator: Operator, *arguments: str) -> tuple[bool, bool]:
    """Whether a build found nothing changed, and whether the live generation is the one of before."""
    before = operator.live
    answer = operator.run_json("build", "--catalogue", str(operator.catalogue), *arguments)
    assert answer["published"] is not answer["unchanged"]
    return answer["unchanged"], operator.live == before


def test_a_build_of_the_same_catalogue_leaves_what_is_live_and_says_so(operator: Operator) -> None:
    before = everything(operator.folder / "index" / "generations")
    done = operator.build(LAMP, BOOK, arguments=USUAL)
    counts = "2 shops, 1 categories, 0 coupons, 0 offers, 2 facts"
    said = f"Nothing has changed since generation {operator.live} was built: it stays live with {counts}.\n"
    assert (done.exit_code, done.stdout) == (0, said)
    assert everything(operator.folder / "index" / "generations") == before
    assert built_again(operator, "--if-changed") == (True, True)
    assert built_again(operator) == (False, False)


def another_record(operator: Operator) -> None:
    operator.write(LAMP, BOOK, COAT)


def another_file(operator: Operator) -> None:
    (operator.catalogue / "coupons.ndjson").write_text(json.dumps(coupon("SAVE", "lamp")) + "\n", encoding="utf-8")


def a_change(operator: Operator) -> None:
    operator.change(op="delete", type="shops", key="book", version=2)


def a_followed_change(operator: Operator) -> None:
    a_change(operator)
    assert operator.run("follow", "--catalogue", str(operator.catalogue), "--once").exit_code == 0
    (operator.catalogue / "changes.ndjson").unlink()


def a_lost_state(operator: Operator) -> None:
    (operator.folder / "index.state" / f"{operator.live}.sqlite").unlink()


def a_lost_index(operator: Operator) -> None:
    shutil.rmtree(operator.folder / "index" / "generations" / operator.live / "facts")


def a_damaged_typeahead(operator: Operator) -> None:
    folder = operator.folder / "index" / "generations" / operator.live / "typeahead"
    largest = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    largest.write_bytes(b"x" + largest.read_bytes()[1:])


@pytest.mark.parametrize(
    "change",
    [another_record, another_file, a_change, a_followed_change, a_lost_state, a_lost_index, a_damaged_typeahead],
    ids=lambda change: change.__name__,
)
def test_whatever_differs_or_is_uncertain_is_built(operator: Operator, change: Callable[[Operator], None]) -> None:
    change(operator)
    for arguments in (USUAL, (*USUAL, "--fresh-state")):
        assert built_again(operator, *arguments) == (False, False)
        assert built_again(operator, *arguments) == (True, True)


def test_an_index_of_another_schema_is_built_again(operator: Operator) -> None:
    stamp = operator.sink.live()
    assert stamp is not None
    other = replace(stamp, schema_version=SCHEMA_VERSION - 1).as_wire()
    stamp_path(operator.folder / "index", stamp.generation).write_text(json.dumps(other), encoding="utf-8")
    done = operator.build(LAMP, BOOK, arguments=USUAL)
    assert (done.exit_code, operator.live == stamp.generation) == (0, False)


def test_another_version_of_the_program_builds_again(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    assert built_again(operator, *USUAL) == (True, True)
    monkeypatch.setattr("indexer.jobs.build._program", lambda: ["another program"])
    assert built_again(operator, *USUAL) == (False, False)


@pytest.mark.parametrize("option", ["--lenient", "--skip-invalid"])
def test_another_way_of_reading_builds_again(operator: Operator, option: str) -> None:
    assert built_again(operator, *USUAL, option) == (False, False)


def test_what_a_former_state_had_a_part_in_is_not_taken_for_the_catalogues_own(operator: Operator) -> None:
    assert built_again(operator) == (False, False)
    assert built_again(operator, *USUAL, "--fresh-state") == (False, False)
    assert built_again(operator, *USUAL) == (True, True)


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """All files below a folder with mode, time and content; directories without the latter two."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        if path.is_file()
        else (path.stat().st_mode, 0, b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.rule("G2")
def test_a_dry_run_reads_validates_and_counts_and_writes_nothing(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    operator.write(LAMP, BOOK)
    before = everything(tmp_path)
    answer = operator.run_json("build", "--catalogue", str(operator.catalogue), "--dry-run")
    assert (answer["published"], answer["unchanged"], answer["counts"]["shops"]) == (False, False, 2)
    assert everything(tmp_path) == before

    operator.write(LAMP, {**BOOK, "popularity": "much"})
    before = everything(tmp_path)
    refused = operator.run("build", "--catalogue", str(operator.catalogue), "--dry-run")
    assert refused.exit_code == 1
    assert "shops.ndjson:2: popularity" in refused.stderr
    assert everything(tmp_path) == before


@pytest.mark.rule("G2", "G3")
def test_a_dry_run_on_a_live_index_takes_no_lease_and_follows_nothing(operator: Operator) -> None:
    operator.change(op="delete", type="shops", key="book", version=2)
    operator.change(op="vanish", type="shops", key="book", version=3)
    before = everything(operator.folder)
    answer = operator.run_json("build", "--catalogue", str(operator.catalogue), "--dry-run", "--allow-shrink")
    assert (answer["published"], answer["counts"]["shops"], answer["changes"]["refused"]) == (False, 1, 1)
    assert operator.run("build", "--catalogue", str(operator.catalogue), "--dry-run").exit_code == 5
    assert everything(operator.folder) == before
