"""A log that is rotated while nothing follows it: all its files are read, or their absence is reported (G3, V3)."""

import os
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from index_mappings.generations import MissingChanges
from indexer.jobs.build import BuildOptions
from indexer.jobs.following import Following, FollowOptions
from indexer.sources.ndjson import NdjsonCatalogue
from service.app import create_app
from tests.engines.conftest import Engine
from tests.engines.following.followed import FollowedIndex
from tests.support.catalogues import delete, shop, upsert
from tests.support.served import get, served, until

LAMP = shop("Lamp", "lamp.internal", id="lamp", version=1)
MOSS = shop("Moss", "moss.internal", id="moss", version=1)
VASE = shop("Vase", "vase.internal", id="vase")


def _followed(engine: Engine, folder: Path) -> FollowedIndex:
    followed = FollowedIndex(folder, engine.sink, {"shops": [LAMP, MOSS]})
    followed.build()
    return followed


def _follow_once(followed: FollowedIndex) -> MissingChanges | None:
    changes = NdjsonCatalogue(followed.catalogue).changes()
    return Following(followed.sink, followed.states, changes, FollowOptions(once=True)).run(Event()).missing


def _rotate(followed: FollowedIndex) -> None:
    for number in (2, 1):
        older = followed.changes.with_name(f"changes.ndjson.{number}")
        if older.exists():
            older.rename(followed.changes.with_name(f"changes.ndjson.{number + 1}"))
    followed.changes.rename(followed.changes.with_name("changes.ndjson.1"))
    followed.changes.touch()


def _rotate_twice(followed: FollowedIndex) -> None:
    """The file between two rotations has the removal of a shop."""
    _rotate(followed)
    followed.append([delete("shops", "lamp", 5)])
    _rotate(followed)
    followed.append([upsert("shops", VASE, 1)])


def _shown(followed: FollowedIndex) -> set[str]:
    return set(followed.scan()["shops"])


@pytest.mark.rule("G3", "V3")
@pytest.mark.parametrize("job", ["follower", "build"])
@pytest.mark.parametrize("empty", [False, True])
def test_a_removal_between_two_rotations_is_applied_by_a_follower_and_by_a_build(
    engine: Engine, tmp_path: Path, job: str, *, empty: bool
) -> None:
    followed = _followed(engine, tmp_path)
    followed.append([] if empty else [upsert("shops", MOSS, 2)])
    assert (_follow_once(followed), _shown(followed)) == (None, {"lamp", "moss"})
    if empty:
        followed.append([delete("shops", "lamp", 5)])
        _rotate(followed)
        _rotate(followed)
        followed.append([upsert("shops", VASE, 1)])
    else:
        _rotate_twice(followed)
    if job == "follower":
        assert _follow_once(followed) is None
    else:
        followed.build()
    assert _shown(followed) == {"moss", "vase"}
    assert _follow_once(followed) is None


@pytest.mark.rule("G3", "O1.degraded")
def test_a_file_that_is_gone_is_reported_until_a_build_from_a_newer_catalogue(engine: Engine, tmp_path: Path) -> None:
    followed = _followed(engine, tmp_path)
    followed.append([upsert("shops", MOSS, 2)])
    assert _follow_once(followed) is None
    _rotate_twice(followed)
    followed.changes.with_name("changes.ndjson.1").unlink()
    missing = _follow_once(followed)
    assert (missing is not None and missing.bytes, _shown(followed)) == (None, {"lamp", "moss", "vase"})
    assert _follow_once(followed) == missing
    with served(create_app(engine.settings)) as base:
        degraded = {"name": "changes", "status": "degraded", "reason": f"{str(missing).capitalize()}."}
        assert _ready(base) == ("degraded", degraded)
        assert _shown(followed) == {"lamp", "moss", "vase"}
        followed.build()  # its catalogue is as old as it was
        assert _follow_once(followed) == missing
        assert _ready(base) == ("degraded", degraded)
        time.sleep(0.01)  # longer than a clock of a file system takes
        followed.rewrite({"shops": [MOSS]})
        followed.build()
        assert (_follow_once(followed), _shown(followed)) == (None, {"moss", "vase"})
        until(lambda: _ready(base)[0], lambda status: status == "ready", 10.0)


def _ready(base: str) -> tuple[str, dict[str, Any]]:
    answer = get(base, "/ready").json
    return answer["status"], answer["checks"][-1]


@pytest.mark.rule("G3")
@pytest.mark.parametrize("fresh", [False, True])
def test_a_build_reports_a_file_that_was_not_there_unless_its_catalogue_is_newer_or_decides_alone(
    engine: Engine, tmp_path: Path, *, fresh: bool
) -> None:
    followed = _followed(engine, tmp_path)
    followed.append([upsert("shops", MOSS, 2)])
    assert _follow_once(followed) is None
    _rotate_twice(followed)
    for number in (1, 2):
        followed.changes.with_name(f"changes.ndjson.{number}").unlink()
    followed.build(BuildOptions(fresh_state=fresh))
    assert (_follow_once(followed) is None) is fresh
    written = followed.changes.stat().st_mtime + 1
    os.utime(followed.catalogue / "shops.ndjson", (written, written))
    followed.build()
    assert _follow_once(followed) is None
