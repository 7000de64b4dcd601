"""A search backend with a planted timing leak, which the timing measurement has to find (V2)."""

import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from service.search.protocol import Generations, SearchBackend, Snapshot, TypeaheadState

T = TypeVar("T")
Look = Callable[..., Coroutine[Any, Any, T]]


class DelayedBackend:
    """A backend with slower look-ups of shops under review."""

    def __init__(self, inner: SearchBackend, slowed: Iterable[str], seconds: float) -> None:
        """Wrap a backend; look-ups of the `slowed` ids and domains take so many seconds longer."""
        self._inner = inner
        self._slowed = frozenset(slowed)
        self._seconds = seconds

    async def snapshot(self) -> Snapshot:
        """The live generation, with delayed look-ups."""
        return _DelayedSnapshot(await self._inner.snapshot(), self._until)

    def current(self) -> Snapshot | None:
        """The same where it is available without I/O."""
        snapshot = self._inner.current()
        return None if snapshot is None else _DelayedSnapshot(snapshot, self._until)

    def typeahead_state(self) -> TypeaheadState:
        """Delegate to the wrapped backend."""
        return self._inner.typeahead_state()

    async def refresh(self) -> Snapshot:
        """The live generation, read again."""
        return _DelayedSnapshot(await self._inner.refresh(), self._until)

    async def generations(self) -> Generations:
        """Delegate to the wrapped backend."""
        return await self._inner.generations()

    async def close(self) -> None:
        """Close the wrapped backend."""
        await self._inner.close()

    def _until(self, asked: object) -> None:
        if asked in self._slowed:
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
        self.closest_categories = inner.closest_categories
        self.merge_candidates, self.merge_effects = inner.merge_candidates, inner.merge_effects
        self.shop = _delayed(inner.shop, wait)
        self.shops = _delayed(inner.shops, each)
        self.facts = _delayed(inner.facts, wait)
        self.trust = _delayed(inner.trust, wait)
        self.offer = _delayed(inner.offer, wait)
        self.coupons = _delayed(inner.coupons, lambda query: wait(query.shop))


def _delayed(look: Look[T], wait: Callable[[Any], None]) -> Look[T]:
    async def delayed(asked: object, *more: object) -> T:
        wait(asked)
        return await look(asked, *more)

    return delayed
