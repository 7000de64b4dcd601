"""The requests: streams of suggest requests, the development queries by class, and prefixes of names.

Targets of the streams are development and invented shops, drawn by their popularity. That is the logarithm of a rank,
and Zipf's law says that what has rank r is sought 1 / r as often as the first: a weight of 10^(4 p) gives the eight
shops in a hundred that are best known about four fifths of the typing, as that law does for the first 8,000 of 100,000.
So short prefixes of known names repeat, as they do. How far people type, how often they write capitals and name a
country is drawn from the development sessions; in one stream of five a typing error is made, and half of those who make
one go back and set it right. Some hundreds type at the same time.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from bench.typeahead.corpus import SEED, development_shops, invented_shops
from index_mappings.text import fold

# The first invented shops are in every corpus, so that all sizes have the same requests.
TARGETS_INVENTED: Final = 7_000
LENGTHS: Final = (3, 4, 5)
TYPO_LENGTH: Final = 7

_ERRORS: Final = 0.2
_CASES: Final = 500
# The number of people who type at the same time, and the seconds between two keystrokes.
_TYPISTS: Final = 500
_KEY_S: Final = (0.1, 0.4)
_KEYBOARD: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """One suggest request: the text of the field after a keystroke, and the country if there is one."""

    q: str
    country: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The suggest requests of one person, one for each keystroke in order, and the id of the intended shop."""

    requests: tuple[TypedQuery, ...]
    target: str


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query with the ids of the shops of which one must be found, and of those that count neither way."""

    typed: TypedQuery
    relevant: frozenset[str]
    acceptable: frozenset[str] = frozenset()


def typing(dev_data: Path, seed: int, count: int, *, invented: int = TARGETS_INVENTED) -> list[TypedQuery]:
    """Suggest requests of hundreds of people who type at the same time, in order of time.

    One person does not type thousands of keys a second, so the sessions of many are interleaved. The list may be
    repeated: a session that does not end continues at the beginning. `invented` shops among the targets are no more
    than the corpus has.
    """
    chance = random.Random(f"at the same time {seed}")
    seconds = count * sum(_KEY_S) / 2 / _TYPISTS
    timed: list[tuple[float, TypedQuery]] = []
    sought = typing_sessions(dev_data, seed, invented=invented)
    while len(timed) < count:
        timestamp = chance.uniform(0, seconds)
        for request in next(sought).requests[: count - len(timed)]:
            timed.append((timestamp % seconds, request))
            timestamp += chance.uniform(*_KEY_S)
    timed.sort(key=itemgetter(0))
    return [request for _, request in timed]


def typing_sessions(dev_data: Path, seed: int, *, invented: int = TARGETS_INVENTED) -> Iterator[Session]:
    """Endless sessions with their intended shops; arguments as for `typing`."""
    chance = random.Random(f"typing {seed}")
    known = development_shops(dev_data)
    shops = [*known, *islice(invented_shops(known, SEED), invented)]
    heaviness = list(accumulate(_weight(shop) for shop in shops))
    habits = sessions(dev_data)
    while True:
        (shop,) = chance.choices(shops, cum_weights=heaviness)
        habit = chance.choice(habits)
        yield Session(_requests(chance, shop, habit), shop["id"])


def sessions(dev_data: Path) -> list[Session]:
    """The development sessions."""
    return [
        Session(tuple(TypedQuery(q, line.get("country")) for q in line["keystrokes"]), line["target"])
        for line in _lines(dev_data / "dev-sessions.ndjson")
    ]


def classes(dev_data: Path) -> dict[str, list[LabelledQuery]]:
    """The development queries by kind, then prefixes by length ("3 characters" ...), then "typo in seven"."""
    found: dict[str, list[LabelledQuery]] = {}
    for line in _lines(dev_data / "dev-queries.ndjson"):
        sought = LabelledQuery(
            TypedQuery(line["q"], line.get("country")),
            frozenset(line["relevant"]),
            frozenset(line.get("acceptable", ())),
        )
        found.setdefault(line["kind"], []).append(sought)
    return found | prefixes(dev_data)


def prefixes(dev_data: Path) -> dict[str, list[LabelledQuery]]:
    """Prefixes of names of development shops in lower case: of 3, 4 and 5 characters, and of 7 with a typing error.

    The shops are drawn by popularity; all shops of the name are relevant.
    """
    chance = random.Random(f"beginnings {SEED}")
    shops = development_shops(dev_data)
    found = {}
    for length in LENGTHS:
        drawn = _named(chance, shops, length)
        found[f"{length} characters"] = [LabelledQuery(TypedQuery(name[:length]), relevant) for name, relevant in drawn]
    drawn = _named(chance, shops, TYPO_LENGTH)
    found["typo in seven"] = [
        LabelledQuery(TypedQuery(_misspelt(chance, name[:TYPO_LENGTH])), relevant) for name, relevant in drawn
    ]
    return found


def _named(chance: random.Random, shops: Sequence[Mapping[str, Any]], length: int) -> list[tuple[str, frozenset[str]]]:
    """Names in lower case of at least so many characters, and the ids of all shops that bear them."""
    bearers: dict[str, set[str]] = {}
    for shop in shops:
        bearers.setdefault(fold(shop["name"]), set()).add(shop["id"])
    long_enough = [shop for shop in shops if len(shop["name"]) >= length]
    drawn = chance.choices(long_enough, [_weight(shop) for shop in long_enough], k=_CASES)
    return [(shop["name"].lower(), frozenset(bearers[fold(shop["name"])])) for shop in drawn]


def _weight(shop: Mapping[str, Any]) -> float:
    return float(10 ** (4 * (shop["popularity"] or 0.0)))


def _requests(chance: random.Random, shop: Mapping[str, Any], habit: Session) -> tuple[TypedQuery, ...]:
    """The requests for a shop with the length, case and country of a development session."""
    longest = max((request.q for request in habit.requests), key=len)
    text = shop["name"] if longest != longest.lower() else shop["name"].lower()
    text = text[: max(1, len(longest))].strip()
    wrong = _misspelt(chance, text) if len(text) > 2 and chance.random() < _ERRORS else text
    shown = [wrong[:end] for end in range(1, len(wrong) + 1)]
    if wrong != text and chance.random() < 0.5:
        # The error is corrected: delete to the common prefix and go on.
        right = max(1, _common_prefix(wrong, text))
        shown += [wrong[:end] for end in range(len(wrong) - 1, right, -1)]
        shown += [text[:end] for end in range(right, len(text) + 1)]
    country = chance.choice(shop["countries"]) if habit.requests[0].country and shop["countries"] else None
    return tuple(TypedQuery(q, country) for q in shown)


def _common_prefix(one: str, other: str) -> int:
    """The length of the common prefix of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _misspelt(chance: random.Random, text: str) -> str:
    """The text with one typing error: a swap, a loss, a neighbouring key, or a key too many."""
    while True:
        index = chance.randrange(len(text))
        near = _neighbouring_key(chance, text[index])
        wrong = chance.choice(
            (
                text[:index] + text[index + 1 : index + 2] + text[index] + text[index + 2 :],
                text[:index] + text[index + 1 :],
                text[:index] + near + text[index + 1 :],
                text[:index] + near + text[index:],
            )
        )
        if wrong.strip() and fold(wrong) != fold(text):
            return wrong


def _neighbouring_key(chance: random.Random, character: str) -> str:
    """A neighbouring key of a character; the character itself if it is not on the keyboard."""
    for row in _KEYBOARD:
        if (index := row.find(character.lower())) != -1:
            return chance.choice(row[max(0, index - 1) : index] + row[index + 1 : index + 2])
    return character


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
