"""The announcement of the next live generation, written before a publish so that services fetch its typeahead early.

In OpenSearch this is a document in the index of the live generation's stamp. No answer depends on it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from index_mappings.generations import is_generation
from index_mappings.typeahead.manifest import is_name

ANNOUNCED_ID: Final = "announced"


@dataclass(frozen=True, slots=True)
class Announcement:
    """A generation that is about to be published, and the name of the manifest of its typeahead."""

    generation: str
    typeahead: str

    def to_wire(self) -> dict[str, Any]:
        """The document; `stamp` is the only field in the strict mapping of that index."""
        return {"stamp": {"announced": asdict(self)}}

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> "Announcement | None":
        """Read the document; None if it is invalid, because it only saves time."""
        try:
            announced = document["stamp"]["announced"]
            found = cls(announced["generation"], announced["typeahead"])
        except (KeyError, TypeError):
            return None
        names = isinstance(found.generation, str) and isinstance(found.typeahead, str)
        return found if names and is_generation(found.generation) and is_name(found.typeahead) else None
