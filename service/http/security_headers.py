"""The security headers of all responses, the server's own refusals included.

A header that an endpoint sets itself takes precedence. `x-frame-options` is missing because all browsers of the last
ten years support `frame-ancestors`. `strict-transport-security` is sent only where the operator states that clients use
TLS, because a browser that has seen it never uses plain HTTP again.
"""

from collections.abc import Iterable
from typing import Final

from service.http.responses import Headers

CONTENT_SECURITY_POLICY: Final = b"content-security-policy"
RESOURCE_POLICY: Final = b"cross-origin-resource-policy"

# An answer is data: it loads nothing, runs nothing and is shown in no frame. A page sets a policy of its own.
_ALWAYS: Final[Headers] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (CONTENT_SECURITY_POLICY, b"default-src 'none'; frame-ancestors 'none'"),
)


def security_headers(hsts_seconds: int = 0, *, any_origin: bool = False) -> Headers:
    """The security headers of an answer.

    Args:
        hsts_seconds: max-age of Strict-Transport-Security; 0 omits the header.
        any_origin: whether pages of any origin may load the answer, as they may load /suggest (C3).
    """
    resource = (RESOURCE_POLICY, b"cross-origin" if any_origin else b"same-origin")
    transport = ((b"strict-transport-security", b"max-age=%d" % hsts_seconds),) if hsts_seconds else ()
    return (*_ALWAYS, resource, *transport)


def with_defaults(own: Iterable[tuple[bytes, bytes]], defaults: Headers) -> list[tuple[bytes, bytes]]:
    """An answer's own headers, and the defaults whose names are not among them."""
    headers = list(own)
    names = {name.lower() for name, _ in headers}
    headers += [default for default in defaults if default[0] not in names]
    return headers
