"""What only the embedded engine does: order by bands (M1), parts of texts (M3 d), bounded searches in threads (E1)."""

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, Final

import pytest
import tantivy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from index_mappings.documents import ShopDocument
from index_mappings.embedded import column_values, index_directory, to_checked_json
from index_mappings.generations import new_generation
from index_mappings.ngrams import REPETITIVE_RUNS, TAIL_MAX, covering_runs, frequent_terms, is_part_evidence
from index_mappings.tiers import rank_key
from indexer import progress
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from indexer.sinks.embedded.generation import finished, schema
from indexer.sinks.embedded.sink import EmbeddedSink
from service.app import create_app
from service.errors import OverloadedError
from service.settings.service import Settings
from shop_directory.runtime.request_context import bind_request, new_request_context
from shop_directory.search.embedded import engine, queries
from shop_directory.search.embedded.engine import EmbeddedBackend, TantivyEngine
from shop_directory.search.embedded.order import Bands, RankedReader
from shop_directory.search.embedded.queries import OpenIndex, query_of
from shop_directory.search.embedded.threads import SearchThreads, threads_of_worker
from shop_directory.search.engine import SearchRequest
from shop_directory.search.failures import EngineBusy, GenerationDamaged, GenerationGone
from shop_directory.search.plan import MATCH_ALL, Clause, Exact, Infix, Plan, Prefix
from shop_directory.search.protocol import FindQuery, Position, Snapshot
from tests.engines.integration.generations import Documents, publish
from tests.engines.typeahead.crowded import HAN
from tests.support.catalogues import shop
from tests.support.served import post, served, until_ready
from tests.support.wire import Era, call, problem
from tests.support.worlds import embedded_world

POPULARITIES: Final = (None, 0.0, 0.25, 0.5, 7.0)
# Every shop begins with the first word's letter; each second has the second word.
EVEN: Final = Exact("words", ("even",))
BEGINS: Final = Prefix("full", "s")


def _document(number: int, popularity: float | None) -> ShopDocument:
    name = f"Shop {'even' if number % 2 == 0 else 'odd'}"
    line = shop(name, f"d{number}.internal", id=f"s{number:04d}", popularity=popularity)
    return project_shop(ShopRecord.model_validate(line))


def _in_order(documents: Iterable[ShopDocument]) -> list[ShopDocument]:
    return sorted(documents, key=lambda document: rank_key(document.popularity, document.id))


@pytest.mark.rule("M1", "M2", "F7")
def test_searches_in_several_threads_read_documents_while_each_clears_the_cache_of_the_others(tmp_path: Path) -> None:
    built = [_document(number, None) for number in range(40)]
    world = _World(tmp_path, built)
    directory = index_directory(tmp_path, world.stamp.generation, "shops")
    opened = tantivy.Index.open(str(directory))
    searcher = opened.searcher()
    cached = RankedReader(OpenIndex("shops", "rank", opened.schema, searcher), [], Bands(tmp_path, "g"), cached=20)
    addresses = [address for _, address in searcher.search(tantivy.Query.all_query(), limit=40).hits]
    right = {rank_key(None, document.id): document.id for document in built}

    def read(_: int) -> set[tuple[str, str]]:
        found = (cached.read(at, address) for _ in range(5_000) for at, address in enumerate(addresses))
        return {(rank, stored["id"]) for rank, stored in found}

    before = sys.getswitchinterval()
    # Threads take turns as often as they can.
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(read, range(4))) == [set(right.items())] * 4
    finally:
        sys.setswitchinterval(before)


