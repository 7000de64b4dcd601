"""Sends requests to Redis within the caller's deadline, and reports all failures as one exception.

A request is sent again only if its caller allows it, after the connection was lost: an idle connection may have died,
or the master may have moved.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha1
from typing import Any, TypeVar

from redis.asyncio import RedisCluster
from redis.exceptions import ConnectionError as ConnectionLostError
from redis.exceptions import NoScriptError, RedisClusterException, RedisError

from service.redis.access import RedisAccess
from service.redis.clients import Client, close_client, open_client
from service.runtime.request_context import client_span, remaining_seconds

T = TypeVar("T")


class RedisUnavailable(Exception):  # noqa: N818 - it names a state, as `BackendUnavailable` does
    """Redis did not answer in time, or answered with an error. The text is the error's type only.

    Attributes:
        late: the caller's deadline passed before the timeout of this connection.
    """

    def __init__(self, reason: str, *, late: bool = False) -> None:
        self.late = late
        super().__init__(reason)


class Script:
    """A Lua script, which Redis runs atomically and caches by its hash.

    The client's own class loads a missing script on every master of a cluster, so it fails when one of them is down.
    """

    def __init__(self, client: Client, text: str) -> None:
        """Prepare the script; nothing is sent yet."""
        self._client: Any = client
        self._text = text
        self._hash = sha1(text.encode(), usedforsecurity=False).hexdigest()

    async def __call__(self, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:  # noqa: ANN401 - any reply of Redis
        """Run the script on the node of its keys, which must be in one slot."""
        try:
            return await self._client.evalsha(self._hash, len(keys), *keys, *arguments)
        except NoScriptError:
            return await self._client.eval(self._text, len(keys), *keys, *arguments)


class RedisConnection:
    """A bounded pool of connections to Redis, opened when they are needed.

    Attributes:
        client: sends commands, within `execute` only.
    """

    def __init__(self, access: RedisAccess, *, connections: int, timeout: float, purpose: str) -> None:
        """Create the pool; nothing is sent yet.

        Args:
            access: how Redis is reached.
            connections: the most concurrent requests.
            timeout: seconds for a whole request: waiting for a connection, connecting, and sending it again.
            purpose: the name of the operation in traces.
        """
        self._purpose = purpose
        self.client = open_client(access, connections, timeout)
        self._timeout = timeout
        self._slots = asyncio.Semaphore(connections)
        self._tasks: set[asyncio.Task[Any]] = set()

    def script(self, text: str) -> Script:
        """A script on these connections, to be called within `execute`."""
        return Script(self.client, text)

    async def execute(self, send: Callable[[], Awaitable[T]], *, retry: bool = False) -> T:
        """Send a request, and return the reply within the deadline of the current request.

        Args:
            send: sends the request with `client`, and returns the reply.
            retry: whether it may be sent again if the connection was lost, perhaps after Redis had executed it.

        Raises:
            RedisUnavailable: there is no reply.
        """
        seconds = remaining_seconds(self._timeout)
        if seconds <= 0:
            # Not sent: the reply would come too late.
            raise RedisUnavailable(TimeoutError.__name__, late=True)
        with client_span("redis", self._purpose):
            return await self._reply(send, seconds, retry=retry)

    async def settings(self, pattern: str, key: str) -> dict[str, str]:
        """Configuration values of the server that holds a key; empty when they can't be read."""
        client = self.client
        nodes = {"target_nodes": client.get_node_from_key(key)} if isinstance(client, RedisCluster) else {}
        try:
            values: Any = await self.execute(lambda: client.config_get(pattern, **nodes))
        except RedisUnavailable:
            return {}
        return dict(values)

    async def close(self) -> None:
        """Cancel the requests in flight, and close the connections."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await close_client(self.client)

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
            raise RedisUnavailable(TimeoutError.__name__, late=seconds < self._timeout)
        try:
            return task.result()
        except (RedisError, RedisClusterException, OSError, AttributeError) as error:
            # AttributeError: the client of a cluster that is down closes connections that other requests use.
            # Without the error's text, which may quote keys and addresses.
            raise RedisUnavailable(type(error).__name__) from None

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
