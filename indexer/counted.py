"""Things that say beforehand how many they are: an engine may lay its files out by it."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Counted(Generic[Thing]):
    """Things to go through once; `operator.length_hint` tells their number."""

    def __init__(self, count: int, things: Iterable[Thing]) -> None:
        """Take things, of which there are about so many."""
        self._count = count
        self._things = things

    def __iter__(self) -> Iterator[Thing]:
        """The things."""
        return iter(self._things)

    def __length_hint__(self) -> int:
        """How many there are, as far as is known."""
        return self._count
