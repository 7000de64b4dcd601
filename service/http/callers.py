"""Whose request over HTTP it is: the token header, and the address and country that configured proxies tell (Q3)."""

from starlette.types import Scope

from service.http.responses import request_id_of
from service.runtime.addresses import Proxies, origin_of
from service.runtime.caller import Caller, Channel
from service.runtime.wire import header

TOKEN_HEADER = b"x-api-token"


def http_caller(scope: Scope, channel: Channel, trusted: Proxies) -> Caller:
    """The caller of a request.

    Args:
        scope: of ASGI.
        channel: the door.
        trusted: the configured proxies.
    """
    peer = scope.get("client")
    origin = origin_of(peer[0] if peer else None, scope["headers"], trusted)
    token = header(scope["headers"], TOKEN_HEADER)
    return Caller(channel, request_id_of(scope), token or None, origin.address, origin.country)
