"""The inputs of a comparison: one corpus on disk and one list of requests, the same for every system.

With the development data, the corpus mixes development shops and invented shops that resemble them. Without it, the
corpus is plain invented shops, the requests are prefixes of their names, and quality is not measured.
"""

import json
import random
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

from bench.invented import write_invented
from bench.typeahead.corpus import SEED, write_corpus
from bench.typeahead.workload import TARGETS_INVENTED, TypedQuery, typing

WORKLOAD_SEED: Final = 20_261_123
_LONGEST: Final = 10
_ERRORS: Final = 0.2
_WELL_KNOWN: Final = 2_000


@dataclass(frozen=True, slots=True)
class Inputs:
    """A corpus, a file with lines of `shops`, and its requests in order; `dev_data` is None if the corpus lacks it."""

    corpus: Path
    typed: tuple[TypedQuery, ...]
    dev_data: Path | None


def inputs_of(folder: Path, shops: int, requests: int, dev_data: Path | None) -> Inputs:
    """Write the corpus of so many invented shops unless it exists, and make the requests."""
    corpus = folder / ("invented.ndjson" if dev_data is None else "mixed.ndjson")
    if not corpus.exists():
        fresh = corpus.with_suffix(".new")
        if dev_data is None:
            write_invented(fresh, shops)
        else:
            write_corpus(fresh, dev_data, shops, SEED)
        fresh.replace(corpus)
    if dev_data is None:
        return Inputs(corpus, tuple(_plainly_typed(corpus, requests)), None)
    # All sizes share the same targets, so that they can be compared.
    asked = typing(dev_data, WORKLOAD_SEED, requests, invented=min(shops, TARGETS_INVENTED))
    return Inputs(corpus, tuple(asked), dev_data)


def _plainly_typed(corpus: Path, requests: int) -> list[TypedQuery]:
    """Prefixes of names of the first shops, earlier ones more often; in one of five, two letters are swapped."""
    chance = random.Random(WORKLOAD_SEED)
    with corpus.open(encoding="utf-8") as file:
        names = [json.loads(line)["name"].lower() for line, _ in zip(file, range(_WELL_KNOWN), strict=False)]
    weights = list(accumulate(1 / rank for rank in range(1, len(names) + 1)))
    found: list[TypedQuery] = []
    while len(found) < requests:
        (name,) = chance.choices(names, cum_weights=weights)
        text = perhaps_swapped(chance, name[: chance.randint(2, _LONGEST)])
        found += [TypedQuery(text[:end]) for end in range(1, len(text) + 1)]
    return found[:requests]


def perhaps_swapped(chance: random.Random, text: str) -> str:
    """A typed text; in one of five, two letters are swapped."""
    if len(text) > 2 and chance.random() < _ERRORS:
        at = chance.randrange(len(text) - 1)
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text
