"""Searches as what is sent: the address of one, and the lines of several, each with its bounds.

All of an answer or nothing (E3); and the cluster gives up by itself what nobody waits for any more, also where a
connection's end does not tell it.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import orjson


def search_target(index: str, milliseconds: int) -> str:
    """The path and query of one search.

    Args:
        index: concrete; empty where the body names a point in time instead.
        milliseconds: after which the cluster stops working on it.
    """
    place = f"/{quote(index)}" if index else ""
    return f"{place}/_search?allow_partial_search_results=false&cancel_after_time_interval={milliseconds}ms"


def searches_body(searches: Iterable[tuple[str, dict[str, Any]]], milliseconds: int) -> bytes:
    """The body of several searches, an index and a query body each; bounded as a single one is."""
    lines: list[bytes] = []
    for index, body in searches:
        bounds = {
            "index": index,
            "allow_partial_search_results": False,
            "cancel_after_time_interval": f"{milliseconds}ms",
        }
        lines += [orjson.dumps(bounds), orjson.dumps(body)]
    return b"\n".join([*lines, b""])
