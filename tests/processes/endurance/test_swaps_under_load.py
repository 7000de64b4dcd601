"""Whole builds published one after the other while clients read everything: each answer is wholly one generation's.

Two swaps and 600 answers; SHOP_DIRECTORY_SWAPS=20 is the long form.
"""

import os
import re
import time
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.worlds import COLOURS, Location, write_world
from tests.processes.load.plan import Plan, Question, answered_alone, load
from tests.processes.load.questions import mcp, reads, suggestion, tool
from tests.support.callers import issue
from tests.support.served import get, until
from tests.support.service_process import Service, serving
from tests.support.wire import Era, exchange

SWAPS: Final = int(os.environ.get("SHOP_DIRECTORY_SWAPS", "2"))
ANSWERS: Final = 300 * SWAPS
CLIENTS: Final = 8
SHOPS: Final = 50
SEEN_BY_ALL_S: Final = 3.0
_BOUND_S: Final = 30.0


def questions_of(token: str) -> tuple[Question, ...]:
    return (
        *reads(token),
        tool("find_shop", {"query": "lamp qqxx", "limit": 5, "offset": 3}, token),
        tool("list_coupons", {}, token),
        tool("resolve_conflict", {"from_shop_id": "s0", "to_shop_id": "s1"}, token),
        mcp(Era.STATELESS, "find_shop", {"query": "lam", "limit": 20}, token),
        mcp(Era.HANDSHAKE, "get_shop", {"shop_domain": "s4"}, token),
        suggestion("q=lamp&limit=10"),
        suggestion("q=lmap"),
    )


class Swapping:
    """Builds of one colour after the other, and when each of them was replaced."""

    def __init__(self, location: Location, folder: Path) -> None:
        self._location = location
        self._catalogues = {colour: write_world(folder / colour, colour, SHOPS) for colour in COLOURS}
        self.colours: dict[str, str] = {}
        self.replaced: dict[str, float] = {}

    def build(self, colour: str, service: Service, question: Question) -> str:
        """Build and publish, and wait until the service answers from it; returns the generation.

        The service looks for a new one once a second and may miss a short one.
        """
        generation = self._location.build(self._catalogues[colour]).stamp.generation
        for former in self.colours:
            self.replaced.setdefault(former, time.monotonic())
        self.colours[generation] = colour
        until(lambda: text_of(service, question), lambda text: f"x-generation: {generation}" in text, _BOUND_S)
        return generation


def served(service: Service, route: str = '[^"]*') -> float:
    """The requests that a service has answered, those of the operator included."""
    counts = rf'^shopdir_request_duration_seconds_count\{{[^}}]*route="{route}"\}} (\S+)$'
    return sum(map(float, re.findall(counts, get(service.base, "/metrics").body.decode(), re.MULTILINE)))


def text_of(service: Service, question: Question) -> str:
    (reply,) = exchange(service.base, question.raw.replace("\r\n", "\r\nconnection: close\r\n", 1).encode())
    return "\n".join([*(f"{name}: {value}" for name, value in reply.headers.items()), reply.body.decode()])


def quiet_answers(service: Service, questions: tuple[Question, ...], colour: str) -> dict[int, str]:
    """What every question is answered while nothing else happens, after a look that all of it has the one colour."""
    (other,) = (one for one in COLOURS if one != colour)
    for question in questions:
        said = text_of(service, question).lower()
        assert (colour in said, other in said) == (True, False), question
    return {question: mark for question, (_, mark) in answered_alone(service.port, questions).items()}


@pytest.mark.slow
@pytest.mark.rule("C2.one_generation", "C2", "G1", "G2", "C1")
@pytest.mark.timeout(180 + 30 * SWAPS)
def test_every_answer_during_swaps_is_wholly_that_of_the_generation_that_it_names(
    location: Location, tmp_path: Path
) -> None:
    swapping = Swapping(location, tmp_path)
    questions = questions_of(issue(tmp_path / "tokens.sqlite").text)
    location.build(write_world(tmp_path / "before", COLOURS[0], SHOPS))
    with serving(tmp_path, {**location.settings(), "REQUEST_TIMEOUT": "10"}) as service:
        right: dict[str, dict[int, str]] = {}
        for colour in COLOURS:
            swapping.build(colour, service, questions[0])
            right[colour] = quiet_answers(service, questions, colour)
        assert not {*right["amber"].values()} & {*right["violet"].values()}

        with load(Plan((service.port,), questions, CLIENTS, pause=0.02)) as making:
            # The load's process takes a moment to start, and a small build is published sooner than that.
            quiet = served(service, "suggest")
            until(lambda: served(service, "suggest"), lambda count: count >= quiet + CLIENTS, _BOUND_S)
            for swap in range(SWAPS):
                last = swapping.build(COLOURS[swap % 2], service, questions[0])
            published = time.monotonic()
            time.sleep(SEEN_BY_ALL_S + 0.5)
            # A slow machine has answered less by now.
            while served(service) < ANSWERS + 200 and time.monotonic() < published + _BOUND_S:
                time.sleep(0.2)
            result = making.stopped()

    assert result.cut == ()
    assert {(row.status, row.code) for row in result.rows} == {(200, "")}
    assert [row for row in result.rows if row.mark != right[swapping.colours[row.generation]][row.question]] == []
    ended = {generation: replaced + SEEN_BY_ALL_S for generation, replaced in swapping.replaced.items()}
    assert [row for row in result.rows if row.at > ended.get(row.generation, row.at)] == []
    # Enough was asked, of everything and of every generation.
    assert len(result.rows) >= ANSWERS
    assert {row.question for row in result.rows} == set(range(len(questions)))
    assert {row.generation for row in result.rows} == set(list(swapping.colours)[1:])
    assert {row.generation for row in result.rows if row.at > published + SEEN_BY_ALL_S} == {last}
    assert location.remains() == []
