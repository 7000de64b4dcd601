"""`shop-directory index hide`, `show` and `status`: shops that an operator hides stay hidden until they are shown."""

import shutil
from contextlib import closing
from typing import Any

import pytest

from index_mappings.embedded import pointer_path, stamp_path
from indexer.sinks.lease import holding
from tests.support.catalogues import shop
from tests.unit.indexer.commands.index_operator import BOOK, LAMP, Operator


def _said(operator: Operator, *arguments: str) -> tuple[int, list[str]]:
    done = operator.run(*arguments)
    return done.exit_code, [line for line in (*done.stdout.splitlines(), *done.stderr.splitlines()) if line]


@pytest.mark.rule("V1", "G3")
def test_a_shop_is_hidden_and_shown_by_id_or_domain_and_its_status_says_why(operator: Operator) -> None:
    rival = shop("Rival", "lamp.internal", id="rival")
    lamp = shop("Lamp", "lamp.internal", id="lamp", popularity=5, version=7)
    operator.build(lamp, rival, BOOK)
    assert _said(operator, "status", "lamp", "https://www.LAMP.internal/x") == (
        0,
        [
            "lamp: shown; lamp.internal; version 7; from line or row 1 of the catalogue",
            "lamp: shown; lamp.internal; version 7; from line or row 1 of the catalogue",
            (
                "rival: not shown: its domain belongs to lamp, which ranks higher; lamp.internal;"
                " from line or row 2 of the catalogue"
            ),
        ],
    )
    assert _said(operator, "hide", "lamp", "nobody", "none.internal") == (
        1,
        [
            (
                "lamp: not shown: `index hide` has hidden it; lamp.internal, which rival has; version 7;"
                " from line or row 1 of the catalogue"
            ),
            "nobody: not shown: the state has no record of it",
            "none.internal: not shown: the state has no record of it",
            "Unknown, so not hidden: nobody, none.internal. Name ids or domains.",
        ],
    )
    assert _shops(operator) == {"rival", "book"}
    hidden = operator.run_json("hide", "lamp.internal")
    assert [(found["id"], found["visibility"], found["marked"]) for found in hidden["shops"]] == [
        ("lamp", "public", True), ("rival", "public", True),
    ]  # fmt: skip
    assert (_shops(operator), hidden["generation"]) == ({"book"}, operator.live)
    assert operator.run_json("status")["marked"] == ["lamp", "rival"]
    assert _said(operator, "status")[1][-1] == "Hidden by `index hide` until `index show`: lamp, rival."
    code, said = _said(operator, "show", "rival", "lamp.internal")
    assert (code, said[0].startswith("rival: not shown: its domain belongs to lamp"), said[-1]) == (
        1, True, "Still not shown, for the reason above: rival.",
    )  # fmt: skip
    assert _shops(operator) == {"lamp", "book"}
    assert operator.run_json("status")["marked"] == []
    private = operator.folder / "index.state" / "hidden-shops.ndjson"
    assert private.stat().st_mode & 0o777 == 0o600


def _shops(operator: Operator) -> set[str]:
    with closing(operator.sink.edit(operator.live)) as editor:
        return set(editor.read("shops", ["lamp", "rival", "book"]))


@pytest.mark.rule("V4", "V1", "G3")
def test_what_was_hidden_stays_hidden_whatever_newer_records_say_until_it_is_shown(operator: Operator) -> None:
    public = {**BOOK, "visibility": "public"}
    operator.build(LAMP, {**BOOK, "version": 3})
    assert operator.run("hide", "lamp", "book").exit_code == 0
    allowed = ("--allow-empty", "--allow-shrink")
    for version, arguments in ((3, ()), (4, ()), (5, ()), (2, ("--fresh-state",))):
        done = operator.build(LAMP, {**public, "version": version}, arguments=(*allowed, *arguments))
        listed = "Hidden by `index hide` until `index show`: book, lamp."
        assert (_shops(operator), listed in done.stdout.splitlines()) == (set(), bool(arguments))
    dry = operator.run_json("build", "--catalogue", str(operator.catalogue), "--dry-run", "--allow-shrink")
    assert dry["counts"]["shops"] == 0
    operator.change(op="upsert", type="shops", record={**public, "name": "Book Five"}, version=6)
    operator.change(op="delete", type="shops", key="lamp", version=1)
    operator.change(op="upsert", type="shops", record=LAMP, version=2)
    operator.run("follow", "--catalogue", str(operator.catalogue), "--once")
    assert _shops(operator) == set()
    assert operator.run_json("verify", "--catalogue", str(operator.catalogue))["found"] == 0
    shown = operator.run_json("show", "book", "lamp")["shops"]
    assert [(found["shown"], found["order"], found["origin"]) for found in shown] == [
        (True, {"version": 6}, "change"), (True, {"version": 2}, "change"),
    ]  # fmt: skip
    assert (_shops(operator), _name(operator, "book")) == ({"lamp", "book"}, "Book Five")


def _name(operator: Operator, shop_id: str) -> str:
    with closing(operator.sink.edit(operator.live)) as editor:
        return str(editor.read("shops", [shop_id])[shop_id]["name"])


