"""Whole builds published one after the other while clients read everything: each answer is wholly one generation's.

Three swaps and 2,000 answers; SHOP_DIRECTORY_SWAPS=20 SHOP_DIRECTORY_SWAP_ANSWERS=40000 is the long form.
"""

import hashlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import pytest

from tests.processes.endurance.locations import Location
from tests.processes.endurance.worlds import COLOURS, write_world
from tests.support.callers import issue
from tests.support.rpc import Era, call
from tests.support.service_process import serving

_BOUND_S: Final = 30.0
_REST: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("find_shop", {"query": "lamp", "limit": 100}),
    ("find_shop", {"query": "lamp qqxx", "limit": 5, "offset": 3}),
    ("list_categories", {}),
    ("get_shop", {"shop_domain": "s7"}),
    ("list_coupons", {"shop_domain": "lamp-s3.internal"}),
    ("list_coupons", {}),
    ("get_shipping_policy", {"shop_domain": "s5", "country": "DE"}),
    ("get_trust", {"shop_domain": "s6"}),
    ("resolve_checkout_url", {"offer_id": "s9-o1", "affiliate": True}),
    ("monetize_offer", {"offer_id": "s8-o0"}),
    ("resolve_conflict", {"from_shop_id": "s0", "to_shop_id": "s1"}),
    ("resolve_conflict", {"from_shop_id": "s0"}),
)
_OVER_MCP: Final = (("find_shop", {"query": "lam", "limit": 20}), ("get_shop", {"shop_domain": "s4"}))
SWAPS: Final = int(os.environ.get("SHOP_DIRECTORY_SWAPS", "3"))
ANSWERS: Final = int(os.environ.get("SHOP_DIRECTORY_SWAP_ANSWERS", "2000"))
CLIENTS: Final = 8
SHOPS: Final = 50
SEEN_BY_ALL_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Question:
    """One call: by `rest`, `mcp`, or `suggest`, where the tool is no matter."""

    transport: str
    tool: str
    arguments: Mapping[str, Any]


QUESTIONS: Final = (
    *(Question("rest", tool, arguments) for tool, arguments in _REST),
    *(Question("mcp", tool, arguments) for tool, arguments in _OVER_MCP),
    Question("suggest", "", {"q": "lamp", "limit": 10}),
    Question("suggest", "", {"q": "lmap"}),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: whether it is one, the generation that it says it is from, and its text."""

    status: int
    generation: str | None
    text: str

    @property
    def mark(self) -> str:
        """What two answers have in common if they say the same."""
        return hashlib.sha256(self.text.encode()).hexdigest()


class Asker:
    """One client with a token and a connection of its own."""

    def __init__(self, base: str, token: str) -> None:
        self._base = base
        self._token = token
        self._connection = HTTPConnection(urlsplit(base).netloc, timeout=_BOUND_S)

    def ask(self, question: Question) -> Answer:
        """Ask, and wait for the answer."""
        if question.transport == "mcp":
            return self._over_mcp(question)
        headers = {"x-api-token": self._token, "content-type": "application/json"}
        if question.transport == "suggest":
            self._connection.request("GET", f"/suggest?{urlencode(question.arguments)}", headers=headers)
        else:
            body = json.dumps(question.arguments)
            self._connection.request("POST", f"/tool/{question.tool}", body, headers)
        response = self._connection.getresponse()
        return Answer(response.status, response.getheader("x-generation"), response.read().decode())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _over_mcp(self, question: Question) -> Answer:
        arguments = json.dumps(question.arguments).encode()
        reply = call(self._base, Era.STATELESS, question.tool, arguments, x_api_token=self._token)
        result = reply.json["result"]
        status = 500 if result.get("isError") else reply.status
        return Answer(status, result["_meta"].get("x-generation"), result["content"][0]["text"])


@dataclass
class Seen:
    """The answers that one client got.

    Attributes:
        answers: how often, by generation, question (its position) and what the answer said.
        asked_last: by generation, when an answer from it was asked for last; seconds of the monotonic clock.
        failures: what was no answer.
    """

    answers: Counter[tuple[str | None, int, str]] = field(default_factory=Counter)
    asked_last: dict[str | None, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    count: int = 0

    def note(self, position: int, began: float, answer: Answer) -> None:
        """Write down an answer."""
        self.answers[answer.generation, position, answer.mark] += 1
        self.asked_last[answer.generation] = began
        self.count += 1
        if answer.status != 200:
            self.failures.append(f"{QUESTIONS[position]}: {answer.status} {answer.text[:200]}")


class Readers:
    """Several clients, each at another question."""

    def __init__(self, base: str, token: str, count: int) -> None:
        self.seen = [Seen() for _ in range(count)]
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._read, args=(Asker(base, token), seen, position))
            for position, seen in enumerate(self.seen)
        ]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """They read meanwhile."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def wait_for(self, answers: int) -> None:
        """Wait until they have had so many answers, all together."""
        answer, at = -1, time.monotonic()
        while (now := self.count) < answers:
            if now != answer:
                answer, at = now, time.monotonic()
            assert time.monotonic() - at < _BOUND_S, "nothing is answered any more"
            assert all(thread.is_alive() for thread in self._threads), "a client has ended"
            time.sleep(0.02)

    def wait_for_generation(self, generation: str) -> None:
        """Wait until one of them was answered from it: the service looks once a second and may miss a short one."""
        until = time.monotonic() + _BOUND_S
        while not any(generation in seen.asked_last for seen in self.seen):
            assert time.monotonic() < until, f"no answer is from {generation}"
            time.sleep(0.02)

    @property
    def count(self) -> int:
        """How many answers there were."""
        return sum(seen.count for seen in self.seen)

    def _read(self, asker: Asker, seen: Seen, position: int) -> None:
        while not self._stop.is_set():
            position = (position + 1) % len(QUESTIONS)
            began = time.monotonic()
            seen.note(position, began, asker.ask(QUESTIONS[position]))
        asker.close()


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
