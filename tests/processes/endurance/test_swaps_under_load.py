"""Whole builds published one after the other while clients read everything: each answer is wholly one generation's.

Three swaps and 2,000 answers; SHOP_DIRECTORY_SWAPS=20 SHOP_DIRECTORY_SWAP_ANSWERS=40000 is the long form.
"""

import os
import time
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.locations import Location
from tests.processes.endurance.reading import QUESTIONS, Asker, Readers
from tests.processes.endurance.worlds import COLOURS, write_world
from tests.support.callers import issue
from tests.support.service_process import serving

SWAPS: Final = int(os.environ.get("SHOP_DIRECTORY_SWAPS", "3"))
ANSWERS: Final = int(os.environ.get("SHOP_DIRECTORY_SWAP_ANSWERS", "2000"))
CLIENTS: Final = 8
SHOPS: Final = 50
SEEN_BY_ALL_S: Final = 3.0


class Swapping:
    """Builds of one colour after the other, and when each of them was replaced."""

    def __init__(self, location: Location, folder: Path) -> None:
        self._location = location
        self._catalogues = {colour: write_world(folder / colour, colour, SHOPS) for colour in COLOURS}
        self.colours: dict[str, str] = {}
        self.replaced: dict[str, float] = {}

    def build(self, colour: str) -> str:
        """Build and publish; returns the generation."""
        generation = self._location.build(self._catalogues[colour]).stamp.generation
        for former in self.colours:
            self.replaced.setdefault(former, time.monotonic())
        self.colours[generation] = colour
        return generation


def quiet_answers(base: str, token: str, generation: str, colour: str) -> list[str]:
    """What every question is answered while nothing else happens, after a look that all of it has the one colour."""
    asker = Asker(base, token)
    until = time.monotonic() + SEEN_BY_ALL_S
    while asker.ask(QUESTIONS[0]).generation != generation:
        assert time.monotonic() < until, "the new generation is not seen"
        time.sleep(0.05)
    answers = [asker.ask(question) for question in QUESTIONS]
    asker.close()
    (other,) = (one for one in COLOURS if one != colour)
    for question, answer in zip(QUESTIONS, answers, strict=True):
        assert (answer.status, answer.generation) == (200, generation), question
        assert colour in answer.text.lower(), question
        assert other not in answer.text.lower(), question
    return [answer.mark for answer in answers]


def wrong_answers(readers: Readers, right: dict[str, list[str]], colours: dict[str, str]) -> list[str]:
    """Answers that are not, letter for letter, the one of the generation that they name."""
    return [
        f"{QUESTIONS[question]}: {count} from {generation}"
        for seen in readers.seen
        for (generation, question, mark), count in seen.answers.items()
        if generation not in colours or mark != right[colours[generation]][question]
    ]


def late_answers(readers: Readers, replaced: dict[str, float]) -> list[str]:
    """Answers from a generation that had been replaced for longer than anybody may not notice."""
    return [
        f"asked {asked - replaced[generation]:.1f} s after {generation} was replaced"
        for seen in readers.seen
        for generation, asked in seen.asked_last.items()
        if generation in replaced and asked > replaced[generation] + SEEN_BY_ALL_S
    ]


@pytest.mark.slow
@pytest.mark.rule("C2.one_generation", "C2", "G1", "G2", "C1")
@pytest.mark.timeout(120 + ANSWERS // 50 + 10 * SWAPS)
def test_every_answer_during_swaps_is_wholly_that_of_the_generation_that_it_names(
    location: Location, tmp_path: Path
) -> None:
    swapping = Swapping(location, tmp_path)
    token = issue(tmp_path / "tokens.sqlite").text
    first = swapping.build("amber")
    with serving(tmp_path, {**location.settings(), "REQUEST_TIMEOUT": "10"}) as service:
        base = service.base
        right = {"amber": quiet_answers(base, token, first, "amber")}
        right["violet"] = quiet_answers(base, token, swapping.build("violet"), "violet")
        assert not set(right["amber"]) & set(right["violet"])

        readers = Readers(base, token, CLIENTS)
        with readers.reading():
            for swap in range(SWAPS):
                readers.wait_for(ANSWERS * (swap + 1) // (SWAPS + 1))
                last = swapping.build(COLOURS[swap % 2])
                readers.wait_for_generation(last)
            published = time.monotonic()
            readers.wait_for(ANSWERS)
            time.sleep(max(0.0, published + SEEN_BY_ALL_S + 0.5 - time.monotonic()))

    assert [failure for seen in readers.seen for failure in seen.failures] == []
    assert wrong_answers(readers, right, swapping.colours) == []
    assert late_answers(readers, swapping.replaced) == []
    assert all(seen.asked_last[last] > published + SEEN_BY_ALL_S for seen in readers.seen)
    # Enough was asked, of everything and of every generation.
    answers = [key for seen in readers.seen for key in seen.answers]
    assert sum(seen.answers.total() for seen in readers.seen) == readers.count >= ANSWERS
    assert {question for _, question, _ in answers} == set(range(len(QUESTIONS)))
    assert {generation for generation, _, _ in answers} == set(list(swapping.colours)[1:])
    assert location.remains() == []
