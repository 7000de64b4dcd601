"""Problem documents as the bytes of a whole answer, for connections whose request no application sees (E1)."""

from service.errors import ServiceError
from service.http.responses import PROBLEM_JSON
from service.http.security_headers import security_headers
from service.runtime.wire import encode


def refusal(error: ServiceError, reason: str, request_id: str, hsts_seconds: int) -> bytes:
    """The last answer of a connection.

    Args:
        error: why it is refused.
        reason: the words of the status line.
        request_id: of the request that it stands for.
        hsts_seconds: as the application's answers say it; 0 says nothing of it.
    """
    body = encode(error.problem())
    retry = () if error.retry_after is None else (b"retry-after: %d" % error.retry_after,)
    head = (
        f"HTTP/1.1 {error.status} {reason}".encode(),
        b"content-type: " + PROBLEM_JSON,
        b"content-length: %d" % len(body),
        b"x-request-id: " + request_id.encode(),
        *retry,
        *(b"%s: %s" % header for header in security_headers(hsts_seconds)),
        b"cache-control: no-store",
        b"connection: close",
    )
    return b"\r\n".join(head) + b"\r\n\r\n" + body
