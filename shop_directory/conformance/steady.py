"""Rules that compare two answers, over a catalogue that may be changing: what differs is asked once more, at once."""

from collections.abc import Awaitable
from typing import Protocol

from shop_directory.conformance.rule import RuleBrokenError


class Comparison(Protocol):
    """Asks, compares and raises."""

    def __call__(self, *, fresh: bool) -> Awaitable[None]:
        """Compare answers that this run may have had before, or fresh ones only."""


async def steadily(compare: Comparison) -> None:
    """Compare; where that breaks the rule, once more with fresh answers, so that a publication between two is no fault.

    Raises:
        RuleBrokenError: the answers differ the second time too.
    """
    try:
        await compare(fresh=False)
    except RuleBrokenError:
        await compare(fresh=True)
