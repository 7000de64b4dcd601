"""The corpus as every peer reads it: public shops only, the most popular first.

What is not public never reaches a peer's index, as it never reaches ours. The order lets an engine that keeps the order
of insertion use it as its tie-breaker.
"""

import json
from dataclasses import dataclass
from pathlib import Path

_EVERYWHERE = ["WORLDWIDE"]


@dataclass(frozen=True, slots=True)
class Shop:
    """A public shop; `pop_rank` is from 1, by popularity descending, then id.

    `category` is the slug of the first one, `category_names` are of all. It has no countries if it states none or all,
    and popularity 0 if that is unknown.
    """

    pop_rank: int
    id: str
    name: str
    aliases: tuple[str, ...]
    domain: str
    category: str
    category_names: tuple[str, ...]
    countries: tuple[str, ...]
    popularity: float

    @property
    def texts(self) -> tuple[str, ...]:
        """What is typed to find it."""
        return (self.name, *self.aliases, self.domain)


def public_shops(corpus: Path) -> list[Shop]:
    """Read the public shops of an NDJSON file of `shops`, the most popular first."""
    with corpus.open(encoding="utf-8") as file:
        lines = [line for line in map(json.loads, file) if line["visibility"] == "public"]
    lines.sort(key=lambda line: (-(line["popularity"] or 0), line["id"]))
    return [
        Shop(
            pop_rank=pop_rank,
            id=line["id"],
            name=line["name"],
            aliases=tuple(line.get("aliases") or ()),
            domain=line["domain"],
            category=line["categories"][0]["slug"],
            category_names=tuple(category["name"] for category in line["categories"]),
            countries=() if line["countries"] == _EVERYWHERE else tuple(line["countries"]),
            popularity=line["popularity"] or 0.0,
        )
        for pop_rank, line in enumerate(lines, start=1)
    ]
