"""Announces the next generation next to the live stamp, which services read (`Announcement`)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opensearchpy import OpenSearch

from index_mappings.generations import STAMP, index_name
from index_mappings.typeahead.announcement import ANNOUNCED_ID, Announcement
from indexer.sinks.opensearch.retries import none_if_missing, retry_transient

# A service reads the stamp once a second, and begins within another second.
LOOK_S: Final = 2.0
# Whatever the number of services; those that need longer fetch the remainder when the generation is live.
MAX_WAIT_S: Final = 120.0
_RATE: Final = 50 * 1024.0**2


@dataclass(frozen=True, slots=True)
class TypeaheadOptions:
    """How typeaheads are written, and how long publishing waits for readers to fetch them.

    Attributes:
        folder: the local folder for the files of all generations; None for a temporary one.
        readers: the number of machines with services, each of which fetches the files once; 0 waits for none.
        rate: bytes a second that the cluster sends to all of them together.
    """

    folder: Path | None = None
    readers: int = 0
    rate: float = _RATE

    def seconds(self, size: int) -> float:
        """How many seconds readers get to fetch files of so many bytes."""
        return min(MAX_WAIT_S, LOOK_S + size * self.readers / self.rate) if self.readers else 0.0


def write_announcement(client: OpenSearch, prefix: str, live: str, announcement: Announcement) -> None:
    """Write the document next to the live generation's stamp, without a refresh: it is read by its id.

    Raises:
        SinkError: it could not be written.
    """
    index, body = index_name(prefix, STAMP, live), announcement.to_wire()
    retry_transient(
        lambda: client.index(index=index, id=ANNOUNCED_ID, body=body), "the next generation could not be announced"
    )


def remove_announcement(client: OpenSearch, prefix: str, generation: str) -> None:
    """Remove an announcement of an earlier time at which this generation was live.

    Raises:
        SinkError: it could not be removed.
    """
    none_if_missing(
        lambda: client.delete(index=index_name(prefix, STAMP, generation), id=ANNOUNCED_ID),
        f"generation {generation} is live, but an old announcement could not be removed",
    )
