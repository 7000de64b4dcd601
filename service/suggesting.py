"""What /suggest answers, made once for everybody who asks the same: from memory, or by one look-up that they share.

The answer's bytes are made when it is found; what is kept is what is sent (C1, C2).
"""

from collections.abc import Hashable

from index_mappings.forms import query_forms
from index_mappings.generations import Stamp
from index_mappings.tiers import SUGGEST_CUT
from service.flights import Flights
from service.measures import NOTHING_MEASURED, Measures
from service.prepared import Prepared, PreparedAnswers, prepared
from service.search.protocol import Snapshot, SuggestQuery
from service.suggest import Typed, entity_tag, lead_of, tail_of

_MEBIBYTE = 1024 * 1024


class Suggesting:
    """Makes answers, and keeps them for as long as their stamp is the newest."""

    def __init__(self, cache_mb: int, timeout: float, measures: Measures = NOTHING_MEASURED) -> None:
        """Begin with nothing in memory.

        Args:
            cache_mb: mebibytes that kept answers may take; 0 keeps none.
            timeout: seconds that one look-up may take.
            measures: are told how often a kept answer does.
        """
        self._kept = PreparedAnswers(cache_mb * _MEBIBYTE)
        self._flights = Flights[bytes](timeout)
        self._measures = measures
        self._hits = 0

    def kept(self, stamp: Stamp, raw: bytes) -> Prepared | None:
        """The whole answer to a raw query string, if it is there; `tell` counts it."""
        found = self._kept.whole(stamp.key, raw)
        if found is not None:
            self._hits += 1
        return found

    def tell(self) -> None:
        """Count the answers that were kept, all since the last time at once: it costs as much as one of them."""
        if self._hits:
            self._measures.cache("suggest", hit=True, times=self._hits)
            self._hits = 0

    def at_once(self, snapshot: Snapshot, raw: bytes, typed: Typed) -> Prepared:
        """The answer of a snapshot that suggests at once.

        Raises:
            BackendUnavailable, GenerationGone: as the snapshot does.
        """
        key = self._key(typed.query) if self._kept.on else None
        tail = self._kept.found(snapshot.stamp.key, key)
        known = tail is not None
        if tail is None:
            tail = tail_of(snapshot.suggest_at_once(typed.query))
        self._note(hit=known)
        return self._prepared(snapshot.stamp, key, raw, typed, tail)

    async def answer(self, snapshot: Snapshot, raw: bytes, typed: Typed) -> Prepared:
        """The answer; found once for all who ask for it at the same time.

        Raises:
            BackendUnavailable, GenerationGone: as the snapshot does.
        """
        key = self._key(typed.query)
        tail = self._kept.found(snapshot.stamp.key, key)
        self._note(hit=tail is not None)
        if tail is None:

            async def find() -> bytes:
                return tail_of(await snapshot.suggest(typed.query))

            tail = await self._flights.share((snapshot.stamp.key, key), find)
        return self._prepared(snapshot.stamp, key, raw, typed, tail)

    def _prepared(self, stamp: Stamp, key: Hashable, raw: bytes, typed: Typed, tail: bytes) -> Prepared:
        answer = prepared(entity_tag(stamp, typed).encode(), lead_of(typed), tail)
        self._kept.keep_found(stamp.key, key, tail)
        self._kept.keep_whole(stamp.key, raw, answer)
        return answer

    def _note(self, *, hit: bool) -> None:
        if self._kept.on:
            self._measures.cache("suggest", hit=hit)

    @staticmethod
    def _key(query: SuggestQuery) -> Hashable:
        """All of a query that what is found depends on."""
        return query_forms(query.text, cut=SUGGEST_CUT).texts, query.country, query.limit
