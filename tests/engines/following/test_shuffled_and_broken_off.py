"""Many updates, shuffled, repeated, cut by restarts and by falls at every moment: the same end state (G3, C1)."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from indexer.sinks.protocol import GenerationEditor
from tests.engines.following.breaking import BreakingEditor, FallenError, Timestamp, falling_check
from tests.engines.following.conftest import Engine
from tests.engines.following.places import Place, right, scanned
from tests.engines.following.statements import Story, by_type, how_many

_CHANGES = how_many(400)
_PIECE = max(30, _CHANGES // 20)


@pytest.mark.rule("G3", "C1")
def test_updates_shuffled_and_cut_by_restarts_and_falls_end_like_a_build_from_nothing(
    engine: Engine, tmp_path: Path
) -> None:
    chance = Random(20_261_121)  # noqa: S311 - a repeatable test
    story = Story(chance, shops=max(20, _CHANGES // 20))
    said = story.statements(_CHANGES)
    place = Place(tmp_path / "followed", engine.sink, by_type(story.catalogue(said)))
    place.build()
    moments = [*Timestamp] * 3
    chance.shuffle(moments)
    for some in story.cuts(story.arrivals(said), _PIECE):
        place.say(some)
        if moments and chance.random() < 0.5:
            _fall(place, moments.pop(), chance)
        place.step(most=chance.randint(1, _PIECE))
    place.drain()
    expected = right(tmp_path / "right", said)
    assert place.scan() == scanned(expected)
    assert expected.stamp is not None
    assert expected.operations_document is not None
    assert place.accounts() == expected.operations_document.accounts != ()
    assert place.live.counts == expected.stamp.counts


def _fall(place: Place, moment: Timestamp, chance: Random) -> None:
    """Begin a micro-batch that does not come to its end."""

    def around(editor: GenerationEditor) -> GenerationEditor:
        return BreakingEditor(editor, moment, writes=chance.randint(0, 4))

    with suppress(FallenError), place.follower(around, falling_check(moment)) as follower:
        follower.step(most=chance.randint(1, _PIECE))


@pytest.mark.rule("G3", "C1")
@pytest.mark.parametrize("moment", list(Timestamp))
def test_what_was_taken_before_a_fall_is_shown_by_the_next_step_without_any_new_change(
    engine: Engine, tmp_path: Path, moment: Timestamp
) -> None:
    chance = Random(7)  # noqa: S311 - a repeatable test
    story = Story(chance, shops=6)
    said = story.statements(60)
    place = Place(tmp_path / "followed", engine.sink, by_type(story.catalogue(said)))
    place.build()
    place.say(said)
    before = place.live.sequence
    with (
        pytest.raises(FallenError),
        place.follower(lambda editor: BreakingEditor(editor, moment, writes=2), falling_check(moment)) as follower,
    ):
        follower.step()
    with place.states.open(place.live.generation) as state:
        assert state.pending.count() > 0
        assert state.position is not None

    done = place.step()
    assert (done.applied, done.older, done.updates) == (0, 0, 1)
    assert place.live.sequence == before + (2 if moment is Timestamp.COMMITTED else 1)
    expected = right(tmp_path / "right", said)
    assert expected.operations_document is not None
    assert place.scan() == scanned(expected)
    assert place.accounts() == expected.operations_document.accounts
    assert place.step().updates == 0
