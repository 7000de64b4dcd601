"""Many updates, shuffled, repeated, cut by restarts and crashes at every point: the same end state (G3, C1)."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from indexer.sinks.protocol import GenerationEditor
from tests.engines.conftest import Engine
from tests.engines.following.breaking import BreakingEditor, CrashedError, CrashPoint, crashing_check
from tests.engines.following.followed import FollowedIndex, right, scanned
from tests.engines.following.statements import Story, by_type, how_many

_CHANGES = how_many(400)
_PIECE = max(30, _CHANGES // 20)


@pytest.mark.rule("G3", "C1")
def test_updates_shuffled_and_cut_by_restarts_and_crashes_end_like_a_full_build(engine: Engine, tmp_path: Path) -> None:
    chance = Random(20_261_121)  # noqa: S311 - a repeatable test
    story = Story(chance, shops=max(20, _CHANGES // 20))
    statements = story.statements(_CHANGES)
    followed = FollowedIndex(tmp_path / "followed", engine.sink, by_type(story.catalogue(statements)))
    followed.build()
    points = [*CrashPoint] * 3
    chance.shuffle(points)
    for some in story.cuts(story.arrivals(statements), _PIECE):
        followed.append_statements(some)
        if points and chance.random() < 0.5:
            _fall(followed, points.pop(), chance)
        followed.step(most=chance.randint(1, _PIECE))
    followed.drain()
    expected = right(tmp_path / "right", statements)
    assert followed.scan() == scanned(expected)
    assert expected.stamp is not None
    assert expected.operations_document is not None
    assert followed.accounts() == expected.operations_document.accounts != ()
    assert followed.live.counts == expected.stamp.counts


def _fall(followed: FollowedIndex, point: CrashPoint, chance: Random) -> None:
    """Begin a micro-batch that does not come to its end."""

    def around(editor: GenerationEditor) -> GenerationEditor:
        return BreakingEditor(editor, point, writes=chance.randint(0, 4))

    with suppress(CrashedError), followed.follower(around, crashing_check(point)) as follower:
        follower.step(most=chance.randint(1, _PIECE))


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
