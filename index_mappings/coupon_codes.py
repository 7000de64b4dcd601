"""The rule for the text of a coupon code, in catalogues and in reports (A9).

A code is normalised to NFC first. It is 1 to 64 letters, marks and numbers of any script, or `._+*%!#&$/@-`.
"""

import re
from typing import Final
from unicodedata import category, normalize

from index_mappings.text import without_ignorable

MAX_CODE: Final = 64
# The part of the rule that every dialect of regular expressions can state, for JSON Schema: the ASCII characters and
# controls that a code never has.
_CHARACTER: Final = r"""[^\x00-\x20"'(),:;<=>?\[\\\]^`{|}~\x7f-\xa0]"""
PATTERN: Final = f"^{_CHARACTER}+$"
# The same for a report, where spaces around a code are trimmed, with the length, which does not count them.
REPORTED_PATTERN: Final = rf"^[ \xa0]*{_CHARACTER}{{1,{MAX_CODE}}}[ \xa0]*$"
ALLOWED: Final = f"1 to {MAX_CODE} letters, marks and numbers of any script, or ._+*%!#&$/@-"

_PUNCTUATION: Final = frozenset("._+*%!#&$/@-")
_ASCII: Final = re.compile(r"[A-Za-z0-9._+*%!#&$/@-]+")


def normal_code(text: str) -> str | None:
    """The code in NFC, or None if the text is not a code."""
    code = normalize("NFC", text)
    if len(code) > MAX_CODE or without_ignorable(code) != code:
        return None
    if _ASCII.fullmatch(code):
        return code
    return code if code and all(category(char)[0] in "LMN" or char in _PUNCTUATION for char in code) else None


def folded_code(code: str) -> str:
    """The form by which codes are compared, which ignores case (Q5)."""
    return normalize("NFC", code.casefold())