class _World:
    def __init__(self, root: Path, built: Sequence[ShopDocument]) -> None:
        self._root = root
        self._sink = EmbeddedSink(root)
        with pytest.MonkeyPatch.context() as narrow:
            narrow.setattr("indexer.sinks.embedded.generation.BAND_WIDTH", 2)
            self.stamp = publish(self._sink, Documents({"shops": tuple(built), **_NO_OTHERS}))
        self.shops = {document.id: document for document in built}

    def change(self, documents: Sequence[ShopDocument], removed: Sequence[str]) -> None:
        editor = self._sink.edit(self.stamp.generation)
        editor.write("shops", documents, removed)
        editor.show()
        editor.commit(replace(self.stamp, sequence=self.stamp.sequence + 1))
        self.stamp = editor.stamp
        editor.close()
        self.shops = {key: document for key, document in self.shops.items() if key not in removed}
        self.shops.update({document.id: document for document in documents})

    def found(
        self, tiers: Sequence[Clause], offset: int, limit: int, after: tuple[int, str] | None = None
    ) -> list[str]:
        """A page; `after` is the number of a tier from 0, the best one, and a rank in it."""
        position = None if after is None else Position(2 * (len(tiers) - after[0]), after[1])
        plan = Plan("shops", tuple((len(tiers) - place, clause) for place, clause in enumerate(tiers)))

        async def ask() -> list[str]:
            engine = TantivyEngine(self._root)
            (page,) = await engine.search(self.stamp, (SearchRequest(plan, limit, offset, after=position),))
            await engine.close()
            return [hit.stored["id"] for hit in page.hits]

        return asyncio.run(ask())

    def expected(self, *, even_first: bool) -> list[str]:
        ordered = _in_order(self.shops.values())
        if even_first:
            ordered.sort(key=lambda document: "even" not in document.words)
        return [document.id for document in ordered]


_NO_OTHERS: Final = dict.fromkeys(("categories", "coupons", "offers", "facts"), ())
_documents = st.builds(_document, st.integers(0, 60), st.sampled_from(POPULARITIES))
_several = st.lists(_documents, max_size=25, unique_by=lambda document: document.id)
_changes = st.tuples(_several, st.lists(st.integers(0, 60).map(lambda number: f"s{number:04d}"), max_size=5))


@pytest.mark.rule("M1", "M2", "F7")
@settings(max_examples=15, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    built=_several,
    changes=st.lists(_changes, max_size=3),
    in_order=st.booleans(),
    offset=st.integers(0, 30),
    limit=st.integers(1, 30),
    passed=_documents,
)
def test_after_any_builds_and_changes_the_order_is_that_of_the_ranks(
    built: list[ShopDocument],
    changes: list[tuple[list[ShopDocument], list[str]]],
    in_order: bool,  # noqa: FBT001 - drawn
    offset: int,
    limit: int,
    passed: ShopDocument,
) -> None:
    with TemporaryDirectory() as directory:
        world = _World(Path(directory), _in_order(built) if in_order else built)
        for documents, removed in changes:
            taken = {document.id for document in documents}
            world.change(documents, [shop_id for shop_id in removed if shop_id not in taken])
        for tiers in ((MATCH_ALL,), (BEGINS,), (EVEN, BEGINS), (EVEN, BEGINS, MATCH_ALL)):
            expected = world.expected(even_first=len(tiers) > 1)
            assert world.found(tiers, offset, limit) == expected[offset : offset + limit]
            assert world.found(tiers, 0, limit) == expected[:limit]
            # Of the first tier those behind a rank, whether a shop has it or not, and all of the others.
            first = [key for key in expected if len(tiers) == 1 or "even" in world.shops[key].words]
            behind = [key for key in expected if key not in first or world.shops[key].rank > passed.rank]
            assert world.found(tiers, 0, limit, (0, passed.rank)) == behind[:limit]


@pytest.mark.rule("E3", "F7")
def test_a_page_behind_a_position_fails_without_the_anchors_of_its_generation(tmp_path: Path) -> None:
    path = tmp_path / "anchors.json"
    with pytest.raises(GenerationGone):
        Bands(path, "g").of("a")
    for damaged in ("{}", "no JSON", to_checked_json({"other": []})):
        path.write_text(damaged)
        with pytest.raises(GenerationDamaged):
            Bands(path, "g").of("a")
    path.write_text(to_checked_json({"anchors": ["b", "d"]}))
    assert [Bands(path, "g").of(rank) for rank in "abcde"] == [0, 1, 1, 2, 2]


