"""Opens the asyncio client that fits how Redis is reached: of one server, of a master behind sentinels, of a cluster.

All of them speak alike: no retries of their own, certificates and host names always checked, text as text.
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

# Of a call's time, what one node may take: it is given up while there is time to learn that it is no longer the master.
_OF_ONE_NODE: Final = 0.6


def open_client(access: RedisAccess, connections: int, timeout: float) -> Client:
    """A client that nothing is asked of yet.

    Args:
        access: the way to Redis.
        connections: how many there may be at once, to each node.
        timeout: seconds that a whole call may take.
    """
    url: dict[str, Any] = {**parse_url(access.url)}
    connection_class = url.pop("connection_class", Connection)
    stated = {"username": access.user, "password": access.password, **url}
    if access.cluster_nodes:
        return _cluster(access, stated, connections, timeout)
    if access.sentinels:
        return _master(access, stated, connections, timeout)
    options = {**_spoken(timeout), **_tls(access)}
    return Redis.from_pool(
        ConnectionPool(connection_class=connection_class, max_connections=connections, **stated, **options)
    )


async def close_client(client: Client) -> None:
    """Close all that `open_client` opened."""
    await client.aclose()
    if isinstance(client, RedisCluster):
        # It leaves them open when the last thing it noticed was a node that failed.
        await client.nodes_manager.aclose()
        await client.nodes_manager.aclose("startup_nodes")
        return
    pool = client.connection_pool
    await pool.disconnect()
    if isinstance(pool, SentinelConnectionPool):
        await pool.sentinel_manager.aclose()


def _cluster(access: RedisAccess, stated: dict[str, Any], connections: int, timeout: float) -> RedisCluster:
    return RedisCluster(
        startup_nodes=[ClusterNode(*found) for found in map(address_of, access.cluster_nodes) if found],
        # One that was given up is closed a moment after its turn has ended.
        max_connections=2 * connections,
        # It would close every connection, also those in use, once some callers were told that a slot has moved.
        reinitialize_steps=0,
        username=stated["username"],
        password=stated["password"],
        ssl=access.with_tls,
        **_spoken(timeout * _OF_ONE_NODE),
        **_tls(access),
    )


def _master(access: RedisAccess, stated: dict[str, Any], connections: int, timeout: float) -> Redis:
    asked = {"ssl": access.with_tls, **_tls(access)}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]  # the client leaves it out
        [found for found in map(address_of, access.sentinels) if found],
        sentinel_kwargs={
            "username": access.sentinel_user,
            "password": access.sentinel_password,
            # They are asked one after the other until one answers.
            **_spoken(timeout / (len(access.sentinels) + 2)),
            **asked,
        },
    )
    where = {name: value for name, value in stated.items() if name not in ("host", "port")}
    client: Redis = sentinel.master_for(
        access.sentinel_name or "", max_connections=connections, **where, **_spoken(timeout * _OF_ONE_NODE), **asked
    )
    return client


def _spoken(timeout: float) -> dict[str, Any]:
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        # The client would ask again unseen, three times and more: whoever asks decides what may be asked again.
        "retry": Retry(NoBackoff(), 0),
        # With 3 the pool takes maintenance messages, and no longer sees that a waiting connection was closed.
        "protocol": 2,
        # It would tell the server its name and version: two more rights to give, two more answers to wait for.
        "driver_info": None,
        "decode_responses": True,
    }


def _tls(access: RedisAccess) -> dict[str, Any]:
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
