"""The measures of an answer's quality: success at a rank, reciprocal rank, keystrokes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

# Every list is asked ten deep; success is looked for among the first and the first eight.
DEPTH: Final = 10
SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Quality:
    """Figures over so many queries, from 0 to 1: the shares with a relevant shop first, and among the first eight.

    `mrr_10` is the mean of 1 / rank of the first relevant shop, 0 beyond ten.
    """

    queries: int
    success_1: float
    success_8: float
    mrr_10: float


def rank_of_first(answer: Sequence[str], relevant: AbstractSet[str], acceptable: AbstractSet[str]) -> int | None:
    """The rank, from 1, of the first relevant shop; acceptable ones are neither right nor wrong and take no rank."""
    counted = [shop for shop in answer[:DEPTH] if shop not in acceptable or shop in relevant]
    return next((rank for rank, shop in enumerate(counted, 1) if shop in relevant), None)


def quality(ranks: Sequence[int | None]) -> Quality:
    found = [rank for rank in ranks if rank is not None]
    return Quality(
        queries=len(ranks),
        success_1=sum(rank == 1 for rank in found) / len(ranks),
        success_8=sum(rank <= SHOWN for rank in found) / len(ranks),
        mrr_10=sum(1 / rank for rank in found) / len(ranks),
    )


def by_kind(ranks: Iterable[tuple[str, int | None]]) -> Mapping[str, Quality]:
    grouped: dict[str, list[int | None]] = defaultdict(list)
    for kind, rank in ranks:
        grouped[kind].append(rank)
    return {kind: quality(found) for kind, found in grouped.items()}


def keystrokes_until(shown: Sequence[Sequence[str]], target: str) -> int:
    """After how many keystrokes the target is shown; one more than all when it never is."""
    return next((count for count, shops in enumerate(shown, 1) if target in shops[:SHOWN]), len(shown) + 1)
