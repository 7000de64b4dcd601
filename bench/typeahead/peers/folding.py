"""Folding as a user of an engine without any would write it: a few lines over the standard library.

It is not this project's own folding, which is part of what is compared.
"""

import re
import unicodedata
from typing import Final

_APOSTROPHES: Final = re.compile("['’`´]")
# Of Latin, Greek and Cyrillic letters; those of kana make other letters.
_MARKS: Final = re.compile("[\u0300-\u036f]")
_BETWEEN_WORDS: Final = re.compile(r"[\W_]+")
_URL: Final = re.compile(r"^https?://(?:www\.)?([^/?#\s]+).*$|^www\.([^/?#\s]+).*$", re.IGNORECASE)


def host_of(typed: str) -> str:
    """The host of a pasted URL, without `www.`; any other text as it is."""
    found = _URL.match(typed.strip())
    return typed if found is None else found[1] or found[2]


def fold(text: str) -> str:
    """Lower case without diacritics and punctuation, words parted by one space."""
    bare = text.lower()
    if not bare.isascii():
        bare = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold())))
    return _BETWEEN_WORDS.sub(" ", _APOSTROPHES.sub("", bare)).strip()
