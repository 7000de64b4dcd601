"""Replaces the SDK's error answers over HTTP by ours (E5)."""

from typing import Final

from starlette.types import Message, Scope, Send

from service.http.messages import Answer, Headers
from service.mcp_server.handling import OWN_ERROR_KEY, QUOTA_HEADERS_KEY
from service.mcp_server.messages import rewritten_error

_BAD_REQUEST: Final = 400


class ErrorRewriter:
    """An ASGI send that passes the SDK's answers on, and replaces the body of its errors."""

    def __init__(self, scope: Scope, send: Send) -> None:
        """Wrap a send; keys of the scope say whether an error is ours, and which quota headers are added."""
        self._scope = scope
        self._send = send
        self._status = 0
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        """Send a part of the answer; an error is sent when it is complete."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            if self._status < _BAD_REQUEST:
                await self._send({**message, "headers": [*message["headers"], *self._quota]})
            return
        if self._status < _BAD_REQUEST:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if not message.get("more_body", False):
            body = bytes(self._body)
            sent = body if self._scope.get(OWN_ERROR_KEY) else rewritten_error(body)
            await Answer(self._status, sent, headers=self._quota).send(self._send)

    @property
    def _quota(self) -> Headers:
        # Read late: the call may have been charged more since it was admitted.
        headers: Headers = self._scope.get(QUOTA_HEADERS_KEY, ())
        return headers
