"""A search backend with a leak of time planted in it: what the measurement of times has to find (V2)."""

import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from service.search.protocol import Generations, SearchBackend, Snapshot, TypeaheadState

T = TypeVar("T")
Look = Callable[..., Coroutine[Any, Any, T]]


class DelayedBackend:
    """A backend that betrays shops under review: every look-up of one keeps the processor busy for a while."""

    def __init__(self, inner: SearchBackend, betrayed: Iterable[str], seconds: float) -> None:
        """Wrap a backend.

        Args:
            inner: the one that answers.
            betrayed: the ids and domains whose look-up takes longer.
            seconds: how much.
        """
        self._inner = inner
        self._late = frozenset(betrayed)
        self._seconds = seconds

    async def snapshot(self) -> Snapshot:
        """The live generation, told late."""
        return _DelayedSnapshot(await self._inner.snapshot(), self._until)

    def current(self) -> Snapshot | None:
        """The same where it is available without I/O."""
        snapshot = self._inner.current()
        return None if snapshot is None else _DelayedSnapshot(snapshot, self._until)

    def typeahead_state(self) -> TypeaheadState:
        """As the one within says."""
        return self._inner.typeahead_state()

    async def refresh(self) -> Snapshot:
        """The same, asked anew."""
        return _DelayedSnapshot(await self._inner.refresh(), self._until)

    async def generations(self) -> Generations:
        """As the one within says."""
        return await self._inner.generations()

    async def close(self) -> None:
        """Release the one within."""
        await self._inner.close()

    def _until(self, asked: object) -> None:
        if asked in self._late:
            end = time.perf_counter() + self._seconds
            while time.perf_counter() < end:
                pass


class _DelayedSnapshot:
    def __init__(self, inner: Snapshot, wait: Callable[[object], None]) -> None:
        def each(references: Iterable[object]) -> None:
            for reference in references:
                wait(reference)

        self.stamp = inner.stamp
        self.find, self.suggest, self.categories = inner.find, inner.suggest, inner.categories
        self.merge_candidates, self.merge_effects = inner.merge_candidates, inner.merge_effects
        self.shop = _late(inner.shop, wait)
        self.shops = _late(inner.shops, each)
        self.facts = _late(inner.facts, wait)
        self.trust = _late(inner.trust, wait)
        self.offer = _late(inner.offer, wait)
        self.coupons = _late(inner.coupons, lambda query: wait(query.shop))


def _late(look: Look[T], wait: Callable[[Any], None]) -> Look[T]:
    async def late(asked: object, *more: object) -> T:
        wait(asked)
        return await look(asked, *more)

    return late
