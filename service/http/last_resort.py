"""The answer when even the front door fails: the declared internal error, with nothing of the fault in it (E5)."""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from service.errors import InternalError
from service.http.responses import PROBLEM_JSON
from service.http.security_headers import security_headers
from service.runtime.caller import new_request_id
from service.runtime.wire import encode

_LOG: Final = logging.getLogger(__name__)


def last_resort(hsts_seconds: int) -> Callable[[Request, Exception], Coroutine[Any, Any, Response]]:
    """The framework's handler of what nobody caught.

    Args:
        hsts_seconds: as the front door has it.
    """
    headers = [*security_headers(hsts_seconds), (b"cache-control", b"no-store"), (b"content-type", PROBLEM_JSON)]

    async def handle(_: Request, fault: Exception) -> Response:
        request_id = new_request_id()
        _LOG.error("request=%s the front door failed", request_id, exc_info=fault)
        error = InternalError()
        response = Response(encode(error.problem()), error.status)
        response.raw_headers += [*headers, (b"x-request-id", request_id.encode())]
        return response

    return handle
