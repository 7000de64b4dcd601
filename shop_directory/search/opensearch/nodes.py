"""The client of a cluster: it retries on another node if a connection fails (E3).

It does not retry after a timeout, which would multiply the load on an overloaded cluster.
"""

import ssl
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson
from opensearchpy import AIOHttpConnection, AsyncOpenSearch, AsyncTransport
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, SerializationError, SSLError
from opensearchpy.serializer import JSONSerializer

from shop_directory.settings.locations import OPEN_ACCESS, ClusterAccess

# How long a failed node is excluded, however often it has failed, so that it is used again soon after it recovers.
_EXCLUDED_SECONDS: Final = 5.0
# The client's default of 10 would queue requests that the service has admitted.
_MAX_CONNECTIONS: Final = 100


def connect(urls: Sequence[str], timeout: float, access: ClusterAccess = OPEN_ACCESS) -> AsyncOpenSearch:
    """A client that asks each node once, in `timeout` seconds, and another only if a connection failed."""
    return AsyncOpenSearch(
        list(urls),
        transport_class=NodeTransport,
        connection_class=NodeConnection,
        serializers={JSONSerializer.mimetype: OrjsonSerializer()},
        timeout=timeout,
        pool_maxsize=_MAX_CONNECTIONS,
        max_retries=len(urls) - 1,
        retry_on_timeout=False,
        retry_on_status=(),
        dead_timeout=_EXCLUDED_SECONDS,
        timeout_cutoff=0,  # otherwise up to 32 times as long
        headers=access.headers(),
        ssl_context=access.tls(),
    )


class NodeConnection(AIOHttpConnection):
    """A pool of keep-alive connections to one node, which logs neither queries nor successful requests."""

    def log_request_success(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as in the base class
        """Log nothing."""

    def log_request_fail(  # noqa: PLR0917 - as in the base class
        self,
        method: str,
        full_url: str,
        path: str,
        body: Any,  # noqa: ANN401, ARG002 - as in the base class
        duration: float,
        status_code: int | None = None,
        response: str | None = None,  # noqa: ARG002 - as in the base class
        exception: Exception | None = None,
    ) -> None:
        """Log a failed request without the bodies."""
        super().log_request_fail(method, full_url, path, None, duration, status_code, exception=exception)


class OrjsonSerializer(JSONSerializer):
    """Parses response bodies with orjson."""

    def loads(self, s: Any) -> Any:  # noqa: ANN401 - as in the base class
        """Parse a response body; SerializationError if it is not JSON."""
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError as error:
            raise SerializationError("the node's response is not JSON", error) from error


class NodeTransport(AsyncTransport):
    """Excludes nodes that time out as well as unreachable ones, and closes the connections of all nodes."""

    async def perform_request(  # noqa: PLR0917 - as in the base class
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: Any = None,  # noqa: ANN401 - as in the base class
        timeout: float | None = None,  # noqa: ASYNC109 - as in the base class
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - as in the base class
        """Send a request to a node, and to another one if the connection fails; return the parsed response.

        A body of bytes is sent unchanged. A node that times out is excluded for a while.
        """
        await self._async_call()
        if params is not None or not isinstance(body, bytes):
            method, params, body, ignore, timeout = self._resolve_request_args(method, params, body, ignore, timeout)
        for retries_left in range(self.max_retries, -1, -1):
            connection = self.get_connection()
            try:
                _, received, data = await connection.perform_request(
                    method, url, params, body, timeout, ignore, headers
                )
            except NoConnection as error:
                self.mark_dead(connection)
                if isinstance(error, ConnectionTimeout) or not retries_left:
                    if isinstance(error.info, ssl.SSLError):
                        # The log has the type of the error only, and opensearch-py raises the type of any failure.
                        raise SSLError(*error.args) from error
                    raise
            else:
                self.connection_pool.mark_live(connection)
                return self.deserializer.loads(data, received.get("content-type")) if data else data
        raise AssertionError("there is at least one attempt")

    async def close(self) -> None:
        """Close all connections, including those of excluded nodes, which the base class leaves open."""
        await super().close()
        # Only a pool of several nodes that was used has this list; other pools exclude no node.
        for connection in getattr(self.connection_pool, "orig_connections", ()):
            await connection.close()
