"""Sends requests within the caller's deadline to one Redis server, to a master behind sentinels, or to a cluster.

All failures are one exception. A request is sent again only if its caller allows it, after the connection was lost: an
idle connection may have died, or the master may have moved. The clients themselves make no retries, verify
certificates and host names, and decode texts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha1
from typing import Any, Final, TypeVar

from redis.asyncio import Connection, ConnectionPool, Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLostError
from redis.exceptions import NoScriptError, RedisClusterException, RedisError

from service.redis.access import RedisAccess, address_of
from service.runtime.store_waits import StoreUnavailable
from shop_directory.runtime.request_context import client_span, remaining_seconds

T = TypeVar("T")
Client = Redis | RedisCluster

# The share of a call's time for one node, so that time remains to find a new master.
_NODE_SHARE: Final = 0.6


class Script:
    """A Lua script, which Redis runs atomically and caches by its hash.

    The client's own class loads a missing script on every master of a cluster, so it fails when one of them is down.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.hash = sha1(text.encode(), usedforsecurity=False).hexdigest()


class RedisConnection:
    """A bounded pool of connections to Redis, opened when they are needed; its client is used within `execute` only."""

    def __init__(
        self,
        access: RedisAccess,
        *,
        connections: int,
        timeout: float,
        purpose: str,
        unavailable: type[StoreUnavailable],
        message: str = "Redis",
    ) -> None:
        """`timeout` seconds are for a whole request: waiting for a connection, connecting, and sending it again.

        Traces name the operation by `purpose`. If there is no reply, `unavailable` is raised with the message and the
        type of the error.
        """
        self._purpose = purpose
        self._unavailable = unavailable
        self._message = message
        self.client: Any = _open_client(access, connections, timeout)
        self._timeout = timeout
        self._slots = asyncio.Semaphore(connections)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def execute(self, send: Callable[[], Awaitable[T]], *, retry: bool = False) -> T:
        """The reply within the current request's deadline; `retry` says whether Redis may execute it twice."""
        seconds = remaining_seconds(self._timeout)
        if seconds <= 0:
            # Not sent: the reply would come too late.
            raise self._failure(TimeoutError, late=True)
        with client_span("redis", self._purpose):
            return await self._reply(send, seconds, retry=retry)

    async def run(
        self, script: Script, keys: Sequence[str], arguments: Sequence[str | int] = (), *, retry: bool = False
    ) -> Any:  # noqa: ANN401 - any reply of Redis
        """Run a script on the node of its keys, which must be in one slot; otherwise as `execute`."""

        async def send() -> Any:  # noqa: ANN401 - any reply of Redis
            try:
                return await self.client.evalsha(script.hash, len(keys), *keys, *arguments)
            except NoScriptError:
                return await self.client.eval(script.text, len(keys), *keys, *arguments)

        return await self.execute(send, retry=retry)

    async def settings(self, pattern: str, key: str) -> dict[str, str]:
        """Configuration values of the server that holds a key; empty when they can't be read."""
        client = self.client
        nodes = {"target_nodes": client.get_node_from_key(key)} if isinstance(client, RedisCluster) else {}
        try:
            values: Any = await self.execute(lambda: client.config_get(pattern, **nodes))
        except StoreUnavailable:
            return {}
        return dict(values)

    async def close(self) -> None:
        """Cancel the requests in flight, and close the connections."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await _close_client(self.client)

    async def _reply(self, send: Callable[[], Awaitable[T]], seconds: float, *, retry: bool) -> T:
        # A task instead of `asyncio.timeout`: the client sometimes mistakes that cancellation for its own timeout, and
        # continues for as long again.
        task = asyncio.create_task(self._send_bounded(send, retry=retry))
        self._tasks.add(task)
        task.add_done_callback(self._discard)
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            task.cancel()
        if not task.done():
            raise self._failure(TimeoutError, late=seconds < self._timeout)
        try:
            return task.result()
        except (RedisError, RedisClusterException, OSError, AttributeError) as error:
            # AttributeError: the client of a cluster that is down closes connections that other requests use.
            raise self._failure(type(error)) from None

    def _failure(self, kind: type[Exception], *, late: bool = False) -> StoreUnavailable:
        # Without the error's text, which may quote keys and addresses.
        return self._unavailable(f"{self._message}: {kind.__name__}", late=late)

    async def _send_bounded(self, send: Callable[[], Awaitable[T]], *, retry: bool) -> T:
        async with self._slots:
            try:
                return await self._send(send)
            except ConnectionLostError:
                if not retry:
                    raise
            return await self._send(send)

    async def _send(self, send: Callable[[], Awaitable[T]]) -> T:
        if isinstance(self.client, RedisCluster):
            # Needed once, and after a node has failed: otherwise the first command goes to any node and is redirected.
            await self.client.initialize()
        try:
            return await send()
        except RuntimeError as error:
            # The event loop raises it when a connection is closed before a write.
            raise ConnectionLostError(type(error).__name__) from None

    def _discard(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Retrieved, so that asyncio does not log an exception after the deadline as unhandled.
            task.exception()


def _open_client(access: RedisAccess, connections: int, timeout: float) -> Client:
    """A client with at most `connections` to each node, none of which is open yet."""
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


async def _close_client(client: Client) -> None:
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
