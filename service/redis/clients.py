"""Opens the asyncio client for one Redis server, for a master behind sentinels, or for a cluster.

All clients make no retries of their own, verify certificates and host names, and decode texts.
"""

from typing import Any, Final

from redis.asyncio import Connection, ConnectionPool, Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff

from service.redis.access import RedisAccess, address_of

Client = Redis | RedisCluster

# The share of a call's time for one node, so that time remains to find a new master.
_NODE_SHARE: Final = 0.6


def open_client(access: RedisAccess, connections: int, timeout: float) -> Client:
    """A client that has not connected yet.

    Args:
        access: how Redis is reached.
        connections: the most connections to each node.
        timeout: seconds that a whole call may take.
    """
    url: dict[str, Any] = {**parse_url(access.url)}
    connection_class = url.pop("connection_class", Connection)
    credentials = {"username": access.user, "password": access.password, **url}
    if access.cluster_nodes:
        return _cluster(access, credentials, connections, timeout)
    if access.sentinels:
        return _master(access, credentials, connections, timeout)
    options = {**_common_options(timeout), **_tls_options(access)}
    return Redis.from_pool(
        ConnectionPool(connection_class=connection_class, max_connections=connections, **credentials, **options)
    )


async def close_client(client: Client) -> None:
    """Close all connections of a client."""
    await client.aclose()
    if isinstance(client, RedisCluster):
        # `aclose` leaves them open after a node has failed.
        await client.nodes_manager.aclose()
        await client.nodes_manager.aclose("startup_nodes")
        return
    pool = client.connection_pool
    await pool.disconnect()
    if isinstance(pool, SentinelConnectionPool):
        await pool.sentinel_manager.aclose()


def _cluster(access: RedisAccess, credentials: dict[str, Any], connections: int, timeout: float) -> RedisCluster:
    return RedisCluster(
        startup_nodes=[ClusterNode(*address) for address in map(address_of, access.cluster_nodes) if address],
        # Twice as many: an abandoned connection is closed shortly after its slot is free.
        max_connections=2 * connections,
        # Otherwise the client closes all connections, also those in use, after some redirections of moved slots.
        reinitialize_steps=0,
        username=credentials["username"],
        password=credentials["password"],
        ssl=access.with_tls,
        **_common_options(timeout * _NODE_SHARE),
        **_tls_options(access),
    )


def _master(access: RedisAccess, credentials: dict[str, Any], connections: int, timeout: float) -> Redis:
    tls = {"ssl": access.with_tls, **_tls_options(access)}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]  # redis-py has no annotations here
        [address for address in map(address_of, access.sentinels) if address],
        sentinel_kwargs={
            "username": access.sentinel_user,
            "password": access.sentinel_password,
            # The sentinels are tried one after the other until one answers.
            **_common_options(timeout / (len(access.sentinels) + 2)),
            **tls,
        },
    )
    pool_options = {name: value for name, value in credentials.items() if name not in ("host", "port")}
    client: Redis = sentinel.master_for(
        access.sentinel_name or "",
        max_connections=connections,
        **pool_options,
        **_common_options(timeout * _NODE_SHARE),
        **tls,
    )
    return client


def _common_options(timeout: float) -> dict[str, Any]:
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        # The client would retry three times and more; `RedisConnection.execute` decides what may be sent again.
        "retry": Retry(NoBackoff(), 0),
        # With 3, the pool enables maintenance messages and no longer detects that an idle connection was closed.
        "protocol": 2,
        # Sending the client's name and version would need two more permissions and two more round trips.
        "driver_info": None,
        "decode_responses": True,
    }


def _tls_options(access: RedisAccess) -> dict[str, Any]:
    if not access.with_tls:
        return {}
    files = {
        "ssl_ca_certs": access.ca_file,
        "ssl_certfile": access.certificate_file,
        "ssl_keyfile": access.key_file,
    }
    return {
        "ssl_cert_reqs": "required",
        "ssl_check_hostname": True,
        **{name: str(path) for name, path in files.items() if path is not None},
    }
