"""The MCP endpoints over HTTP, loaded on demand: the SDK takes as long to import as the rest of the service.

They are loaded in a thread, when the first request comes, or by the server once the service has started.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class LoadedMcp(NamedTuple):
    """The SDK's session manager, and the endpoints that use it, by path."""

    sessions: "StreamableHTTPSessionManager"
    endpoints: Mapping[str, ASGIApp]


class DeferredMcp:
    """Loads the endpoints once, and runs their session manager until the application stops."""

    def __init__(self, load: Callable[[], LoadedMcp]) -> None:
        """`load` is called at most once, in a thread."""
        self._load = load
        self._running: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Mapping[str, ASGIApp]]
        self._stopping: asyncio.Event

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Within, endpoints can be opened; at the end their sessions are closed."""
        self._opened = asyncio.get_running_loop().create_future()
        self._stopping = asyncio.Event()
        try:
            yield
        finally:
            self._stopping.set()
            if self._running is not None:
                await asyncio.wait((self._running,))

    def endpoint(self, path: str) -> ASGIApp:
        """The endpoint of one path, which opens the endpoints when it is first called."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await (await self.open())[path](scope, receive, send)

        return answer

    async def open(self) -> Mapping[str, ASGIApp]:
        """The endpoints by path, loaded on the first call; raises what loading raised."""
        if self._opened.done():
            return self._opened.result()
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        # Callers share it, and one of them may leave.
        return await asyncio.shield(self._opened)

    async def _run(self) -> None:
        """Load the endpoints and run the sessions; in one task, as the SDK demands."""
        try:
            sessions, endpoints = await asyncio.to_thread(self._load)
        except Exception as error:  # noqa: BLE001 - each caller gets it
            self._opened.set_exception(error)
            return
        async with sessions.run():
            self._opened.set_result(endpoints)
            await self._stopping.wait()
