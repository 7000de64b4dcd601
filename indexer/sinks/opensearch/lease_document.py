"""The one document that is OpenSearch's lease: read, and written only by those who saw what they replace (G4).

Its sequence number is the engine's, so that two who have seen the same state can't both change it.
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

LEASE: Final = "lease"
_DOCUMENT_ID: Final = "lease"
_SETTINGS: Final = {"index": {"number_of_shards": 1, "auto_expand_replicas": "0-1", "hidden": True}}
_CREATION_TIMEOUT_S: Final = 15.0
_REFUSALS: Final = (AuthenticationException, AuthorizationException, RequestError)


@dataclass(frozen=True, slots=True)
class LeaseDocument:
    """What the document says.

    Attributes:
        token: the holder's secret mark, another one each time that the lease is taken; None while it is free.
        holder: who that is; None while it is free, or when what is written can't be read.
        beat: rises with each renewal.
        ttl: seconds without a renewal after which the holder has lost it.
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
        """Read a source; one that is not ours is a lease of somebody unknown, which ends like any other."""
        try:
            token, beat, ttl = source["token"], int(source["beat"]), float(source["ttl"])
            return cls(token, None if token is None else LeaseHolder.from_wire(source), beat, ttl)
        except (KeyError, TypeError, ValueError):
            return cls("unreadable", None, 0, 0.0)


@dataclass(frozen=True, slots=True)
class SeenLease:
    """The document with the engine's numbers of its state."""

    document: LeaseDocument
    seq_no: int
    primary_term: int


class LeaseStore:
    """Where the document is. Every method may raise SinkError; LeaseUnansweredError when asking again may help."""

    def __init__(self, client: OpenSearch, prefix: str, timeout: float) -> None:
        """Keep the connection.

        Args:
            client: used from several threads.
            prefix: what all index names begin with.
            timeout: seconds for one request, whatever the client's own limit is.
        """
        self._client = client
        self._index = f"{prefix}-{LEASE}"
        self._limits = {"request_timeout": timeout, "timeout": f"{round(timeout * 1000)}ms"}

    def read(self) -> SeenLease | None:
        """What the document says now; None when there is none."""
        # The answers that are expected here would otherwise be logged as failures by the client.
        params = {
            "request_timeout": self._limits["request_timeout"],
            "ignore": HTTPStatus.NOT_FOUND,
            "preference": "_primary",
        }
        answer = _asked(lambda: self._client.get(index=self._index, id=_DOCUMENT_ID, params=params))
        if not answer.get("found"):
            return None
        document = LeaseDocument.from_wire(answer["_source"])
        return SeenLease(document, int(answer["_seq_no"]), int(answer["_primary_term"]))

    def create(self, document: LeaseDocument) -> bool:
        """Write the first document, making its index where that is missing; False when somebody was faster."""
        body = {"settings": _SETTINGS, "mappings": {"dynamic": False}}
        params = {"request_timeout": _CREATION_TIMEOUT_S, "ignore": HTTPStatus.BAD_REQUEST}
        answer = _asked(lambda: self._client.indices.create(index=self._index, body=body, params=params))
        if "error" in answer and answer["error"].get("type") != "resource_already_exists_exception":
            raise SinkError(f"the index of the lease could not be created: {answer['error'].get('type')}")
        return self._write(document, {"op_type": "create"})

    def replace(self, seen: SeenLease, document: LeaseDocument) -> bool:
        """Write the document in the place of what was seen; False when it is no longer that."""
        return self._write(document, {"if_seq_no": seen.seq_no, "if_primary_term": seen.primary_term})

    def _write(self, document: LeaseDocument, condition: Mapping[str, Any]) -> bool:
        params = {**self._limits, **condition, "ignore": HTTPStatus.CONFLICT}
        body = document.as_wire()
        answer = _asked(lambda: self._client.index(index=self._index, id=_DOCUMENT_ID, body=body, params=params))
        return "error" not in answer


def _asked(request: Callable[[], Any]) -> Mapping[str, Any]:
    # An error's own text holds the document and the node's address.
    try:
        answer: Mapping[str, Any] = request()
    except _REFUSALS as error:
        raise SinkError(f"the engine refuses the lease: {type(error).__name__}") from error
    except OpenSearchException as error:
        raise LeaseUnansweredError(f"the engine does not answer for the lease: {type(error).__name__}") from error
    return answer
