"""Asking a cluster that may be in trouble: while it elects a manager or moves shards, the same is asked again.

Everything that is asked this way is safe to be done twice. No error says a word of a document (V1).
"""

from collections.abc import Callable, Mapping
from ssl import SSLCertVerificationError
from typing import Final, TypeVar

from opensearchpy.exceptions import (
    AuthenticationException,
    AuthorizationException,
    ConflictError,
    NotFoundError,
    OpenSearchException,
    SSLError,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.opensearch.index_watch import trouble_of

# A node that is killed is missed at once, one that hangs or is cut off only after half a minute.
PATIENCE_S: Final = 60.0

_LONGEST_PAUSE_S: Final = 5.0
_NO_INDEX: Final = "index_not_found_exception"
_FINAL: Final = (NotFoundError, ConflictError)
_MEANT: Final[Mapping[type[OpenSearchException], str]] = {
    AuthenticationException: "a wrong user or password",
    AuthorizationException: "a user that may not do this, or a block of the cluster",
}

Answer = TypeVar("Answer")


class IncompleteError(OpenSearchException):
    """A part of an answer is missing; raised by what is asked, to be asked again."""


def retry_transient(ask: Callable[[], Answer], failure: str, patience: float = PATIENCE_S) -> Answer:
    """Ask, and again while that may help.

    Args:
        ask: makes one request; raises the client's errors, or IncompleteError.
        failure: what the error says then.
        patience: for how many seconds.

    Raises:
        IndexLostError: an index that it is about is not there (any more).
        SinkError: in any other case. Both say `failure` and the kind of the cause, never its text; the cause is the
            client's error.
    """
    retrying = Retrying(
        retry=retry_if_exception(_passes),
        stop=stop_after_delay(patience),
        wait=wait_random_exponential(multiplier=0.2, max=_LONGEST_PAUSE_S),
        reraise=True,
    )
    try:
        return retrying(ask)
    except OpenSearchException as error:
        kind = IndexLostError if isinstance(error, NotFoundError) and error.error == _NO_INDEX else SinkError
        raise kind(f"{failure}: {_cause_of(error)}") from error


def if_there(ask: Callable[[], Answer], failure: str) -> Answer | None:
    """As `patiently`; None when what is asked for is not there."""
    try:
        return retry_transient(ask, failure)
    except SinkError as error:
        if isinstance(error.__cause__, NotFoundError):
            return None
        raise


def _cause_of(error: OpenSearchException) -> str:
    if _is_distrust(error):
        return "SSLError, a certificate that is not trusted or not for this host"
    meant = next((text for kind, text in _MEANT.items() if isinstance(error, kind)), None)
    return type(error).__name__ if meant is None else f"{type(error).__name__}, {meant}"


def _is_distrust(error: BaseException) -> bool:
    """Whether it is a certificate; other errors of TLS come of nodes that go, and pass."""
    causes = error.info.args if isinstance(error, SSLError) and isinstance(error.info, Exception) else ()
    return any(isinstance(cause, SSLCertVerificationError) for cause in causes)


def _passes(error: BaseException) -> bool:
    if not isinstance(error, OpenSearchException) or isinstance(error, _FINAL) or _is_distrust(error):
        return False
    return isinstance(error, IncompleteError) or trouble_of(error).passes
