"""The document that is OpenSearch's lease, and is replaced only if it is still the one that was read (G4).

The engine's sequence number prevents that two jobs that have read the same document both replace it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import (
    AuthenticationException,
    AuthorizationException,
    OpenSearchException,
    RequestError,
)

from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseUnansweredError
from indexer.sinks.lease_holder import LeaseHolder
from indexer.sinks.opensearch.retries import cause_of

LEASE: Final = "lease"
_DOCUMENT_ID: Final = "lease"
_SETTINGS: Final = {"index": {"number_of_shards": 1, "auto_expand_replicas": "0-1", "hidden": True}}
_CREATION_TIMEOUT_S: Final = 15.0
_REFUSALS: Final = (AuthenticationException, AuthorizationException, RequestError)


@dataclass(frozen=True, slots=True)
class LeaseDocument:
    """The contents of the document.

    Attributes:
        token: a secret of the holder, a new one for each acquisition; None while the lease is free.
        holder: the holder; None while the lease is free, or if the document is damaged.
        beat: a number that grows with each renewal.
        ttl: seconds without a renewal after which the lease is lost.
    """

    token: str | None
    holder: LeaseHolder | None
    beat: int
    ttl: float

    def as_wire(self) -> dict[str, Any]:
        """The document's source."""
        holder = self.holder.as_wire() if self.holder else {}
        return {"token": self.token, "beat": self.beat, "ttl": self.ttl, **holder}

    @classmethod
    def from_wire(cls, source: Mapping[str, Any]) -> "LeaseDocument":
        """Parse a source; an invalid one is the lease of an unknown holder, which expires like any other."""
        try:
            token, beat, ttl = source["token"], int(source["beat"]), float(source["ttl"])
            return cls(token, None if token is None else LeaseHolder.from_wire(source), beat, ttl)
        except (KeyError, TypeError, ValueError):
            return cls("unreadable", None, 0, 0.0)


@dataclass(frozen=True, slots=True)
class SeenLease:
    """The document with the engine's sequence number and primary term."""

    document: LeaseDocument
    seq_no: int
    primary_term: int


class LeaseStore:
    """Reads and writes the document. Every method may raise SinkError; LeaseUnansweredError if a retry may help."""

    def __init__(self, client: OpenSearch, prefix: str, timeout: float) -> None:
        """Prepare; nothing is requested. `timeout` is the seconds for one request, whatever the client's own is."""
        self._client = client
        self._index = f"{prefix}-{LEASE}"
        self._limits = {"request_timeout": timeout, "timeout": f"{round(timeout * 1000)}ms"}

    def read(self) -> SeenLease | None:
        """The current document; None if there is none."""
        # Without `ignore` the client would log the expected answer as a failure.
        params = {
            "request_timeout": self._limits["request_timeout"],
            "ignore": HTTPStatus.NOT_FOUND,
            "preference": "_primary",
        }
        answer = _answer_of(lambda: self._client.get(index=self._index, id=_DOCUMENT_ID, params=params))
        if not answer.get("found"):
            return None
        document = LeaseDocument.from_wire(answer["_source"])
        return SeenLease(document, int(answer["_seq_no"]), int(answer["_primary_term"]))

    def create(self, document: LeaseDocument) -> bool:
        """Write the first document, and create its index if that is missing; False if another job was faster."""
        body = {"settings": _SETTINGS, "mappings": {"dynamic": False}}
        params = {"request_timeout": _CREATION_TIMEOUT_S, "ignore": HTTPStatus.BAD_REQUEST}
        answer = _answer_of(lambda: self._client.indices.create(index=self._index, body=body, params=params))
        if "error" in answer and answer["error"].get("type") != "resource_already_exists_exception":
            raise SinkError(f"the index of the lease could not be created: {answer['error'].get('type')}")
        return self._write(document, {"op_type": "create"})

    def replace(self, seen: SeenLease, document: LeaseDocument) -> bool:
        """Replace the document that was read; False if it was replaced meanwhile."""
        return self._write(document, {"if_seq_no": seen.seq_no, "if_primary_term": seen.primary_term})

    def _write(self, document: LeaseDocument, condition: Mapping[str, Any]) -> bool:
        params = {**self._limits, **condition, "ignore": HTTPStatus.CONFLICT}
        body = document.as_wire()
        answer = _answer_of(lambda: self._client.index(index=self._index, id=_DOCUMENT_ID, body=body, params=params))
        return "error" not in answer


def _answer_of(request: Callable[[], Any]) -> Mapping[str, Any]:
    # The message of an error would hold the document and the node's address.
    try:
        answer: Mapping[str, Any] = request()
    except _REFUSALS as error:
        raise SinkError(f"the engine refuses the lease: {cause_of(error)}") from error
    except OpenSearchException as error:
        raise LeaseUnansweredError(f"the engine does not answer for the lease: {cause_of(error)}") from error
    return answer