@pytest.mark.rule("M1", "M2", "F7")
@pytest.mark.parametrize("many", [100, 700])
def test_very_many_shops_that_come_into_one_band_are_in_order(tmp_path: Path, many: int) -> None:
    first = [_document(number, 0.5) for number in (0, 9_000, 9_001, 9_002, 9_003)]
    world = _World(tmp_path, first)
    world.change([_document(number, 0.5) for number in reversed(range(1, many))], [])
    for tiers in ((BEGINS,), (EVEN, BEGINS)):
        expected = world.expected(even_first=len(tiers) > 1)
        for offset, limit in ((0, 8), (0, many + 5), (many // 2, 20), (many - 2, 20)):
            shown = world.shops[expected[offset]]
            tier = int(len(tiers) > 1 and "even" not in shown.words)
            assert world.found(tiers, 0, limit, (tier, shown.rank)) == expected[offset + 1 :][:limit]
            assert world.found(tiers, offset, limit) == expected[offset : offset + limit]


def _named(number: int, infixes: list[str]) -> ShopDocument:
    line = shop("Any", f"d{number}.internal", id=f"s{number}")
    return replace(project_shop(ShopRecord.model_validate(line)), infixes=tuple(infixes))


def _index_of(documents: Sequence[ShopDocument], sampled: int = 0) -> OpenIndex:
    """An index of these documents; the terms that are frequent in some of them are terms of it."""
    index = tantivy.Index(schema("shops"))
    writer = index.writer(heap_size=15_000_000, num_threads=1)
    frequent = frequent_terms(ShopDocument, [*documents[:sampled]] * 4)
    for document in documents:
        writer.add_document(finished("shops", document, lambda _: 0, frequent))
    writer.commit()
    index.reload()
    return OpenIndex("shops", "rank", index.schema, index.searcher())


def _found(opened: OpenIndex, clause: Clause) -> set[int]:
    """The numbers of the documents that meet a clause."""
    query = query_of(opened, clause)
    hits = () if query is None else opened.searcher.search(query, limit=300).hits
    return {address.doc for _, address in hits}


# Few characters, and longer texts that repeat themselves, so that parts occur often, and nearly.
_TEXTS: Final = st.one_of(
    st.text("ab緑", min_size=1, max_size=9),
    st.builds(
        lambda text, times, end: text * times + end,
        st.text("ab緑", min_size=1, max_size=4),
        st.integers(3, 50),
        st.text("ab", max_size=2),
    ),
)


@pytest.mark.rule("M3")
@settings(max_examples=30)
@example(shops=[["zabcd", "bcdex"]], part="abcde", cut=0, sampled=0)
@example(shops=[["abcdefgh", "ghijklmn"]], part="abcdefghijklmn", cut=0, sampled=0)
@example(shops=[["a" * 70, "a" * 68]], part="a" * 100, cut=0, sampled=0)
@example(shops=[["abcd"], ["zabcdz"], ["abc", "bcd"], ["abcd" * 20]], part="abcd", cut=0, sampled=1)
@given(
    shops=st.lists(st.lists(_TEXTS, min_size=1, max_size=3), min_size=1, max_size=12),
    part=_TEXTS,
    cut=st.integers(0, 9),
    sampled=st.integers(0, 12),
)
def test_the_engine_finds_exactly_the_shops_with_the_part(
    shops: list[list[str]], part: str, cut: int, sampled: int
) -> None:
    # A text of a shop, cut at both ends, is a part more often than any other one.
    part = shops[0][0][cut:-cut] if cut else part
    if not is_part_evidence(part):
        return
    opened = _index_of([_named(number, texts) for number, texts in enumerate(shops)], sampled)
    expected = {number for number, texts in enumerate(shops) if any(part in text for text in texts)}
    assert _found(opened, Infix("infixes", part)) == expected


@pytest.mark.rule("M3", "M8", "X4")
@pytest.mark.parametrize("field", ["full", "other_keys", "words"])
@pytest.mark.parametrize("length", [1, 2, 5, 6, 7, 40, 199, 200, 201, 600])
@pytest.mark.parametrize("sampled", [0, 9])
def test_a_prefix_of_any_length_finds_the_shops_that_begin_with_it(field: str, length: int, sampled: int) -> None:
    longest = "ab" * 300
    sizes = (1, 2, 5, 6, 7, 8, 39, 40, 41, 198, 199, 200, 201, 599, 600)
    texts = [longest[:size] + end for size in sizes for end in ("", "z")]
    documents = [replace(_named(number, [text]), **{field: (text,)}) for number, text in enumerate(texts)]  # type: ignore[arg-type]  # of texts
    opened = _index_of(documents, sampled)
    expected = {number for number, text in enumerate(texts) if text.startswith(longest[:length])}
    assert _found(opened, Prefix(field, longest[:length])) == expected
    assert query_of(opened, Prefix(field, "b" * length)) is None


@pytest.mark.rule("M3", "M8", "X4")
@pytest.mark.parametrize("count", [1, 8, 9, 49, 50, 51, 52, 200])
def test_all_shops_that_begin_with_a_rare_prefix_are_found_however_many_there_are(count: int) -> None:
    opened = _index_of([replace(_named(number, []), full=(f"birch wood {number}",)) for number in range(count)])
    assert _found(opened, Prefix("full", "birch wo")) == {*range(count)}


def test_the_terms_of_a_shop_grow_with_the_characters_of_its_names_whatever_words_these_have() -> None:
    def size(words: int, letters: int) -> int:
        aliases = [
            " ".join(f"{chr(97 + at % 26) * letters}{at}" for at in range(number, number + words))
            for number in range(5)
        ]
        values = column_values(
            "shops", project_shop(ShopRecord.model_validate(shop("Any", "any.internal", aliases=aliases)))
        )
        return sum(len(value) for value in values.values() if isinstance(value, list))

    assert size(72, 1) < 1.4 * size(56, 1)
    assert size(50, 1) < size(18, 9)


def test_a_build_shows_that_it_goes_on_while_the_engine_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_TICK_S", 0.0)
    ticks = []
    sink = EmbeddedSink(tmp_path)
    writer = sink.begin(new_generation(datetime.now(UTC)))
    assert writer.add("shops", [_named(1, ["birch"])], lambda: ticks.append(1)) == 1
    assert ticks


_NAMES: Final = st.builds(
    lambda words, times: " ".join(words * times),
    st.lists(st.text("ab緑", min_size=1, max_size=9), min_size=1, max_size=6),
    st.integers(1, 40),
)


@pytest.mark.rule("M3")
@settings(max_examples=50, deadline=None)
@example(shops=[["x" + "ab" * 120, "ab" * 100 + " z"]], key=0, length=205)
@example(shops=[["ab " * 80 + "b"], ["b" * 8 + "ab " * 80 + "b"]], key=3, length=210)
@given(
    shops=st.lists(st.lists(_NAMES, min_size=1, max_size=4), min_size=1, max_size=8),
    key=st.integers(0, 20),
    length=st.integers(TAIL_MAX - 9, TAIL_MAX + 60),
)
def test_a_long_prefix_finds_exactly_the_shops_with_a_key_that_begins_so(
    shops: list[list[str]], key: int, length: int
) -> None:
    # Not from all words on: what is inside a name is the beginning of a key only where the shop has that key.
    keys = [
        [name[start:] for name in names for start in range(len(name)) if start % 4 < 3 and f" {name}"[start] == " "]
        for names in shops
    ]
    prefix = [*keys[0], *shops[-1]][key % (len(keys[0]) + len(shops[-1]))][:length]
    opened = _index_of([replace(_named(number, []), other_keys=tuple(texts)) for number, texts in enumerate(keys)])
    expected = {number for number, texts in enumerate(keys) if any(text.startswith(prefix) for text in texts)}
    assert _found(opened, Prefix("other_keys", prefix)) == expected


@pytest.mark.rule("V2")
@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("shops", "refs"), ("facts", "refs"), ("facts", "trusted_refs"), ("coupons", "shop_refs"),
        ("offers", "shop_refs"), ("offers", "id"),
    ],
)  # fmt: skip
def test_an_unknown_reference_is_searched_for_as_one_whose_documents_were_removed(kind: str, field: str) -> None:
    index = tantivy.Index(schema(kind))
    opened = OpenIndex(kind, "rank", index.schema, index.searcher())
    query = query_of(opened, Exact(field, ("nobody",)))
    assert query is not None
    assert opened.searcher.search(query, limit=1).hits == []


