"""What CONTRIBUTING.md promises of each addition: the tests that fail until all of it is done, and what mends them.

The page is the one list of these tests; nothing here repeats it.
"""

import re
from dataclasses import dataclass
from typing import Final

from tests.people.docs.pages import BY_PATH

PAGE: Final = BY_PATH["CONTRIBUTING.md"]
_ROW: Final = re.compile(r"^\| `(tests/[\w/]+\.py::\w+)` \| (.+) \|$", re.MULTILINE)
_COMMAND: Final = re.compile(r"`((?:make|python -m) [^`]+)`")
_CHAPTER: Final = re.compile(r"^## (A new \w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Guard:
    """A test, as pytest takes it, that fails until its part of an addition is done.

    `commands` make its part again; there are none where a person has to write it.
    """

    test: str
    commands: tuple[str, ...]


def additions() -> dict[str, tuple[Guard, ...]]:
    """The guards of each addition, by the title of its chapter."""
    return {title: tuple(_guards(text)) for title, text in _CHAPTER.findall(PAGE.text)}


def _guards(text: str) -> list[Guard]:
    return [Guard(test, tuple(_COMMAND.findall(mended))) for test, mended in _ROW.findall(text)]
