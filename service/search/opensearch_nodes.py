"""Asking a cluster of which a node may be away: another one is asked at once, and the one at fault is left out (E3).

What is asked is read only, so asking twice is safe. A request that ran out of time is not repeated: load and waiting
would multiply just when the cluster is in trouble.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final

from aiohttp import ClientConnectorCertificateError
from opensearchpy import AsyncOpenSearch, AsyncTransport
from opensearchpy.connection import Connection
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, SSLError

from index_mappings.cluster_access import OPEN_ACCESS, ClusterAccess

# For how long a node that failed is left out: twice as long each time that it fails again, up to 32 times.
_LEFT_OUT_S: Final = 5.0
# The client's own bound of 10 would make requests wait for each other that the service has let in.
_MOST_CONNECTIONS: Final = 100
_ASKED: Final[ContextVar[Connection | None]] = ContextVar("the connection that was chosen last", default=None)


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
        timeout=timeout,
        pool_maxsize=_MOST_CONNECTIONS,
        max_retries=len(urls) - 1,
        retry_on_timeout=False,
        retry_on_status=(),
        dead_timeout=_LEFT_OUT_S,
        headers=access.headers(),
        ssl_context=access.tls(),
    )


class NodeTransport(AsyncTransport):
    """Leaves out nodes that hang as well as those that are gone, and closes its connections to all of them."""

    def get_connection(self) -> Any:  # noqa: ANN401 - as the client says
        """The next node's; noted, as the client does not say which one it had."""
        connection = super().get_connection()
        _ASKED.set(connection)
        return connection

    async def perform_request(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the client says
        """Ask; a node that does not answer in time is left out for a while.

        A certificate that is not trusted is an error of its own kind: operators read the kind in the log.
        """
        try:
            return await super().perform_request(*args, **kwargs)
        except ConnectionTimeout:
            if (connection := _ASKED.get()) is not None:
                self.mark_dead(connection)
            raise
        except NoConnection as error:
            if isinstance(error.info, ClientConnectorCertificateError):
                raise SSLError("N/A", "the node's certificate is not trusted", error.info) from error
            raise

    async def close(self) -> None:
        """Close all connections: the client forgets those that it left out."""
        await super().close()
        # The pools of one node, and of a client that has asked nothing yet, leave out none and know no such list.
        for connection in getattr(self.connection_pool, "orig_connections", ()):
            await connection.close()
