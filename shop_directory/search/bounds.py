"""The bounds of requests (M8, M9), and how their values are read."""

import re
from typing import Final

from index_mappings.hosts import INVISIBLE, has_dot, reduce_host

MAX_QUERY: Final = 200
MAX_QUERY_WORDS: Final = 12
MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 50
MAX_Q: Final = 256
MAX_SUGGESTIONS: Final = 20
DEFAULT_SUGGESTIONS: Final = 8
# Unicode's White_Space: the characters of `str.isspace` without four separators that are control characters.
WHITE_SPACE: Final = "".join(
    char for char in map(chr, range(0x3001)) if char.isspace() and not "\x1c" <= char <= "\x1f"
)

_LINE_WHITE_SPACE: Final = str.maketrans("\t\r\n", "   ")
_SHOP_ID: Final = re.compile("[A-Za-z0-9_-]{1,64}")


def spaced(value: str) -> str:
    """Text in which tabs and line breaks are spaces (E6)."""
    return value.translate(_LINE_WHITE_SPACE)


def reduce_reference(text: str) -> str | None:
    """Reduce a pasted reference to a shop (R1): text without a dot is an id and stays unchanged; other text is a host.

    None is for a text that can be neither an id nor a domain, and so names no shop.
    """
    trimmed = text.strip(WHITE_SPACE + INVISIBLE)
    if not has_dot(trimmed):
        return trimmed if _SHOP_ID.fullmatch(trimmed) else None
    host = reduce_host(trimmed)
    # A host of one label is not a domain, and must not be read as an id: "shop_1." names no shop.
    return host if host is not None and "." in host else None
