"""The connections to one node, as opensearch-py wants them: its own costs more than all else of a search here.

Pool of nodes, retries and headers stay the client's. A connection that the node closed while it lay idle costs no
answer: what is asked is read only, so it goes out once more over a new one (E3).
"""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from opensearchpy import AsyncConnection
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, SSLError

from service.search.opensearch.wire import Reply, Wire, WireBrokenError

# What lay idle for longer may have been forgotten by something on the way that says nothing of it.
_KEPT_IDLE_S: Final = 15.0
_FINE: Final = range(200, 300)


class KeptConnections(AsyncConnection):
    """A node's kept-alive connections: the one used last is used next. GET, POST and DELETE only."""

    def __init__(
        self,
        *,
        host: str,
        port: int | None = None,
        use_ssl: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        pool_maxsize: int,
        **stated: Any,  # noqa: ANN401 - the client's own
    ) -> None:
        """Connect lazily.

        Args:
            host: name or address of the node.
            port: its port.
            use_ssl: whether it is asked through TLS.
            ssl_context: what certificates are trusted.
            pool_maxsize: how many requests may be under way at once; more wait for their turn.
            stated: what the client's base class takes: headers, timeout, url_prefix ...
        """
        super().__init__(host=host, port=port, use_ssl=use_ssl, **stated)
        self._tls = ssl_context if self.use_ssl else None
        self._turn = asyncio.Semaphore(pool_maxsize)
        self._idle: deque[Wire] = deque()
        self._open: set[Wire] = set()
        own = {"host": self.host.partition("://")[2], **self.headers}
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in own.items())

    async def perform_request(  # noqa: PLR0917 - as the client says
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as the client says
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask the node: status, headers (the content type alone) and body.

        Raises:
            ConnectionTimeout: there was no answer in time.
            SSLError: the node's certificate is not trusted.
            NoConnection: it could not be asked.
            TransportError: its answer is a failure; of a kind of its own where the client has one.
        """
        target = f"{self.url_prefix}{url}?{urlencode(params)}" if params else f"{self.url_prefix}{url}"
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout if timeout is None else timeout):
                reply = await self._reply(self._request(method, target, headers, body or b""))
        except TimeoutError as error:
            self._tell(method, target, began, error)
            raise ConnectionTimeout("TIMEOUT", "the node did not answer in time", error) from error
        except ssl.SSLCertVerificationError as error:
            self._tell(method, target, began, error)
            raise SSLError("N/A", "the node's certificate is not trusted", error) from error
        except OSError as error:
            self._tell(method, target, began, error)
            raise NoConnection("N/A", str(error), error) from error
        if reply.warnings:
            self._raise_warnings(reply.warnings)
        if reply.status not in _FINE and reply.status not in ignore:
            self._refuse(method, target, began, reply)
        return reply.status, {} if reply.content_type is None else {"content-type": reply.content_type}, reply.body

    async def close(self) -> None:
        """Close all of them; what is under way fails."""
        for wire in tuple(self._open):
            wire.abort()
        self._open.clear()
        self._idle.clear()

    def _request(self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
        own = self._headers
        if headers:
            own += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {target} HTTP/1.1\r\n{own}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body

    async def _reply(self, request: bytes) -> Reply:
        async with self._turn:
            if (wire := self._free()) is not None:
                try:
                    return await self._asked(wire, request)
                except WireBrokenError as broken:
                    if not broken.silent:
                        raise
            return await self._asked(await self._connected(), request)

    async def _asked(self, wire: Wire, request: bytes) -> Reply:
        try:
            return await wire.ask(request)
        finally:
            if wire.reusable:
                wire.idle_since = asyncio.get_running_loop().time()
                self._idle.append(wire)
            else:
                self._open.discard(wire)

    def _free(self) -> Wire | None:
        """The connection that was used last, if one is left; those that lay idle for too long are closed."""
        forgotten = asyncio.get_running_loop().time() - _KEPT_IDLE_S
        while self._idle and (self._idle[0].idle_since < forgotten or not self._idle[0].reusable):
            wire = self._idle.popleft()
            wire.abort()
            self._open.discard(wire)
        while self._idle:
            wire = self._idle.pop()
            if wire.reusable:
                return wire
            self._open.discard(wire)
        return None

    async def _connected(self) -> Wire:
        loop = asyncio.get_running_loop()
        name = self.hostname if self._tls is not None else None
        _, wire = await loop.create_connection(Wire, self.hostname, self.port, ssl=self._tls, server_hostname=name)
        self._open.add(wire)
        return wire

    def _tell(self, method: str, target: str, began: float, error: OSError) -> None:
        # Never the body: it has what somebody looked for.
        seconds = time.monotonic() - began
        self.log_request_fail(method, f"{self.host}{target}", target, None, seconds, exception=error)

    def _refuse(self, method: str, target: str, began: float, reply: Reply) -> None:
        seconds = time.monotonic() - began
        self.log_request_fail(method, f"{self.host}{target}", target, None, seconds, status_code=reply.status)
        self._raise_error(reply.status, reply.body.decode("utf-8", "replace"), reply.content_type)
