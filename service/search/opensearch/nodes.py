"""Asking a cluster of which a node may be away: another one is asked at once, and the one at fault is left out (E3).

What is asked is read only, so asking twice is safe. A request that ran out of time is not repeated: load and waiting
would multiply just when the cluster is in trouble.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson
from opensearchpy import AsyncOpenSearch, AsyncTransport
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, SerializationError
from opensearchpy.serializer import JSONSerializer

from service.search.opensearch.connection import KeptConnections
from shop_directory.settings.cluster_access import OPEN_ACCESS, ClusterAccess

# For how long a node that failed is left out, however often it has: it is asked again soon after it is back.
_LEFT_OUT_S: Final = 5.0
# The client's own bound of 10 would make requests wait for each other that the service has let in.
_MOST_CONNECTIONS: Final = 100


def connect(urls: Sequence[str], timeout: float, access: ClusterAccess = OPEN_ACCESS) -> AsyncOpenSearch:
    """A client that asks each node once at most, and another one only where a connection failed.

    Args:
        urls: the nodes.
        timeout: seconds that one attempt may take.
        access: how the cluster lets us in.
    """
    return AsyncOpenSearch(
        list(urls),
        transport_class=NodeTransport,
        connection_class=KeptConnections,
        serializers={JSONSerializer.mimetype: AnswersAsBytes()},
        timeout=timeout,
        pool_maxsize=_MOST_CONNECTIONS,
        max_retries=len(urls) - 1,
        retry_on_timeout=False,
        retry_on_status=(),
        dead_timeout=_LEFT_OUT_S,
        timeout_cutoff=0,  # otherwise up to 32 times as long
        headers=access.headers(),
        ssl_context=access.tls(),
    )


class AnswersAsBytes(JSONSerializer):
    """Reads answers without a detour by text."""

    def loads(self, s: Any) -> Any:  # noqa: ANN401 - as the client says
        """What the bytes say.

        Raises:
            SerializationError: they are no JSON.
        """
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError as error:
            raise SerializationError("the node's answer is no JSON", error) from error


class NodeTransport(AsyncTransport):
    """Leaves out nodes that hang as well as those that are gone, and closes its connections to all of them."""

    async def perform_request(  # noqa: PLR0917 - as the client says
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: Any = None,  # noqa: ANN401 - as the client says
        timeout: float | None = None,  # noqa: ASYNC109 - as the client says
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - as the client says
        """Ask a node, and another one where no connection to it could be had or kept; what the answer says.

        Finished bytes go out as they are. A node that does not answer in time is left out for a while.
        """
        await self._async_call()
        if params is not None or not isinstance(body, bytes):
            method, params, body, ignore, timeout = self._resolve_request_args(method, params, body, ignore, timeout)
        for others in range(self.max_retries, -1, -1):
            connection = self.get_connection()
            try:
                _, told, data = await connection.perform_request(method, url, params, body, timeout, ignore, headers)
            except NoConnection as error:
                self.mark_dead(connection)
                if isinstance(error, ConnectionTimeout) or not others:
                    raise
            else:
                self.connection_pool.mark_live(connection)
                return self.deserializer.loads(data, told.get("content-type")) if data else data
        raise AssertionError("a client asks at least once")

    async def close(self) -> None:
        """Close all connections: the client forgets those that it left out."""
        await super().close()
        # The pools of one node, and of a client that has asked nothing yet, leave out none and know no such list.
        for connection in getattr(self.connection_pool, "orig_connections", ()):
            await connection.close()
