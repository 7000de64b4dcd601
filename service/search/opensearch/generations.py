"""What the cluster is asked about generations, and what it answers: stamps and other documents, by their ids.

Getting a document by its id sees what was written last without any refresh. A part of the answer that failed is a
failure; only what is plainly not there is taken for absent (E3).
"""

from collections.abc import Mapping
from typing import Any, Final

from index_mappings.generations import STAMP, STAMP_ID, Stamp, alias_name, previous_alias
from index_mappings.operations import OPERATIONS_ID, Operations
from index_mappings.typeahead.announcement import ANNOUNCED_ID, Announcement
from service.search.failures import BackendUnavailable, NothingPublished
from service.search.protocol import Generations

_NO_INDEX: Final = "index_not_found_exception"


def live_body(prefix: str) -> dict[str, Any]:
    """The body of a request for the live stamp and what is announced."""
    live = alias_name(prefix, STAMP)
    return {"docs": [{"_index": live, "_id": STAMP_ID}, {"_index": live, "_id": ANNOUNCED_ID}]}


def live_of(answer: Mapping[str, Any], prefix: str) -> tuple[Stamp, Announcement | None]:
    """What the answer to `live_body` says.

    Raises:
        NothingPublished: there is no live generation.
        BackendUnavailable: its stamp could not be read.
    """
    live, announced = answer["docs"]
    stamp = _stamp(live)
    if stamp is None:
        raise _nothing_published(prefix)
    return stamp, Announcement.from_wire(announced.get("_source", {}))


def generations_body(prefix: str) -> dict[str, Any]:
    """The body of a request for several documents."""
    live = alias_name(prefix, STAMP)
    return {
        "docs": [
            {"_index": live, "_id": STAMP_ID},
            {"_index": previous_alias(prefix), "_id": STAMP_ID},
            {"_index": live, "_id": OPERATIONS_ID},
        ]
    }


def generations_of(answer: Mapping[str, Any], prefix: str) -> Generations:
    """What the answer to `generations_body` says.

    Raises:
        NothingPublished: there is no live generation.
        BackendUnavailable: a stamp could not be read.
    """
    live, previous, operations = answer["docs"]
    stamp = _stamp(live)
    if stamp is None:
        raise _nothing_published(prefix)
    return Generations(live=stamp, previous=_stamp(previous), operations=_operations(operations))


def _nothing_published(prefix: str) -> NothingPublished:
    return NothingPublished(
        f"nothing is published under the alias {alias_name(prefix, STAMP)} of the cluster of "
        "SHOP_DIRECTORY_OPENSEARCH_URLS; SHOP_DIRECTORY_INDEX_PREFIX is what the alias begins with"
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
