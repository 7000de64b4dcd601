"""Requests for stamps and other documents of generations by their ids, and parsers of the responses.

Reading a document by its id returns the newest version without a refresh. A failed part of the response is an error;
only a document that the cluster reports as missing counts as absent (E3).
"""

from collections.abc import Mapping
from typing import Any, Final

from index_mappings.generations import OPERATIONS_ID, STAMP, STAMP_ID, Operations, Stamp, alias_name, previous_alias
from index_mappings.typeahead.manifest import ANNOUNCED_ID, Announcement
from service.search.failures import BackendUnavailable, NothingPublished
from service.search.protocol import Generations

_NO_INDEX: Final = "index_not_found_exception"


def live_body(prefix: str) -> dict[str, Any]:
    """The body of a request for the live stamp and the announcement."""
    live = alias_name(prefix, STAMP)
    return {"docs": [{"_index": live, "_id": STAMP_ID}, {"_index": live, "_id": ANNOUNCED_ID}]}


def parse_live(response: Mapping[str, Any], prefix: str) -> tuple[Stamp, Announcement | None]:
    """The live stamp and the announcement in the response to `live_body`.

    Raises:
        NothingPublished: there is no live generation.
        BackendUnavailable: its stamp could not be read.
    """
    live, announced = response["docs"]
    stamp = _stamp(live)
    if stamp is None:
        raise _nothing_published(prefix)
    return stamp, Announcement.from_wire(announced.get("_source", {}))


def generations_body(prefix: str) -> dict[str, Any]:
    """The body of a request for both stamps and the operations document."""
    live = alias_name(prefix, STAMP)
    return {
        "docs": [
            {"_index": live, "_id": STAMP_ID},
            {"_index": previous_alias(prefix), "_id": STAMP_ID},
            {"_index": live, "_id": OPERATIONS_ID},
        ]
    }


def parse_generations(response: Mapping[str, Any], prefix: str) -> Generations:
    """The generations in the response to `generations_body`.

    Raises:
        NothingPublished: there is no live generation.
        BackendUnavailable: a stamp could not be read.
    """
    live, previous, operations = response["docs"]
    stamp = _stamp(live)
    if stamp is None:
        raise _nothing_published(prefix)
    return Generations(live=stamp, previous=_stamp(previous), operations=_operations(operations))


def _nothing_published(prefix: str) -> NothingPublished:
    return NothingPublished(
        f"nothing is published under the alias {alias_name(prefix, STAMP)} of the cluster of "
        "SHOP_DIRECTORY_OPENSEARCH_URLS; SHOP_DIRECTORY_INDEX_PREFIX is the prefix of the alias"
    )


def _stamp(found: Mapping[str, Any]) -> Stamp | None:
    if "error" in found and found["error"]["type"] != _NO_INDEX:
        raise BackendUnavailable("a stamp could not be read")
    if not found.get("found"):
        return None
    try:
        return Stamp.from_wire(found["_source"]["stamp"])
    except (KeyError, TypeError, ValueError) as error:
        raise BackendUnavailable("a stamp's document is damaged") from error


def _operations(found: Mapping[str, Any]) -> Operations | None:
    try:
        return Operations.from_wire(found["_source"]["stamp"]["operations"])
    except (KeyError, TypeError, ValueError):
        return None
