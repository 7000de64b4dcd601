"""Records the requests that the service sends to OpenSearch, so that they can be sent again without it."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from service.search.opensearch.engine import OpenSearchEngine
from service.search.planned_backend import PlannedBackend, PlannedSnapshot

_TIMEOUT_S: Final = 10.0

# Path and query, and body.
Sent = tuple[str, bytes]


class Recorded(OpenSearchEngine):
    """An engine that records the requests that it sends."""

    def __init__(self, url: str, prefix: str) -> None:
        """Connect to one node."""
        super().__init__([url], prefix, _TIMEOUT_S)
        self.sent: list[Sent] = []

    async def _get(self, target: str, body: bytes, seconds: float) -> dict[str, Any]:
        self.sent.append((target, body))
        return await super()._get(target, body, seconds)


async def recorded(
    url: str, prefix: str, query_set: Sequence[Callable[[PlannedSnapshot], Any]]
) -> list[tuple[Sent, ...]]:
    """The requests that each query sends to the engine, in order."""
    engine = Recorded(url, prefix)
    backend = PlannedBackend(engine)
    try:
        snapshot = await backend.snapshot()
        requests = []
        for ask in query_set:
            engine.sent.clear()
            await ask(snapshot)
            requests.append(tuple(engine.sent))
        return requests
    finally:
        await backend.close()