@pytest.mark.rule("M1", "M8")
async def test_a_kept_number_of_hits_changes_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_MANY", 5)
    shops = [
        shop(f"Birch {number}", id=f"s{number}", popularity=number % 7, countries=["AT"] if number % 3 else ["DE"])
        for number in range(40)
    ]
    backend = EmbeddedBackend(embedded_world(tmp_path, shops))
    snapshot = await backend.snapshot()
    for text, countries in (("", ("AT",)), ("things", ()), ("things", ("AT",))):
        for offset, limit in ((0, 3), (0, 50), (20, 4)):
            query = FindQuery(text, countries, (), offset, limit)
            first = await snapshot.find(query)
            assert await snapshot.find(query) == first
            assert len(first.shops) == min(limit, first.total - offset) > 0
    await backend.close()


# Characters that are next to one another in Unicode share most of their bytes, which makes the automaton small.
SPREAD: Final = "".join(random.Random(1).sample(HAN, 560))  # noqa: S311 - the same each time
NAMED: Final = SPREAD[:200]
UNKNOWN: Final = SPREAD[200:400]
TWO_WORDS: Final = (SPREAD[400:480], SPREAD[480:])
_LONGEST: Final = 64


@dataclass
class RecordedQueries:
    """The engine's queries: the methods that made one, in order, and the texts searched for by distance."""

    made: list[str] = field(default_factory=list)
    by_distance: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., tantivy.Query]:
        make = getattr(tantivy.Query, name)

        def recorded(*arguments: Any, **named: Any) -> tantivy.Query:  # noqa: ANN401 - as the method takes
            self.made.append(name)
            if name == "fuzzy_term_query":
                self.by_distance.append(arguments[2])
            query: tantivy.Query = make(*arguments, **named)
            return query

        return recorded


