"""Words that may stand in a label: few, and ours; whatever else comes in is the one word `other`.

So the number of series is bounded whatever callers send, and whoever calls the measures.
"""

import re
from collections.abc import Iterable
from typing import Final

OTHER: Final = "other"

_WORD: Final = re.compile("[a-z][a-z0-9_]{0,30}")


class Words:
    """The values of one label."""

    def __init__(self, known: Iterable[str], more: int = 0) -> None:
        """Allow words.

        Args:
            known: the values that there are.
            more: how many further words of the code's own form are taken as they come.
        """
        self._known = set(known)
        self._more = more

    def __call__(self, word: str) -> str:
        """The word, or `other`."""
        if word in self._known:
            return word
        if self._more > 0 and _WORD.fullmatch(word):
            self._more -= 1
            self._known.add(word)
            return word
        return OTHER
