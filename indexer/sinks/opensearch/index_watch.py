"""Detects that an OpenSearch index is lost while it is written, so that a build can start again.

A failure is reported by its status and type only, as the client's messages hold documents (V1).
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
from indexer.sinks.opensearch.bulk_requests import UNREADABLE, RequestFailure

# The seconds of red health after which an index counts as lost: longer than a cluster takes to promote a copy.
LOST_AFTER_S: Final = 10.0

_REQUEST_TIMEOUT: Final = 10
_RED_CHECKS: Final = 3


class IndexWatch:
    """Watches one index, or the health of several; thread-safe."""

    def __init__(self, client: OpenSearch, index: str, lost_after: float = LOST_AFTER_S) -> None:
        """Prepare; nothing is requested.

        Several index names, separated by commas, serve `check_health` only. An index counts as lost after `lost_after`
        seconds of red health at every check.
        """
        self._client = client
        self._index = index
        self._lost_after = lost_after
        self._lock = Lock()
        self._identity: str | None = None
        self._red_since = 0.0
        self._red_checks = 0

    def verify(self) -> RequestFailure | None:
        """Verify that it is the same index as at the first call: a cluster may create one of the same name by itself.

        Returns why that is unknown now; None if it is the same.

        Raises:
            IndexLostError: it is another index, or none.
        """
        try:
            found = self._client.indices.get_settings(
                index=self._index, name="index.uuid", params={"request_timeout": _REQUEST_TIMEOUT}
            )
            identity = found[self._index]["settings"]["index"]["uuid"]
        except NotFoundError:
            identity = None
        except OpenSearchException as error:
            return failure_of(error)
        except (LookupError, TypeError):
            return UNREADABLE
        with self._lock:
            self._identity = self._identity or identity
            if identity is None or identity != self._identity:
                raise IndexLostError(f"the index {self._index} is gone")
        return None

    def note_success(self) -> None:
        """Reset the red health: a write succeeded."""
        with self._lock:
            self._red_checks = 0

    def check_health(self) -> bool:
        """Whether the index is red, after a failure that this would explain; False if that is unknown.

        Raises:
            IndexLostError: it was red at every check, for longer than a shard takes to move.
        """
        red = self._is_red()
        with self._lock:
            if not red:
                self._red_checks = 0
                return False
            if not self._red_checks:
                self._red_since = time.monotonic()
            self._red_checks += 1
            since = time.monotonic() - self._red_since
            if self._red_checks >= _RED_CHECKS and since >= self._lost_after:
                raise IndexLostError(
                    f"the index {self._index} has had a shard without any copy for {since:.0f} s;"
                    " GET /_cluster/allocation/explain says why, such as a disk that is nearly full"
                )
            return True

    def _is_red(self) -> bool:
        try:
            params = {"timeout": "1s", "request_timeout": _REQUEST_TIMEOUT}
            return bool(self._client.cluster.health(index=self._index, params=params)["status"] == "red")
        except (OpenSearchException, LookupError, TypeError):
            return False  # unknown: the whole cluster is unavailable, and the retries are bounded


def failure_of(error: OpenSearchException) -> RequestFailure:
    """The status and type of a failed request."""
    if isinstance(error, ConnectionTimeout):
        return RequestFailure(None, "no answer in time")
    if isinstance(error, NoConnection):
        return RequestFailure(None, "no connection")
    if not isinstance(error, TransportError):
        return UNREADABLE
    info = error.info
    cause = info.get("error") if isinstance(info, dict) else None
    kind = cause.get("type") if isinstance(cause, dict) else None
    return RequestFailure(int(error.status_code), kind if isinstance(kind, str) else "of unknown kind")
