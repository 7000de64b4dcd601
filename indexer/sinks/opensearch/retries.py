"""Retries requests while a cluster elects a manager or moves shards.

The requests must be idempotent. Failures are reported by status and type only, as messages hold documents (V1).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from ssl import SSLCertVerificationError
from typing import Any, Final, TypeVar

from opensearchpy import OpenSearch
from opensearchpy.exceptions import (
    AuthenticationException,
    AuthorizationException,
    ConflictError,
    ConnectionTimeout,
    NotFoundError,
    OpenSearchException,
    SSLError,
    TransportError,
)
from opensearchpy.exceptions import ConnectionError as NoConnection
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from indexer.sinks.failures import IndexLostError, SinkError

# A cluster detects a killed node immediately, one that hangs or is cut off only after half a minute.
RETRY_S: Final = 60.0

_LONGEST_PAUSE_S: Final = 5.0
_BLOCKED: Final = "cluster_block_exception"
_NO_INDEX: Final = "index_not_found_exception"
_FINAL: Final = (NotFoundError, ConflictError)
_EXPLANATIONS: Final[Mapping[type[OpenSearchException], str]] = {
    AuthenticationException: "a wrong user or password",
    AuthorizationException: "a user that may not do this, or a block of the cluster",
}

# Its status is 400, but it is not the document's fault.
_CLOSED: Final = "index_closed_exception"
_UNFIT: Final = "action_request_validation_exception"
_TRANSIENT: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
_DOCUMENT_AT_FAULT: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

EngineAnswer = TypeVar("EngineAnswer")


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why a request or an operation failed: the HTTP status, None without an answer, and the type of the error."""

    status: int | None
    kind: str

    def __str__(self) -> str:
        return self.kind if self.status is None else f"{self.status} {self.kind}"

    @property
    def is_transient(self) -> bool:
        """Whether the same may succeed later."""
        return self.may_concern_index or self.status in _TRANSIENT or self.is_missing_index

    @property
    def is_missing_index(self) -> bool:
        """Whether a node does not know the index, perhaps not yet, which has to be verified."""
        return self.kind == _NO_INDEX

    @property
    def may_concern_index(self) -> bool:
        """Whether the index may be unavailable: there was no answer, or a server error."""
        return self.status is None or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    @property
    def concerns_request(self) -> bool:
        """Whether the whole request was refused for its content: it is too long, or one operation is invalid."""
        return self.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or self.kind == _UNFIT

    @property
    def concerns_document(self) -> bool:
        """Whether the engine refused the document itself."""
        return self.status in _DOCUMENT_AT_FAULT and self.kind != _CLOSED


UNREADABLE: Final = RequestFailure(None, "an answer that can't be read")


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


class IncompleteError(OpenSearchException):
    """An answer is incomplete; a request raises it to be retried."""


def retry_transient(request: Callable[[], EngineAnswer], failure: str, seconds: float = RETRY_S) -> EngineAnswer:
    """Make a request, and retry it for some seconds after transient failures.

    The request raises the client's errors, or IncompleteError. Raises IndexLostError if its index does not exist, else
    SinkError. The message has `failure` and the type of the cause, the client's error, but not its text.
    """
    retrying = Retrying(
        retry=retry_if_exception(_is_transient),
        stop=stop_after_delay(seconds),
        wait=wait_random_exponential(multiplier=0.2, max=_LONGEST_PAUSE_S),
        reraise=True,
    )
    try:
        return retrying(request)
    except OpenSearchException as error:
        kind = IndexLostError if isinstance(error, NotFoundError) and error.error == _NO_INDEX else SinkError
        raise kind(f"{failure}: {cause_of(error)}") from error


def none_if_missing(request: Callable[[], EngineAnswer], failure: str) -> EngineAnswer | None:
    """As `retry_transient`; None if the requested object does not exist."""
    try:
        return retry_transient(request, failure)
    except SinkError as error:
        if isinstance(error.__cause__, NotFoundError):
            return None
        raise


def whole(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer of a search; raises IncompleteError if a part of it is missing."""
    if answer["timed_out"] or answer["_shards"]["failed"]:
        raise IncompleteError
    return answer


def fence(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The condition that a document is still the one of an answer."""
    return {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}


def delete_matching(client: OpenSearch, index: str, query: dict[str, Any], failure: str) -> None:
    """Delete the documents that match a query, but none written during the request. Errors as of `retry_transient`."""

    def delete() -> None:
        answer = client.delete_by_query(index=index, body={"query": query}, params={"conflicts": "proceed"})
        if answer["failures"] or answer["timed_out"]:
            raise IncompleteError

    retry_transient(delete, failure)


def cause_of(error: OpenSearchException) -> str:
    """The type of an error for a message, with an explanation where its name has none."""
    if isinstance(error, TransportError) and error.error == _BLOCKED:
        return "its indices are read-only, as on a full disk"
    if _is_certificate_error(error):
        return "SSLError, a certificate that is not trusted or not for this host"
    explanation = next((text for kind, text in _EXPLANATIONS.items() if isinstance(error, kind)), None)
    return type(error).__name__ if explanation is None else f"{type(error).__name__}, {explanation}"


def _is_certificate_error(error: BaseException) -> bool:
    """Whether a certificate is invalid; other TLS errors are transient, as of nodes that stop."""
    causes = error.info.args if isinstance(error, SSLError) and isinstance(error.info, Exception) else ()
    return any(isinstance(cause, SSLCertVerificationError) for cause in causes)


def _is_transient(error: BaseException) -> bool:
    if not isinstance(error, OpenSearchException) or isinstance(error, _FINAL) or _is_certificate_error(error):
        return False
    return isinstance(error, IncompleteError) or failure_of(error).is_transient
