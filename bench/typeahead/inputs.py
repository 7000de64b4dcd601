"""What a comparison is made of: one corpus on disk and one list of requests, the same for every system.

With the development data they are mixed into invented shops that are like them. Without, the plain invented shops and
beginnings of their names stand in, quality cannot be told, and the report says so.
"""

import json
import random
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

from bench.invented import write_invented
from bench.typeahead.corpus import SEED, write_corpus
from bench.typeahead.workload import TARGETS_INVENTED, Typed, typing

WORKLOAD_SEED: Final = 20_261_123
_LONGEST: Final = 10
_ERRORS: Final = 0.2
_WELL_KNOWN: Final = 2_000


@dataclass(frozen=True, slots=True)
class Inputs:
    """One corpus and what is asked of it.

    Attributes:
        corpus: lines of `shops`.
        typed: the requests, in order.
        dev_data: the folder of the development data, if it is in the corpus.
    """

    corpus: Path
    typed: tuple[Typed, ...]
    dev_data: Path | None


def prepared(folder: Path, shops: int, requests: int, dev_data: Path | None) -> Inputs:
    """Write the corpus, unless an earlier run has, and make the requests.

    Args:
        folder: that the corpus is in.
        shops: how many invented ones.
        requests: how many.
        dev_data: the folder of the development data; None where it is not there.
    """
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
    # The same targets at every size that holds them, so that sizes can be compared.
    asked = typing(dev_data, WORKLOAD_SEED, requests, invented=min(shops, TARGETS_INVENTED))
    return Inputs(corpus, tuple(asked), dev_data)


def _plainly_typed(corpus: Path, requests: int) -> list[Typed]:
    """Beginnings of the names of the first shops, the first of them most often; in one of five, two letters swapped."""
    chance = random.Random(WORKLOAD_SEED)
    with corpus.open(encoding="utf-8") as file:
        names = [json.loads(line)["name"].lower() for line, _ in zip(file, range(_WELL_KNOWN), strict=False)]
    weights = list(accumulate(1 / rank for rank in range(1, len(names) + 1)))
    found: list[Typed] = []
    while len(found) < requests:
        (name,) = chance.choices(names, cum_weights=weights)
        text = name[: chance.randint(2, _LONGEST)]
        if len(text) > 2 and chance.random() < _ERRORS:
            at = chance.randrange(len(text) - 1)
            text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        found += [Typed(text[:end]) for end in range(1, len(text) + 1)]
    return found[:requests]
