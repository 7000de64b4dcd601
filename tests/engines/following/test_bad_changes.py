"""Bad changes: stored for the operator, logged without a value, and no obstacle to the other changes (V1, G3)."""

import json
import logging
import stat
from pathlib import Path

import pytest

from tests.engines.conftest import Engine
from tests.engines.following.followed import FollowedIndex
from tests.support.catalogues import shop
from tests.support.changes import delete, upsert

_CANARY = "zqcanary"
_BAD = (
    f"not even JSON of {_CANARY}",
    json.dumps(
        {"op": "upsert", "type": "shops", "record": {"id": _CANARY, "visibility": "under_review"}, "version": 2}
    ),
    json.dumps({"op": "delete", "type": "shops", "key": f"{_CANARY} / {_CANARY}", "version": 2}),
    json.dumps({"op": "upsert", "type": "shops", "record": shop(_CANARY, f"{_CANARY}.internal")}),
)


@pytest.mark.rule("V1.silent", "G3")
def test_bad_changes_are_dead_letters_and_the_others_go_on(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    followed = FollowedIndex(tmp_path / "followed", engine.sink, {"shops": [shop("Lamp", id="lamp", version=1)]})
    followed.build()
    good = upsert("shops", shop("Moss", id="moss"), 1)
    followed.append([*_BAD[:2], good, *_BAD[2:], delete("shops", "lamp", 2)])
    done = followed.step()
    assert (done.applied, done.refused, set(followed.scan()["shops"])) == (2, 4, {"moss"})

    file = followed.states.dead_letters
    letters = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(letter["location"], letter["document"]) for letter in letters] == [
        (f"changes.ndjson:{line}", text) for line, text in zip((1, 2, 4, 5), _BAD, strict=True)
    ]
    assert all(letter["reason"] and _CANARY not in letter["reason"] for letter in letters)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    output = capsys.readouterr()
    assert _CANARY not in f"{caplog.text}{output.out}{output.err}"

    # Reading on, nothing of it comes again.
    assert (followed.step().refused, len(file.read_text(encoding="utf-8").splitlines())) == (0, 4)