@pytest.mark.rule("V4", "G3")
@pytest.mark.parametrize("order", [{}, {"version": 3}, {"updated_at": "2031-05-06T07:08:09Z"}])
def test_a_shop_that_was_hidden_and_shown_takes_the_next_edit_of_the_catalogue(
    operator: Operator, order: dict[str, Any]
) -> None:
    operator.build({**LAMP, **order}, BOOK)
    for _ in range(2):
        assert operator.run("hide", "lamp").exit_code == 0
        operator.build({**LAMP, **order, "name": "While hidden"}, BOOK)
        assert operator.run("show", "lamp").exit_code == 0
    newer = {"version": 4} if "version" in order else {"updated_at": "2031-05-06T07:08:10Z"} if order else {}
    operator.build({**LAMP, **newer, "name": "Edited"}, BOOK)
    assert (_shops(operator), _name(operator, "lamp")) == ({"lamp", "book"}, "Edited")
    operator.build({**LAMP, **newer, "visibility": "under_review"}, BOOK, arguments=("--allow-shrink",))
    assert _shops(operator) == {"book"}
    said = "lamp: not shown: its visibility is under_review; "
    code, lines = _said(operator, "show", "lamp")
    assert (code, lines[0].startswith(said), lines[-1]) == (1, True, "Still not shown, for the reason above: lamp.")


@pytest.mark.rule("V4", "G2")
def test_a_rollback_takes_marks_and_their_end_with_it(operator: Operator) -> None:
    operator.build(LAMP, BOOK)
    assert operator.run("hide", "lamp").exit_code == 0
    operator.build(LAMP, {**BOOK, "name": "Newer"})
    assert operator.run("show", "lamp").exit_code == 0
    assert operator.run("hide", "book").exit_code == 0
    planned = operator.run_json("rollback", "--dry-run")["counts"]["shops"]
    assert operator.run("rollback").exit_code == 0
    assert (planned, _shops(operator)) == (1, {"lamp"})
    assert operator.run("show", "book").exit_code == 0
    assert (_shops(operator), _name(operator, "book")) == ({"lamp", "book"}, "Book")


@pytest.mark.rule("V4")
def test_the_better_shop_of_a_domain_that_is_hidden_gives_it_to_the_other_one(operator: Operator) -> None:
    operator.build(shop("Lamp", "one.internal", id="lamp", popularity=5), shop("Rival", "one.internal", id="rival"))
    for _ in range(2):
        assert operator.run("hide", "lamp").exit_code == 0
        assert _shops(operator) == {"rival"}
        assert operator.run("show", "lamp").exit_code == 0
        assert _shops(operator) == {"lamp"}


@pytest.mark.rule("V1", "G3")
@pytest.mark.parametrize("lost", ["stamp", "generation", "pointer"])
def test_a_build_after_the_live_generation_was_lost_still_knows_what_was_hidden(operator: Operator, lost: str) -> None:
    operator.build(LAMP, BOOK)
    operator.change(op="upsert", type="shops", record={**LAMP, "visibility": "under_review"}, version=1)
    operator.run("follow", "--catalogue", str(operator.catalogue), "--once")
    (operator.catalogue / "changes.ndjson").unlink()
    stamp = stamp_path(operator.folder / "index", operator.live)
    if lost == "generation":
        shutil.rmtree(stamp.parent)
    else:
        (stamp if lost == "stamp" else pointer_path(operator.folder / "index")).unlink()
    operator.build(LAMP, BOOK)
    assert _shops(operator) == {"book"}


@pytest.mark.rule("G3")
def test_a_deleted_shop_has_no_record_that_could_be_shown(operator: Operator) -> None:
    operator.build(LAMP, BOOK)
    operator.change(op="delete", type="shops", key="book", version=1)
    operator.run("follow", "--catalogue", str(operator.catalogue), "--once")
    said = "book: not shown: a change deleted it; version 1; from a change"
    assert _said(operator, "status", "book") == (0, [said])
    assert _said(operator, "hide", "book") == (0, [said])
    assert _said(operator, "show", "book") == (1, [said, "Still not shown, for the reason above: book."])


@pytest.mark.rule("G4", "G3")
def test_a_shop_that_another_job_keeps_from_being_hidden_is_hidden_by_the_next_job(operator: Operator) -> None:
    operator.build(LAMP, BOOK)
    with holding(operator.sink.lease(), "prune", 0):
        done = operator.run("hide", "book", "--wait", "0")
    assert (done.exit_code, _shops(operator)) == (4, {"lamp", "book"})
    assert done.stderr.startswith("Not hidden: another job has the lease of ")
    assert done.stderr.endswith("; the change is recorded, and that job or the next one applies it.\n")
    operator.run("follow", "--changes", str(operator.catalogue / "changes.ndjson"), "--once")
    assert _shops(operator) == {"lamp"}


@pytest.mark.rule("G3", "V1")
def test_a_build_if_changed_hides_what_was_recorded_while_another_job_ran(operator: Operator) -> None:
    operator.build(LAMP, BOOK)
    with holding(operator.sink.lease(), "prune", 0):
        assert operator.run("hide", "book", "--wait", "0").exit_code == 4
    operator.build(LAMP, BOOK, arguments=("--if-changed", "--allow-shrink"))
    assert _shops(operator) == {"lamp"}