@pytest.fixture
async def snapshot(tmp_path: Path) -> AsyncIterator[Snapshot]:
    """A shop whose name has 200 Han characters, and one with a name that begins like it."""
    shops = [
        shop(NAMED, "named.internal"),
        shop(f"{NAMED[:40]}\u5e97", "short.internal"),
        shop(" ".join(TWO_WORDS), "words.internal"),
        shop("Lumen"),
    ]
    backend = EmbeddedBackend(embedded_world(tmp_path, shops))
    yield await backend.snapshot()
    await backend.close()


def _in_words(text: str) -> str:
    return " ".join(text[start : start + 15] for start in range(0, 180, 15))


@pytest.mark.rule("M8", "E3")
@pytest.mark.parametrize(
    ("text", "found", "most"),
    [
        pytest.param(UNKNOWN, 0, 12, id="no shop's name"),
        pytest.param(NAMED, 1, 12, id="a shop's name"),
        pytest.param(NAMED[:199], 1, 12, id="the beginning of a shop's name"),
        pytest.param(NAMED[:40] + UNKNOWN[40:], 0, 12, id="begins like a shop's name"),
        pytest.param(_in_words(UNKNOWN), 0, 60, id="12 words of no shop"),
        pytest.param(_in_words(NAMED), 1, 60, id="12 words of a shop"),
        pytest.param(" ".join(reversed(TWO_WORDS)), 1, 30, id="two words of a shop, the last one first"),
    ],
)
async def test_no_long_text_is_searched_for_by_distance(
    snapshot: Snapshot, text: str, found: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = RecordedQueries()
    monkeypatch.setattr(queries, "Query", recorded)
    result = await snapshot.find(FindQuery(text, (), (), 0, 50))
    assert result.total == found
    assert [len(text) for text in recorded.by_distance if len(text) > _LONGEST] == []
    # Looking up one term takes microseconds, and a text has fewer runs than characters. Of no shop's text nothing more
    # is searched for than its terms.
    assert found <= len([kind for kind in recorded.made if kind != "term_query"]) <= most
    assert recorded.made.count("term_query") <= len(text)
    # One for each of two fields or words, however many searches of the plan have it.
    assert recorded.made.count("regex_query") <= 2


@pytest.mark.rule("M8")
@pytest.mark.parametrize(("length", "runs"), [(3, 1), (4, 2), (6, 1), (12, 2), (15, 3), (16, 1), (47, 3), (200, 5)])
def test_a_part_of_any_length_is_a_phrase_of_five_runs_at_most(length: int, runs: int) -> None:
    covering = covering_runs(UNKNOWN[:length], REPETITIVE_RUNS)
    assert len(covering) == runs
    assert {UNKNOWN[start : start + len(run)] for start, run in covering} == {run for _, run in covering}
    assert {place for start, run in covering for place in range(start, start + len(run))} == {*range(length)}


_FLOODER: Final = "203.0.113.7"
_OTHER: Final = "198.51.100.9"


def _search(threads: SearchThreads, caller: str, ends: Event) -> asyncio.Task[bool]:
    with bind_request(new_request_context("r")) as request:
        request.caller = caller
        return asyncio.create_task(threads.run(ends.wait))


@contextmanager
def _opened(threads: SearchThreads) -> Iterator[Event]:
    ends = Event()
    try:
        yield ends
    finally:
        ends.set()
        threads.close()


@pytest.mark.parametrize(
    ("processors", "workers", "threads"), [(16, 1, 32), (16, 4, 8), (16, 6, 6), (16, 16, 2), (2, 4, 2), (1, 1, 2)]
)
def test_the_workers_of_a_machine_divide_two_threads_for_each_processor(
    monkeypatch: pytest.MonkeyPatch, processors: int, workers: int, threads: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert threads_of_worker(workers) == threads


@pytest.mark.rule("E1.retry_after")
async def test_a_caller_has_half_of_the_threads_and_half_of_the_places() -> None:
    threads = SearchThreads(threads=4, places=8)
    at_once = Event()
    at_once.set()
    with _opened(threads) as ends:
        flood = [_search(threads, _FLOODER, ends) for _ in range(5)]
        # Two of its searches run and two wait, and this one is answered.
        assert await asyncio.wait_for(_search(threads, _OTHER, at_once), 5)
        with pytest.raises(EngineBusy):
            await flood.pop()
        ends.set()
        assert await asyncio.gather(*flood) == [True] * 4
        # What ended has left its places.
        assert await asyncio.gather(*(_search(threads, _FLOODER, at_once) for _ in range(4))) == [True] * 4


@pytest.mark.rule("E1.retry_after")
async def test_all_places_together_are_bounded_and_a_search_without_a_caller_has_no_share() -> None:
    threads = SearchThreads(threads=2, places=6)
    with _opened(threads) as ends:
        running = [_search(threads, caller, ends) for caller in ("", "", "", "", _FLOODER, _FLOODER)]
        with pytest.raises(EngineBusy):
            await _search(threads, _OTHER, ends)
        ends.set()
        assert await asyncio.gather(*running) == [True] * 6


@pytest.mark.rule("E1.retry_after")
async def test_a_cancelled_search_keeps_its_place_until_it_ends_and_one_that_waits_leaves_at_once() -> None:
    threads = SearchThreads(threads=2, places=4)
    with _opened(threads) as ends:
        runs, waits = _search(threads, _FLOODER, ends), _search(threads, _FLOODER, ends)
        await asyncio.sleep(0)
        for cancelled in (runs, waits):
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        second = _search(threads, _FLOODER, ends)
        with pytest.raises(EngineBusy):
            await _search(threads, _FLOODER, ends)
        ends.set()
        assert await asyncio.wait_for(second, 5)


@pytest.mark.rule("E1.retry_after")
def test_a_search_without_a_place_is_refused_as_overloaded_on_each_transport_and_another_caller_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ends = Event(), Event()

    def first_waits(index: OpenIndex, clause: Clause) -> tantivy.Query | None:
        if not begun.is_set():
            begun.set()
            ends.wait(10)
        return query_of(index, clause)

    monkeypatch.setattr(engine, "query_of", first_waits)
    monkeypatch.setattr(engine, "SearchThreads", lambda _: SearchThreads(threads=2, places=2))
    settings = Settings(data_dir=embedded_world(tmp_path), trusted_proxies=("127.0.0.1",), request_timeout=15.0)
    raw = b'{"query": "books"}'
    with served(create_app(settings)) as base, ThreadPoolExecutor(1) as callers:
        until_ready(base)
        # Two addresses of one network are one caller, as for quotas.
        slow = callers.submit(post, base, "/tool/find_shop", raw, x_forwarded_for="2001:db8::1")
        assert begun.wait(5)
        refused = post(base, "/tool/find_shop", raw, x_forwarded_for="2001:db8::2")
        results = [call(base, era, "find_shop", raw, x_forwarded_for="2001:db8::3").json["result"] for era in Era]
        answered = post(base, "/tool/find_shop", raw, x_forwarded_for=_OTHER)
        ends.set()
        assert (slow.result().status, answered.status) == (200, 200)
        assert slow.result().body == answered.body
    assert refused.summary == (
        503,
        "application/problem+json",
        problem(503, "overloaded", OverloadedError.default_detail),
    )
    assert refused.headers["retry-after"] == "1"
    for result in results:
        assert (result["isError"], [block["text"] for block in result["content"]]) == (True, [refused.body.decode()])
