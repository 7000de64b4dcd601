"""Whatever changes come, in any order, twice, late, bad, cut anywhere: the index is that of what stands at last (G3).

What was deleted stays so: OpenSearch forgets a deleted document's version after a while, and all of them when an index
is closed. The order is decided by the state, which forgets nothing.
"""

import json
import logging
import stat
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from opensearchpy import OpenSearch

from index_mappings.documents import DOCUMENTS, stored_part
from index_mappings.generations import STAMP, index_name
from index_mappings.opensearch import wire_document
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.following.followed import (
    BreakingEditor,
    CrashedError,
    CrashPoint,
    FollowedIndex,
    Story,
    by_type,
    crashing_check,
    how_many,
    right,
    scanned,
)
from tests.support.catalogues import coupon, delete, offer, shop, upsert
from tests.support.memory_sink import MemorySink

Everything = dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]]

_CHANGES = how_many(400)
_EXAMPLES = max(40, _CHANGES // 10)
_PIECE = max(30, _CHANGES // 20)
LAMP = shop("Lamp", "lamp.internal", id="lamp", categories=["lamps"])
MOSS = shop("Moss", "moss.internal", id="moss", categories=["garden"])
CATALOGUE = {
    "shops": [{**LAMP, "version": 1}, {**MOSS, "version": 1}],
    "coupons": [coupon("LIGHT", "lamp", id="c1", version=1), coupon("GREEN", "moss", id="c2", version=1)],
    "offers": [offer("o1", "lamp", version=1)],
}
MOSS_ALONE = {"shops": {"moss"}, "categories": {"garden"}, "coupons": {"c2"}, "offers": set[str](), "facts": {"moss"}}
BOTH = {
    "shops": {"lamp", "moss"},
    "categories": {"garden", "lamps"},
    "coupons": {"c1", "c2"},
    "offers": {"o1"},
    "facts": {"lamp", "moss"},
}
_CANARY = "zqcanary"
_BAD = (
    f"not even JSON of {_CANARY}",
    json.dumps(
        {"op": "upsert", "type": "shops", "record": {"id": _CANARY, "visibility": "under_review"}, "version": 2}
    ),
    json.dumps({"op": "delete", "type": "shops", "key": f"{_CANARY} / {_CANARY}", "version": 2}),
    json.dumps({"op": "upsert", "type": "shops", "record": shop(_CANARY, f"{_CANARY}.internal")}),
)


def _everything(sink: MemorySink) -> Everything:
    return {
        kind: {document.id: (wire_document(document), stored_part(document)) for document in documents}
        for kind, documents in sink.documents.items()
    }


@pytest.mark.rule("G3", "C1")
@settings(max_examples=_EXAMPLES, phases=(Phase.generate,), suppress_health_check=[HealthCheck.too_slow])
@given(chance=st.randoms(note_method_calls=False, use_true_random=False), count=st.integers(1, 60))
def test_changes_in_any_order_lead_to_what_a_build_of_the_newest_records_gives(chance: Random, count: int) -> None:
    story = Story(chance, shops=5)
    statements = story.statements(count)
    with tempfile.TemporaryDirectory() as name:
        folder, sink = Path(name), MemorySink()
        there = [one for one in story.catalogue(statements) if one.record is not None]
        lines: dict[str, list[Any]] = {"shops": []}
        for one in there:
            lines.setdefault(one.type, []).append(one.record)
        followed = FollowedIndex(folder, sink, lines)
        followed.build()
        for some in story.cuts(story.arrivals(statements), 12):
            followed.append_statements(some)
            before = followed.live.sequence
            done = followed.step(most=chance.randint(1, 12))
            assert followed.live.sequence == before + done.updates
        followed.drain()
        expected = right(folder / "right", statements)
        assert _everything(sink) == _everything(expected)
        assert (followed.live.counts, followed.drain().applied) == (expected.live().counts, 0)  # type: ignore[union-attr]

        # A build of the old catalogue with the same changes comes to the same.
        followed.build()
        assert _everything(sink) == _everything(expected)


@pytest.mark.rule("G3", "C1")
def test_updates_shuffled_and_cut_by_restarts_end_like_a_full_build(engine: Engine, tmp_path: Path) -> None:
    chance = Random(20_261_121)  # noqa: S311 - a repeatable test
    story = Story(chance, shops=max(20, _CHANGES // 20))
    statements = story.statements(_CHANGES)
    followed = FollowedIndex(tmp_path / "followed", engine.sink, by_type(story.catalogue(statements)))
    followed.build()
    for some in story.cuts(story.arrivals(statements), _PIECE):
        followed.append_statements(some)
        followed.step(most=chance.randint(1, _PIECE))
    followed.drain()
    expected = right(tmp_path / "right", statements)
    assert followed.scan() == scanned(expected)
    assert expected.stamp is not None
    assert expected.operations_document is not None
    assert followed.accounts() == expected.operations_document.accounts != ()
    assert followed.live.counts == expected.stamp.counts


@pytest.mark.rule("G3", "C1")
@pytest.mark.parametrize("point", list(CrashPoint))
def test_what_was_taken_before_a_crash_is_shown_by_the_next_step_without_any_new_change(
    engine: Engine, tmp_path: Path, point: CrashPoint
) -> None:
    chance = Random(7)  # noqa: S311 - a repeatable test
    story = Story(chance, shops=6)
    statements = story.statements(60)
    followed = FollowedIndex(tmp_path / "followed", engine.sink, by_type(story.catalogue(statements)))
    followed.build()
    followed.append_statements(statements)
    before = followed.live.sequence
    with (
        pytest.raises(CrashedError),
        followed.follower(lambda editor: BreakingEditor(editor, point, writes=2), crashing_check(point)) as follower,
    ):
        follower.step()
    with followed.states.open(followed.live.generation) as state:
        assert state.pending.count() > 0
        assert state.position is not None

    done = followed.step()
    assert (done.applied, done.older, done.updates) == (0, 0, 1)
    assert followed.live.sequence == before + (2 if point is CrashPoint.COMMITTED else 1)
    expected = right(tmp_path / "right", statements)
    assert expected.operations_document is not None
    assert followed.scan() == scanned(expected)
    assert followed.accounts() == expected.operations_document.accounts
    assert followed.step().updates == 0


def _ids(followed: FollowedIndex) -> dict[str, set[str]]:
    return {kind: set(documents) for kind, documents in followed.scan().items()}


@pytest.mark.opensearch
@pytest.mark.rule("G3")
def test_an_index_that_forgot_its_deletes_and_was_closed_does_not_take_an_older_upsert(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, tmp_path: Path
) -> None:
    followed = FollowedIndex(tmp_path / "followed", opensearch_engine.sink, CATALOGUE)
    followed.build()
    assert _ids(followed) == BOTH
    names = [index_name(opensearch_location.prefix, kind, followed.live.generation) for kind in (*DOCUMENTS, STAMP)]
    with OpenSearch([opensearch_location.url], timeout=30) as client:
        client.indices.put_settings(index=",".join(names), body={"index.gc_deletes": "0s"})
        followed.append([delete("shops", "lamp", 5)])
        assert (followed.step().applied, _ids(followed)) == (1, MOSS_ALONE)
        client.indices.close(index=",".join(names))
        client.indices.open(index=",".join(names))
        client.cluster.health(index=",".join(names), params={"wait_for_status": "yellow"})
    followed.append([upsert("shops", LAMP, 4)])
    done = followed.step()
    assert (done.applied, done.older, _ids(followed)) == (0, 1, MOSS_ALONE)
    followed.append([upsert("shops", LAMP, 6)])
    assert (followed.step().applied, _ids(followed)) == (1, BOTH)


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
