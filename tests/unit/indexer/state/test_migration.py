"""States of version 1, in which `index hide` was a version of a record, become states with marks (V4)."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from index_mappings.values import microseconds
from indexer.records.shop import ShopRecord
from tests.support.catalogues import shop
from tests.unit.indexer.commands.index_operator import Operator

LATER = "2031-05-06T07:08:09Z"


class FormerOperator(Operator):
    """An operator whose state is of version 1."""

    def record(self, shop_id: str, visibility: str, *, applied: bool = True, **order: Any) -> None:  # noqa: ANN401 - JSON
        """What the commands of version 1 wrote to their file, and to the state if it was `applied`."""
        with closing(sqlite3.connect(self._state)) as db, db:
            (text,) = db.execute("SELECT record FROM shops WHERE id = ?", (shop_id,)).fetchone()
            stated = {**json.loads(text), "visibility": visibility, "version": None, "updated_at": None, **order}
            record = ShopRecord.model_validate_json(json.dumps(stated))
            kind, number = (2, order["version"]) if "version" in order else (1, microseconds(record.updated_at))  # type: ignore[arg-type]
            if applied:
                db.execute(
                    "UPDATE shops SET kind = ?, number = ?, origin = 1, line = 0, record = ? WHERE id = ?",
                    (kind, number, record.model_dump_json(), shop_id),
                )
            if applied and visibility != "public":
                db.execute("UPDATE shops SET shown = 0, rank = NULL, domain = NULL WHERE id = ?", (shop_id,))
                db.execute("DELETE FROM winners WHERE id = ?", (shop_id,))
        change = {"op": "upsert", "type": "shops", "record": record.model_dump(mode="json", exclude_none=True)}
        with (self._state.parent / "visibility-changes.ndjson").open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(change)}\n")

    def make_former(self) -> None:
        with closing(sqlite3.connect(self._state)) as db, db:
            db.executescript("DROP TABLE marks; UPDATE meta SET value = '1' WHERE name = 'version';")
            db.execute("DELETE FROM meta WHERE name = 'marks_position'")

    def statuses(self, *shops: str) -> list[tuple[bool, bool, Mapping[str, Any]]]:
        found = self.run_json("status", *shops)["shops"]
        return [(one["shown"], one["marked"], one["order"]) for one in found]

    @property
    def _state(self) -> Path:
        return self.folder / "index.state" / f"{self.live}.sqlite"


LAMP, BOOK, VASE = (shop(name, id=name.lower(), version=3) for name in ("Lamp", "Book", "Vase"))


@pytest.fixture
def operator(tmp_path: Path) -> FormerOperator:
    operator = FormerOperator(tmp_path)
    operator.build(LAMP, BOOK, VASE)
    operator.make_former()
    return operator


@pytest.mark.rule("V4", "V1")
def test_hidden_shops_have_a_mark_and_their_former_version(operator: FormerOperator) -> None:
    operator.record("lamp", "under_review", version=4)
    operator.record("book", "under_review", version=4, applied=False)
    operator.record("book", "public", version=5)
    assert operator.statuses("lamp", "book", "vase") == [
        (False, True, {"version": 3}), (True, False, {"version": 3}), (True, False, {"version": 3}),
    ]  # fmt: skip
    assert operator.run_json("status")["marked"] == ["lamp"]
    edited = ({**one, "version": 4, "name": "Edited"} for one in (LAMP, BOOK))
    operator.build(*edited, VASE, arguments=("--allow-shrink",))
    assert operator.statuses("lamp", "book") == [(False, True, {"version": 4}), (True, False, {"version": 4})]
    assert operator.run("show", "lamp").exit_code == 0
    assert operator.statuses("lamp") == [(True, False, {"version": 4})]


@pytest.mark.rule("V4")
def test_a_record_without_a_version_takes_the_catalogues_next_one_again(tmp_path: Path) -> None:
    operator = FormerOperator(tmp_path)
    lamp, book = ({name: value for name, value in one.items() if name != "version"} for one in (LAMP, BOOK))
    operator.build(lamp, book)
    operator.make_former()
    operator.record("lamp", "under_review", updated_at=LATER, applied=False)
    operator.record("lamp", "public", updated_at="2031-05-06T07:08:10Z")
    operator.record("book", "under_review", updated_at=LATER)
    operator.build({**lamp, "name": "Edited"}, {**book, "name": "Edited"}, arguments=("--allow-shrink",))
    assert operator.statuses("lamp", "book") == [(True, False, {}), (False, True, {})]
    editor = operator.sink.edit(operator.live)
    assert editor.read("shops", ["lamp", "book"])["lamp"]["name"] == "Edited"
    editor.close()


@pytest.mark.rule("V4", "V1")
@pytest.mark.parametrize("job", ["follow", "fresh build"])
def test_what_was_recorded_and_not_applied_yet_is_hidden_by_the_next_job(operator: FormerOperator, job: str) -> None:
    operator.record("lamp", "under_review", version=4, applied=False)
    if job == "follow":
        assert operator.run("follow", "--catalogue", str(operator.catalogue), "--once").exit_code == 0
    else:
        operator.build(LAMP, BOOK, VASE, arguments=("--fresh-state", "--allow-shrink"))
    assert operator.statuses("lamp", "book") == [(False, True, {"version": 3}), (True, False, {"version": 3})]


@pytest.mark.rule("V4")
def test_a_shop_that_a_newer_record_has_shown_since_stays_shown(operator: FormerOperator) -> None:
    operator.record("lamp", "under_review", version=4, applied=False)
    operator.record("lamp", "public", version=5)
    former = operator.folder / "index.state" / "visibility-changes.ndjson"
    former.write_text(former.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    assert operator.statuses("lamp") == [(True, False, {"version": 5})]
    assert operator.run_json("status")["marked"] == []
