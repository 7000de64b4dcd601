"""Whether an OpenSearch index that is being written is still there and can be: what a build has to know to start anew.

A failure is told by its status and type only: the client's own error texts hold documents (V1).
"""

import time
from threading import Lock
from typing import Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import (
    ConnectionError as NoConnection,
)
from opensearchpy.exceptions import (
    ConnectionTimeout,
    NotFoundError,
    OpenSearchException,
    TransportError,
)

from indexer.sinks.failures import IndexLostError
from indexer.sinks.opensearch.bulk_answers import UNREADABLE, Trouble

_REQUEST_TIMEOUT: Final = 10
_ENOUGH_LOOKS: Final = 3


class IndexWatch:
    """Watches one index; several threads may ask."""

    def __init__(self, client: OpenSearch, index: str, lost_after: float) -> None:
        """Note what to watch.

        Args:
            client: asks the cluster.
            index: its concrete name.
            lost_after: for how many seconds it has to be red, at every look, to count as lost.
        """
        self._client = client
        self._index = index
        self._lost_after = lost_after
        self._lock = Lock()
        self._identity: str | None = None
        self._red_since = 0.0
        self._red_looks = 0

    def verify(self) -> Trouble | None:
        """Make sure that it is the same index as at the first call: a cluster may make one of the same name by itself.

        Returns:
            Why that can't be told just now; None when all is well.

        Raises:
            IndexLostError: it is not.
        """
        try:
            found = self._client.indices.get_settings(
                index=self._index, name="index.uuid", params={"request_timeout": _REQUEST_TIMEOUT}
            )
            identity = found[self._index]["settings"]["index"]["uuid"]
        except NotFoundError:
            identity = None
        except OpenSearchException as error:
            return trouble_of(error)
        except (LookupError, TypeError):
            return UNREADABLE
        with self._lock:
            self._identity = self._identity or identity
            if identity is None or identity != self._identity:
                raise IndexLostError(f"the index {self._index} is gone")
        return None

    def note_success(self) -> None:
        """Forget earlier looks: something could be written."""
        with self._lock:
            self._red_looks = 0

    def look(self) -> None:
        """See whether the index is red, after something failed that this might explain.

        Raises:
            IndexLostError: it was at every look for so long that it can't be a shard that is just being moved.
        """
        red = self._is_red()
        with self._lock:
            if not red:
                self._red_looks = 0
                return
            if not self._red_looks:
                self._red_since = time.monotonic()
            self._red_looks += 1
            since = time.monotonic() - self._red_since
            if self._red_looks >= _ENOUGH_LOOKS and since >= self._lost_after:
                raise IndexLostError(f"the index {self._index} has had a shard without any copy for {since:.0f} s")

    def _is_red(self) -> bool:
        try:
            params = {"timeout": "1s", "request_timeout": _REQUEST_TIMEOUT}
            return bool(self._client.cluster.health(index=self._index, params=params)["status"] == "red")
        except (OpenSearchException, LookupError, TypeError):
            return False  # nobody knows: the cluster as a whole is away, and patience decides


def trouble_of(error: OpenSearchException) -> Trouble:
    """What is told of a failed request."""
    if isinstance(error, ConnectionTimeout):
        return Trouble(None, "no answer in time")
    if isinstance(error, NoConnection):
        return Trouble(None, "no connection")
    if not isinstance(error, TransportError):
        return UNREADABLE
    info = error.info
    cause = info.get("error") if isinstance(info, dict) else None
    kind = cause.get("type") if isinstance(cause, dict) else None
    return Trouble(int(error.status_code), kind if isinstance(kind, str) else "of unknown kind")
