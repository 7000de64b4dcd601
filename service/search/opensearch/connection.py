"""A faster connection class for opensearch-py, whose own takes longer than the rest of a search request.

The pool of nodes and retries on other nodes stay with opensearch-py. If the node closed an idle connection, the request
is sent again over a new one, which is safe as requests only read (E3).
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

from service.search.opensearch.http_connection import HttpConnection, HttpConnectionError, Response

# A firewall may silently drop a connection that is idle for longer.
_MAX_IDLE_SECONDS: Final = 15.0
_SUCCESS: Final = range(200, 300)


class NodeConnection(AsyncConnection):
    """A pool of keep-alive connections to one node; the most recently used one is reused first."""

    def __init__(
        self,
        *,
        host: str,
        port: int | None = None,
        use_ssl: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        pool_maxsize: int,
        **options: Any,  # noqa: ANN401 - as in the base class
    ) -> None:
        """Connect lazily.

        Args:
            host: name or address of the node.
            port: of the node.
            use_ssl: whether to connect with TLS.
            ssl_context: the trusted certificates.
            pool_maxsize: the maximum number of concurrent requests; further ones wait.
            options: of the base class: headers, timeout, url_prefix ...
        """
        super().__init__(host=host, port=port, use_ssl=use_ssl, **options)
        self._tls = ssl_context if self.use_ssl else None
        self._slots = asyncio.Semaphore(pool_maxsize)
        self._idle: deque[HttpConnection] = deque()
        self._open: set[HttpConnection] = set()
        headers = {"host": self.host.partition("://")[2], **self.headers}
        self._header_lines = _lines(headers)

    async def perform_request(  # noqa: PLR0917 - as in the base class
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as in the base class
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request to the node, and return status, headers (only the content type) and body.

        Raises:
            ConnectionTimeout: there was no complete response in time.
            SSLError: the node's certificate is not trusted.
            NoConnection: the connection failed.
            TransportError: the status is an error; a subclass for some statuses.
        """
        target = f"{self.url_prefix}{url}?{urlencode(params)}" if params else f"{self.url_prefix}{url}"
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout if timeout is None else timeout):
                response = await self._send(self._request(method, target, headers, body or b""))
        except TimeoutError as error:
            self._log_failure(method, target, started, error)
            raise ConnectionTimeout("TIMEOUT", "the node did not respond in time", error) from error
        except ssl.SSLCertVerificationError as error:
            self._log_failure(method, target, started, error)
            raise SSLError("N/A", "the node's certificate is not trusted", error) from error
        except OSError as error:
            self._log_failure(method, target, started, error)
            raise NoConnection("N/A", str(error), error) from error
        if response.warnings:
            self._raise_warnings(response.warnings)
        if response.status not in _SUCCESS and response.status not in ignore:
            self._log_failure(method, target, started, status=response.status)
            self._raise_error(response.status, response.body.decode("utf-8", "replace"), response.content_type)
        received = {} if response.content_type is None else {"content-type": response.content_type}
        return response.status, received, response.body

    async def close(self) -> None:
        """Close all connections; running requests fail."""
        for connection in tuple(self._open):
            connection.abort()
        self._open.clear()
        self._idle.clear()

    def _request(self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
        lines = self._header_lines + _lines(headers or {})
        return f"{method} {target} HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body

    async def _send(self, request: bytes) -> Response:
        async with self._slots:
            if (connection := self._pop_idle()) is not None:
                try:
                    return await self._send_over(connection, request)
                except HttpConnectionError as error:
                    if not error.retryable:
                        raise
            return await self._send_over(await self._connect(), request)

    async def _send_over(self, connection: HttpConnection, request: bytes) -> Response:
        try:
            return await connection.send(request)
        finally:
            if connection.reusable:
                connection.idle_since = asyncio.get_running_loop().time()
                self._idle.append(connection)
            else:
                self._open.discard(connection)

    def _pop_idle(self) -> HttpConnection | None:
        """The most recently used idle connection, if there is one; those idle for too long are closed."""
        oldest = asyncio.get_running_loop().time() - _MAX_IDLE_SECONDS
        while self._idle and (self._idle[0].idle_since < oldest or not self._idle[0].reusable):
            connection = self._idle.popleft()
            connection.abort()
            self._open.discard(connection)
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
            self._open.discard(connection)
        return None

    async def _connect(self) -> HttpConnection:
        loop = asyncio.get_running_loop()
        name = self.hostname if self._tls is not None else None
        _, connection = await loop.create_connection(
            HttpConnection, self.hostname, self.port, ssl=self._tls, server_hostname=name
        )
        self._open.add(connection)
        return connection

    def _log_failure(
        self, method: str, target: str, started: float, error: OSError | None = None, status: int | None = None
    ) -> None:
        # Without the body, which contains the user's query.
        seconds = time.monotonic() - started
        self.log_request_fail(method, f"{self.host}{target}", target, None, seconds, status, exception=error)


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())
