"""Asks Redis for the adapters, whichever way it is reached: within the caller's deadline, and with one kind of failure.

Nothing is retried unseen. Whoever asks says whether it may be sent once more when the connection broke; then a
connection that died idle, or a master that has just moved, costs no answer.
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
from service.runtime.request_context import time_left
from service.runtime.tracing import asking

T = TypeVar("T")


class RedisAway(Exception):  # noqa: N818 - it names the state that the adapters act on
    """Redis did not answer, not in time, or with an error. The text is the error's kind alone, nothing that was sent.

    Attributes:
        late: the caller's own deadline passed before Redis had had the time that it may take.
    """

    def __init__(self, kind: str, *, late: bool = False) -> None:
        self.late = late
        super().__init__(kind)


class Script:
    """A Lua script, which Redis runs as one step and knows by its hash once it has seen it.

    Why not the client's own: that one loads a lost script on every master of a cluster, and so fails with one of them.
    """

    def __init__(self, client: Client, text: str) -> None:
        """Name the script; nothing is sent yet."""
        self._client: Any = client
        self._text = text
        self._hash = sha1(text.encode(), usedforsecurity=False).hexdigest()

    async def __call__(self, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:  # noqa: ANN401 - its own
        """Run it where its keys are, which must be in one slot."""
        try:
            return await self._client.evalsha(self._hash, len(keys), *keys, *arguments)
        except NoScriptError:
            return await self._client.eval(self._text, len(keys), *keys, *arguments)


class RedisConnection:
    """Some connections to Redis, opened when they are needed.

    Attributes:
        client: sends commands; every use of it belongs into `asked`.
    """

    def __init__(self, access: RedisAccess, *, connections: int, timeout: float, purpose: str) -> None:
        """Name the server; nothing is asked of it yet.

        Args:
            access: the way to it.
            connections: how many calls may be under way at once.
            timeout: seconds for a whole call: waiting for a connection, connecting, asking again and all.
            purpose: what it is asked for, as traces name it.
        """
        self._purpose = purpose
        self.client = open_client(access, connections, timeout)
        self._timeout = timeout
        self._turn = asyncio.Semaphore(connections)
        self._under_way: set[asyncio.Task[Any]] = set()

    def script(self, text: str) -> Script:
        """A script that runs over these connections; a call of it belongs into `asked` as well."""
        return Script(self.client, text)

    async def asked(self, ask: Callable[[], Awaitable[T]], *, twice: bool = False) -> T:
        """The answer, within the time that the request under way has left.

        Args:
            ask: sends it.
            twice: whether it may be sent once more when its connection was lost, perhaps after it was done.

        Raises:
            RedisAway: there is none.
        """
        seconds = time_left(self._timeout)
        if seconds <= 0:
            # Nothing is sent that nobody waits for.
            raise RedisAway(TimeoutError.__name__, late=True)
        with asking("redis", self._purpose):
            return await self._answer(ask, seconds, twice=twice)

    async def settings(self, pattern: str, key: str) -> dict[str, str]:
        """Those of the server that holds a key; none when it does not tell them."""
        client = self.client
        where = {"target_nodes": client.get_node_from_key(key)} if isinstance(client, RedisCluster) else {}
        try:
            told: Any = await self.asked(lambda: client.config_get(pattern, **where))
        except RedisAway:
            return {}
        return dict(told)

    async def close(self) -> None:
        """Close the connections; what is under way is given up."""
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way)
        await close_client(self.client)

    async def _answer(self, ask: Callable[[], Awaitable[T]], seconds: float, *, twice: bool) -> T:
        # Not by a time-out around it: the client's own time-outs now and then take such a cancellation for theirs, and
        # go on for as long again.
        task = asyncio.create_task(self._in_turn(ask, twice=twice))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            task.cancel()
        if not task.done():
            raise RedisAway(TimeoutError.__name__, late=seconds < self._timeout)
        try:
            return task.result()
        except (RedisError, RedisClusterException, OSError, AttributeError) as error:
            # The last one: a cluster's client that finds its cluster down closes connections under the hands of others.
            # An error's own text may quote keys and addresses.
            raise RedisAway(type(error).__name__) from None

    async def _in_turn(self, ask: Callable[[], Awaitable[T]], *, twice: bool) -> T:
        async with self._turn:
            try:
                return await self._sent(ask)
            except ConnectionLostError:
                if not twice:
                    raise
            return await self._sent(ask)

    async def _sent(self, ask: Callable[[], Awaitable[T]]) -> T:
        if isinstance(self.client, RedisCluster):
            # Once, and after a node failed. Without it, a first command goes to any node, and its callers hear of a
            # move that is none.
            await self.client.initialize()
        try:
            return await ask()
        except RuntimeError as error:
            # The event loop's word for a connection that was closed while something was to be written to it.
            raise ConnectionLostError(type(error).__name__) from None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            # Looked at, so that one that ended after its deadline is not complained of.
            task.exception()
