"""The text of a coupon code, one rule for the catalogue and for reports (A9).

A code is normalised to NFC first. It is 1 to 64 letters, marks and numbers of any script, or `._+*%!#&$/@-`.
"""

import re
from typing import Final
from unicodedata import category, normalize

from index_mappings.text import without_ignorable

MAX_CODE: Final = 64
# What JSON Schema can say of it in every dialect of regular expressions: which ASCII characters and controls it never
# holds.
PATTERN: Final = r"""^[^\x00-\x20"'(),:;<=>?\[\\\]^`{|}~\x7f-\xa0]+$"""
ALLOWED: Final = f"1 to {MAX_CODE} letters, marks and numbers of any script, or ._+*%!#&$/@-"

_PUNCTUATION: Final = frozenset("._+*%!#&$/@-")
_ASCII: Final = re.compile(r"[A-Za-z0-9._+*%!#&$/@-]+")


def normal_code(text: str) -> str | None:
    """The code in NFC, or None where the text is not a code."""
    code = normalize("NFC", text)
    if len(code) > MAX_CODE or without_ignorable(code) != code:
        return None
    if _ASCII.fullmatch(code):
        return code
    return code if code and all(category(char)[0] in "LMN" or char in _PUNCTUATION for char in code) else None


def folded_code(code: str) -> str:
    """The form by which codes are compared: two spellings of one code in capitals and small letters are equal (Q5)."""
    return normalize("NFC", code.casefold())
