"""What the SDK sends over HTTP, retold where it is an error in the SDK's words (E5)."""

from typing import Final

from starlette.types import Message, Scope, Send

from service.http.responses import Answer, Headers
from service.mcp_server.handling import OWN, QUOTA
from service.mcp_server.messages import retold

_BAD_REQUEST: Final = 400


class ErrorRewriter:
    """Sends what the SDK sends, but the body of an error that is its own in our words."""

    def __init__(self, scope: Scope, send: Send) -> None:
        """Wrap a send.

        Args:
            scope: of the request; says whether an error is ours already, and holds what is added to the SDK's headers.
            send: to the caller.
        """
        self._scope = scope
        self._send = send
        self._status = 0
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        """Send a part of the answer."""
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
            told = body if self._scope.get(OWN) else retold(body)
            await Answer(self._status, told, headers=self._quota).send(self._send)

    @property
    def _quota(self) -> Headers:
        """What the answer says of the quota: the call may have taken more of it since it was admitted."""
        headers: Headers = self._scope.get(QUOTA, ())
        return headers
