"""Invents names that look like given ones: chains of characters, learnt at run time, for each script and shape.

The next character is drawn after the longest known ending of what is written so far, or after a shorter one, with a
chance that is larger the less is known of the longer one (absolute discounting). How far back it looks and how large
the discount is were chosen so that names collide as the learnt ones do: two of them begin with the same one to eight
characters about as often, and one that was learnt and begins like no other is met by as many invented ones as Good and
Turing's estimate has it (of 100,000, by 15.6 in the first three characters where the estimate is 15.0, by 2.3 in eight
as estimated). No name that was learnt from is ever given out.
"""

import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from index_mappings.text import BARE, Characters, fold_by_script, joined

# Han characters stay as they are written.
_LETTERS: Final = Characters(lambda char: char if unicodedata.name(char, "").startswith("CJK") else BARE.rule(char))
_TRADE_MARKS: Final = {ord("™"): "tm", ord("℠"): "sm"}
# Han, kana, and names that hold both are written in three ways, each with its own usual characters.
_WAYS_OF_WRITING: Final = {"CJK": "han", "HIRAGANA": "kana", "KATAKANA": "kana", "KATAKANA-HIRAGANA": "kana"}
_LATIN: Final = "latin"
_START: Final = "\x02"
_END: Final = "\x03"
# How many characters back a draw looks, and how much is taken off each count for what was never seen there.
_ORDER: Final = 6
_DISCOUNT: Final = 0.92
_LONGEST: Final = 80
# From so many names up a shape has a chain of its own; after so many draws a name may have another shape.
_ENOUGH: Final = 100
_PATIENCE: Final = 12
# A name ends only where one that was learnt ended after the same two characters; one will do where each says more.
_ENDS_AFTER: Final = {"han": 1, "kana": 1, "han and kana": 1}


def script_of(text: str) -> str:
    """The way of writing of a text's letters: "latin", "cyrillic", "han", "kana", "han and kana" ...

    Other letters than Latin ones decide, by the most frequent script; a text without letters is Latin.
    """
    found = Counter(_way(character) for character in text if unicodedata.category(character)[0] == "L")
    del found[_LATIN]
    if found.keys() == {"han", "kana"}:
        return "han and kana"
    return max(found, key=lambda way: (found[way], way), default=_LATIN)


def fold(text: str) -> str:
    """Fold a name script by script, as names were folded when the figures of the benchmark began.

    A corpus must not change with what else is folded, or its figures could not be compared.
    """
    return fold_by_script(text.translate(_TRADE_MARKS), _LETTERS)


class Names:
    """Inventor of names.

    Names of one word are learnt apart from longer ones, and what several names end with ("shop", "& co") is none by
    itself: what a longer name ends with is seldom a name.
    """

    def __init__(self, learnt: Iterable[str], forbidden: Iterable[str]) -> None:
        """Learn names as they are written, repeats included.

        No invented name may equal a forbidden text, however that is spaced, cased or accented.
        """
        whole: dict[str, list[str]] = defaultdict(list)
        for name in learnt:
            whole[script_of(name)].append(name)
        self._chains: dict[tuple[str, bool], _Chain] = {}
        for script, names in whole.items():
            for single in (True, False):
                shaped = [name for name in names if (len(name.split()) == 1) is single]
                self._chains[script, single] = _Chain(
                    shaped if len(shaped) >= _ENOUGH else names, _ENDS_AFTER.get(script, 2)
                )
        ends = Counter(end for names in whole.values() for name in names for end in _ends(fold(name)))
        common = (end for end, count in ends.items() if count > 1)
        self._forbidden = frozenset(joined(fold(text)) for text in (*forbidden, *common))

    def invent(self, chance: random.Random, script: str, words: int = 1, start: str = "") -> str:
        """One new name in a script that was learnt.

        It may have other than so many words where those are hard to come by; those of its `start` are counted.
        """
        chain = self._chains[script, words == 1]
        name = start
        tries = 0
        while not (tries > _PATIENCE or len(name.split()) == words) or name == start or not self.is_new(name):
            name = " ".join(chain.draw(chance, start).split())
            tries += 1
        return name

    def is_new(self, name: str) -> bool:
        """Whether a name is none of those forbidden, nor what several names end with."""
        return joined(fold(name)) not in self._forbidden and bool(name)


class _Chain:
    """What followed each run of up to so many characters."""

    def __init__(self, names: Sequence[str], ends_after: int) -> None:
        followers: dict[str, list[str]] = defaultdict(list)
        for name in names:
            text = f"{_START}{name}{_END}"
            for position in range(1, len(text)):
                for length in range(min(position, _ORDER) + 1):
                    followers[text[position - length : position]].append(text[position])
        self._ends_after = ends_after
        self._followers: Mapping[str, list[str]] = followers
        # The chance that the next character is drawn after a shorter run.
        self._shorter = {run: _DISCOUNT * len(set(seen)) / len(seen) for run, seen in followers.items()}

    def draw(self, chance: random.Random, start: str) -> str:
        draw = chance.random
        followers, shorter = self._followers, self._shorter
        written = _START + start
        longest = len(written) + _LONGEST
        while len(written) < longest:
            run = written[-_ORDER:]
            while run and (run not in followers or draw() < shorter[run]):
                run = run[1:]
            seen = followers[run]
            character = seen[int(draw() * len(seen))]
            if character != _END:
                written += character
            elif len(run) >= self._ends_after:
                break
        return written[1:]


def _ends(folded: str) -> Iterator[str]:
    """What is left of a folded name when words are taken off its beginning."""
    words = folded.split()
    return (" ".join(words[start:]) for start in range(1, len(words)))


def _way(character: str) -> str:
    script = unicodedata.name(character, "LATIN").split(maxsplit=1)[0]
    return _WAYS_OF_WRITING.get(script, script).lower()
