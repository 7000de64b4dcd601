"""Lines of changes: what a source says of a record after its catalogue was read."""

from collections.abc import Mapping
from typing import Any


def upsert(kind: str, record: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A line that replaces or adds a record with another version, of which a greater one is newer."""
    return {"op": "upsert", "type": kind, "record": {**record, "version": version}}


def delete(kind: str, key: str, version: int) -> dict[str, Any]:
    """A line that deletes the record of a type and a key; a greater version is newer."""
    return {"op": "delete", "type": kind, "key": key, "version": version}
