"""The headers that keep browsers from misusing an answer: one list, for the front door and the server's own refusals.

An endpoint that sends one of them itself keeps its own. `x-frame-options` is not among them: `frame-ancestors` says it
to every browser of the last ten years. `strict-transport-security` is there only when the operator says that callers
come by TLS, for a browser that once saw it comes by nothing else.
"""

from collections.abc import Iterable
from typing import Final

Headers = tuple[tuple[bytes, bytes], ...]

CONTENT_SECURITY_POLICY: Final = b"content-security-policy"
RESOURCE_POLICY: Final = b"cross-origin-resource-policy"

# An answer is data: it loads nothing, runs nothing, and stands in no frame. A page brings a policy of its own.
_ALWAYS: Final[Headers] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (CONTENT_SECURITY_POLICY, b"default-src 'none'; frame-ancestors 'none'"),
)


def security_headers(hsts_seconds: int = 0, *, any_origin: bool = False) -> Headers:
    """The headers of an answer.

    Args:
        hsts_seconds: for how long browsers shall come by TLS only; 0 says nothing of it.
        any_origin: whether pages of any origin may load the answer, as that of /suggest (C3).
    """
    resource = (RESOURCE_POLICY, b"cross-origin" if any_origin else b"same-origin")
    transport = ((b"strict-transport-security", b"max-age=%d" % hsts_seconds),) if hsts_seconds else ()
    return (*_ALWAYS, resource, *transport)


def completed(own: Iterable[tuple[bytes, bytes]], defaults: Headers) -> list[tuple[bytes, bytes]]:
    """An answer's own headers, and those of the defaults that it does not send itself."""
    headers = list(own)
    names = {name.lower() for name, _ in headers}
    headers += [default for default in defaults if default[0] not in names]
    return headers
