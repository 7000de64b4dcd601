"""Guesses whether a search that is being typed will need the looser tiers as well: so that a round trip asks for both.

A wrong guess costs time and changes no answer: the tiers are ranked alike whichever way they were asked for (M9).
"""

from typing import Final

from index_mappings.tiers import SUGGEST_CUT

# Asking for all tiers at once costs about as much more as a second round trip does in this share of the queries.
_WORTH_IT: Final = 0.55
# How much the newest query counts against all before it.
_NEWEST: Final = 0.05


class Lookahead:
    """How often queries of each length found too few shops in the strict tiers."""

    def __init__(self) -> None:
        """Begin by expecting it of all lengths: nothing then waits for two round trips."""
        self._few = [1.0] * (SUGGEST_CUT + 1)

    def expects_few(self, letters: int) -> bool:
        """Whether a query of so many letters will probably need the looser tiers."""
        return self._few[min(letters, SUGGEST_CUT)] >= _WORTH_IT

    def learn(self, letters: int, *, few: bool) -> None:
        """Take in how a query of so many letters went."""
        place = min(letters, SUGGEST_CUT)
        self._few[place] += _NEWEST * (few - self._few[place])
