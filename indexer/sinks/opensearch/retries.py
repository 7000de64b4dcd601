"""Retries requests while a cluster elects a manager or moves shards.

The requests must be idempotent. No error holds a part of a document (V1).
"""

from collections.abc import Callable, Mapping
from ssl import SSLCertVerificationError
from typing import Any, Final, TypeVar

from opensearchpy import OpenSearch
from opensearchpy.exceptions import (
    AuthenticationException,
    AuthorizationException,
    ConflictError,
    NotFoundError,
    OpenSearchException,
    SSLError,
    TransportError,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.opensearch.index_watch import failure_of

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

Answer = TypeVar("Answer")


class IncompleteError(OpenSearchException):
    """An answer is incomplete; a request raises it to be retried."""


def retry_transient(request: Callable[[], Answer], failure: str, seconds: float = RETRY_S) -> Answer:
    """Make a request, and retry it for some seconds after transient failures.

    The request raises the client's errors, or IncompleteError. `failure` is the beginning of the error's message.

    Raises:
        IndexLostError: an index of the request does not exist.
        SinkError: any other failure. The message has the type of the cause, never its text; the cause is the client's
            error.
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


def none_if_missing(request: Callable[[], Answer], failure: str) -> Answer | None:
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


def delete_matching(client: OpenSearch, index: str, query: dict[str, Any], failure: str) -> None:
    """Delete the documents that match a query; one that is written meanwhile stays. Errors as of `retry_transient`."""

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
