"""Writing down which generation comes next, where services look at what is live (`Announcement`)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opensearchpy import OpenSearch

from index_mappings.generations import STAMP, index_name
from index_mappings.typeahead.announcement import ANNOUNCED_ID, Announcement
from indexer.sinks.opensearch.retries import if_there, retry_transient

# A service looks once a second, and begins within another second.
LOOK_S: Final = 2.0
# However many services there are: those that need longer fetch the rest when it is live.
MOST_WAIT_S: Final = 120.0
_RATE: Final = 50 * 1024.0**2


@dataclass(frozen=True, slots=True)
class TypeaheadOptions:
    """How typeaheads are written, and readers given time for them.

    Attributes:
        folder: the local folder for the files of all generations; None is one for the life of the sink.
        readers: machines with services, each of which fetches the files once; 0 waits for none.
        rate: bytes of files a second that the cluster may hand out to all of them together.
    """

    folder: Path | None = None
    readers: int = 0
    rate: float = _RATE

    def seconds(self, size: int) -> float:
        """For how long readers are given time to fetch files of so many bytes."""
        return min(MOST_WAIT_S, LOOK_S + size * self.readers / self.rate) if self.readers else 0.0


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
    """Remove what was announced when this generation was live before.

    Raises:
        SinkError: it could not be removed.
    """
    if_there(
        lambda: client.delete(index=index_name(prefix, STAMP, generation), id=ANNOUNCED_ID),
        f"generation {generation} is live, but an old announcement could not be removed",
    )
