"""The bulk loader against a real OpenSearch, and behind a relay that spoils requests: each document is in once (G1)."""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from opensearchpy import OpenSearch

from index_mappings.documents import CategoryDocument
from index_mappings.opensearch import mapping, settings
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.opensearch.bulk_loading import BulkLoader, Loaded, Pace
from tests.support.loopback import Forwarding, listening

_CHUNK: Final = 20
_REQUESTS: Final = 3
_PACE: Final = Pace(
    chunk_documents=_CHUNK, requests=_REQUESTS, give_up_after=20.0, lost_after=1.0, first_pause=0.02, longest_pause=0.2
)
_HASTY: Final = Pace(
    chunk_documents=_CHUNK, requests=_REQUESTS, give_up_after=1.0, lost_after=30.0, first_pause=0.02, longest_pause=0.2
)
# No keyword can be this long: the engine refuses the document.
_TOO_LONG: Final = "betraying" * 4_000

pytestmark = pytest.mark.opensearch


@dataclass(frozen=True, slots=True)
class Spoil:
    """What happens to one bulk request; without anything said it goes through."""

    status: int | None = None  # of the answer, instead of the node's
    drop: str | None = None  # the connection is closed: "before" the node was asked, or "after"
    reject: frozenset[str] = frozenset()  # ids that are answered 429 and never reach the node


THROUGH: Final = Spoil()


@dataclass(frozen=True, slots=True)
class Sent:
    """One bulk request as it came: the ids in it, what was done with it, and how many were in flight with it."""

    ids: tuple[str, ...]
    spoil: Spoil
    in_flight: int


@dataclass(slots=True)
class Relay:
    url: str
    spoil: Callable[[int, tuple[str, ...]], Spoil]  # asked with the number of a request, from 0, and its ids
    sent: list[Sent] = field(default_factory=list)
    settled: int = 0  # operations that were answered with the node's own word
    _in_flight: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, ids: tuple[str, ...]) -> Spoil:
        with self._lock:
            self._in_flight += 1
            spoil = self.spoil(len(self.sent), ids)
            self.sent.append(Sent(ids, spoil, self._in_flight))
            return spoil

    def end(self, settled: int) -> None:
        with self._lock:
            self._in_flight -= 1
            self.settled += settled


@contextmanager
def relay_to(node: str, spoil: Callable[[int, tuple[str, ...]], Spoil] = lambda _, __: THROUGH) -> Iterator[Relay]:
    relay = Relay("", spoil)
    with listening(_Handler, relay=relay, node=urlsplit(node).netloc) as port:
        relay.url = f"http://127.0.0.1:{port}"
        yield relay


class _Handler(Forwarding):
    relay: Relay

    def through(self, body: bytes) -> None:
        if "/_bulk" not in self.path:
            super().through(body)
            return
        operations = _operations(body)
        spoil = self.relay.take(tuple(one for one, _ in operations))
        settled, reply = 0, (spoil.status or 0, json.dumps({"error": {"type": "spoilt"}}).encode())
        try:
            if spoil.status is None and spoil.drop != "before":
                reply = self._ask_for(operations, spoil.reject)
                settled = len(operations) - len(spoil.reject.intersection(one for one, _ in operations))
        finally:
            # Before the response, after which the loader reads further documents, whose number is compared with this.
            self.relay.end(settled)
        if spoil.drop:
            self.close_connection = True
        else:
            self.reply(*reply)

    def _ask_for(self, operations: list[tuple[str, bytes]], reject: frozenset[str]) -> tuple[int, bytes]:
        passed = [lines for one, lines in operations if one not in reject]
        items: list[Any] = []
        if passed:
            status, answer = self.forwarded(b"".join(passed))
            if status != 200 or len(passed) == len(operations):
                return status, answer
            items = json.loads(answer)["items"]
        answered = iter(items)
        rejected = {"index": {"status": 429, "error": {"type": "rejected_execution_exception"}}}
        return 200, json.dumps(
            {"errors": True, "items": [rejected if one in reject else next(answered) for one, _ in operations]}
        ).encode()


def _operations(body: bytes) -> list[tuple[str, bytes]]:
    found = []
    lines = iter(body.splitlines(keepends=True))
    for action in lines:
        ((name, about),) = json.loads(action).items()
        found.append((about["_id"], action + (next(lines) if name == "index" else b"")))
    return found


@dataclass(frozen=True, slots=True)
class CategoryIndex:
    """An index of its own in a real OpenSearch: the node's URL, a client to it, the index, and where letters go."""

    url: str
    client: OpenSearch
    index: str
    letters: DeadLetters

    def load(self, url: str, documents: Iterator[object] | list[Any], pace: Pace = _PACE) -> Loaded:
        with closing(_client(url)) as client:
            return BulkLoader(client, self.letters, pace).load(self.index, documents)

    def versions(self) -> dict[str, int]:
        self.client.indices.refresh(index=self.index)
        body = {"query": {"match_all": {}}, "version": True, "size": 10_000}
        found = self.client.search(index=self.index, body=body)["hits"]["hits"]
        return {hit["_id"]: hit["_version"] for hit in found}

    def dead(self) -> list[dict[str, Any]]:
        if not self.letters.path.exists():
            return []
        letters = [json.loads(line) for line in self.letters.path.read_text(encoding="utf-8").splitlines()]
        return sorted(({**letter, "at": None} for letter in letters), key=lambda letter: str(letter["id"]))


def _client(*urls: str) -> OpenSearch:
    return OpenSearch(list(urls), max_retries=0, pool_maxsize=_REQUESTS)


def _create(client: OpenSearch, index: str, kind: str, **more: object) -> None:
    body = {"settings": {**settings(kind, shards=1, replicas=0), **more}, "mappings": mapping(kind)}
    client.indices.create(index=index, body=body, params={"wait_for_active_shards": "0" if more else "1"})


@pytest.fixture
def target(opensearch_url: str, tmp_path: Path) -> Iterator[CategoryIndex]:
    index = f"test-{secrets.token_hex(6)}"
    letters = DeadLetters(tmp_path / "private" / "letters.ndjson")
    with closing(_client(opensearch_url)) as client:
        _create(client, index, "categories")
        yield CategoryIndex(opensearch_url, client, index, letters)
        client.indices.delete(index=index, params={"ignore_unavailable": "true"})
    letters.close()


def _categories(count: int) -> list[CategoryDocument]:
    return [CategoryDocument(f"c{n}", f"r{n:06}", f"Category {n}", n, (), (), {}) for n in range(count)]


def _once(count: int) -> dict[str, int]:
    return {f"c{n}": 1 for n in range(count)}


def _through(sent: list[Sent]) -> list[str]:
    passed = [one for one in sent if one.spoil.status is None and one.spoil.drop != "before"]
    return sorted(id_ for one in passed for id_ in one.ids if id_ not in one.spoil.reject)


def test_requests_are_bounded_by_documents_and_by_bytes(target: CategoryIndex) -> None:
    by_bytes = Pace(chunk_documents=1_000, chunk_bytes=1_180, requests=1)
    with relay_to(target.url) as relay:
        assert target.load(relay.url, _categories(50)) == Loaded(50, 0)
        assert sorted(len(one.ids) for one in relay.sent) == [10, _CHUNK, _CHUNK]
        relay.sent.clear()
        assert target.load(relay.url, _categories(50), by_bytes) == Loaded(50, 0)
        assert {len(one.ids) for one in relay.sent[:-1]} == {9}  # of 119 to 128 bytes
    assert target.versions() == dict.fromkeys(_once(50), 2)


def test_what_the_engine_refuses_is_a_dead_letter_and_the_rest_is_written(target: CategoryIndex) -> None:
    documents = _categories(100)
    documents[7] = CategoryDocument("c7", _TOO_LONG, "Seven", 7, (), (), {})
    documents[55] = CategoryDocument("i" * 600, "r", "Too long an id: a whole request is refused", 55, (), (), {})
    assert target.load(target.url, documents) == Loaded(98, 2)
    assert target.versions() == {id_: 1 for id_ in _once(100) if id_ not in {"c7", "c55"}}
    assert [(one["id"], one["status"], one["reason"]) for one in target.dead()] == [
        ("c7", 400, "illegal_argument_exception"),
        ("i" * 600, 400, "action_request_validation_exception"),
    ]
    assert target.dead()[0] == {
        "at": None,
        "index": target.index,
        "id": "c7",
        "status": 400,
        "reason": "illegal_argument_exception",
        "document": json.loads(json.dumps(asdict(documents[7]))),
    }


def test_only_the_items_that_were_rejected_are_sent_again(target: CategoryIndex) -> None:
    unlucky = frozenset(f"c{n}" for n in range(0, 200, 3))
    seen: set[str] = set()

    def spoil(_: int, ids: tuple[str, ...]) -> Spoil:
        new = unlucky.intersection(ids) - seen
        seen.update(new)
        return Spoil(reject=new)

    with relay_to(target.url, spoil) as relay:
        assert target.load(relay.url, _categories(200)) == Loaded(200, 0)
    assert target.versions() == _once(200)
    assert sorted(id_ for one in relay.sent for id_ in one.ids) == sorted([*_once(200), *unlucky])
    assert target.dead() == []


@pytest.mark.parametrize("spoilt", [Spoil(429), Spoil(502), Spoil(503), Spoil(504), Spoil(drop="before")], ids=str)
def test_a_request_that_failed_as_a_whole_is_sent_again(target: CategoryIndex, spoilt: Spoil) -> None:
    with relay_to(target.url, lambda number, _: spoilt if number % 3 == 0 else THROUGH) as relay:
        assert target.load(relay.url, _categories(200)) == Loaded(200, 0)
    assert target.versions() == _once(200)
    assert _through(relay.sent) == sorted(_once(200))
    assert len(relay.sent) > 10


def test_a_request_whose_answer_was_lost_is_sent_again(target: CategoryIndex) -> None:
    with relay_to(target.url, lambda number, _: Spoil(drop="after") if number == 4 else THROUGH) as relay:
        assert target.load(relay.url, _categories(200)) == Loaded(200, 0)
    twice = set(relay.sent[4].ids)
    assert len(twice) == _CHUNK
    assert target.versions() == {id_: 2 if id_ in twice else 1 for id_ in _once(200)}


def _watched(relay: Relay, documents: list[CategoryDocument], ahead: list[int]) -> Iterator[CategoryDocument]:
    for number, document in enumerate(documents):
        ahead.append(number - relay.settled)
        yield document


def test_documents_are_read_and_requests_are_made_only_as_far_ahead_as_the_bounds_say(target: CategoryIndex) -> None:
    with relay_to(target.url, lambda number, _: Spoil(429) if 5 <= number < 25 else THROUGH) as relay:
        ahead: list[int] = []
        assert target.load(relay.url, _watched(relay, _categories(1_000), ahead)) == Loaded(1_000, 0)
    assert max(ahead) <= (_REQUESTS + 2) * _CHUNK
    assert max(one.in_flight for one in relay.sent) <= _REQUESTS
    assert target.versions() == _once(1_000)


@pytest.mark.rule("G1")
@pytest.mark.parametrize("is_created_again", [False, True])
def test_an_index_that_is_deleted_or_created_again_is_lost_immediately(
    target: CategoryIndex, *, is_created_again: bool
) -> None:
    def documents() -> Iterator[CategoryDocument]:
        for number, document in enumerate(_categories(1_000)):
            if number == 500:
                target.client.indices.delete(index=target.index)
                if is_created_again:
                    _create(target.client, target.index, "categories")
            yield document

    started = time.monotonic()
    with pytest.raises(IndexLostError, match="is gone"):
        target.load(target.url, documents())
    assert time.monotonic() - started < 5
    if not is_created_again:
        with pytest.raises(IndexLostError, match="is gone"):
            target.load(target.url, _categories(1))


def _make_red(target: CategoryIndex) -> None:
    target.client.indices.delete(index=target.index)
    _create(target.client, target.index, "categories", **{"routing.allocation.require._name": "nobody"})


def test_an_index_that_is_red_for_a_short_time_is_waited_for(target: CategoryIndex) -> None:
    _make_red(target)
    anywhere = {"index.routing.allocation.require._name": None}
    healing = threading.Timer(1.0, target.client.indices.put_settings, kwargs={"body": anywhere, "index": target.index})
    healing.start()
    assert target.load(target.url, _categories(100), Pace(give_up_after=60.0, lost_after=30.0)) == Loaded(100, 0)
    healing.join()
    assert target.versions() == _once(100)


@pytest.mark.parametrize(
    ("spoilt", "trouble"),
    [
        (Spoil(429), "429 spoilt"),
        (Spoil(503), "503 spoilt"),
        (Spoil(drop="before"), "nothing succeeded for 1 s; the last failure: no connection$"),
    ],
)
def test_an_engine_that_accepts_nothing_any_more_is_an_error_after_the_retry_limit(
    target: CategoryIndex, spoilt: Spoil, trouble: str
) -> None:
    with relay_to(target.url, lambda number, _: spoilt if number >= 5 else THROUGH) as relay:
        started = time.monotonic()
        with pytest.raises(SinkError, match=trouble) as raised:
            target.load(relay.url, _categories(1_000), _HASTY)
        assert 1 <= time.monotonic() - started < 5
        assert type(raised.value) is SinkError
        sent = len(relay.sent)
        time.sleep(0.5)
        assert len(relay.sent) == sent  # nothing is sent after the error was raised


@pytest.mark.rule("V1.silent")
def test_an_error_message_contains_nothing_of_a_document(target: CategoryIndex) -> None:
    target.client.indices.close(index=target.index)
    with pytest.raises(SinkError) as raised:
        target.load(target.url, [CategoryDocument("betraying", "betraying", "betraying", 1, (), (), {})])
    assert str(raised.value) == f"{target.index}: writing was given up: 400 index_closed_exception"
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)
    assert target.dead() == []


def test_documents_are_removed_and_a_missing_one_is_no_failure(target: CategoryIndex) -> None:
    with closing(_client(target.url)) as client:
        loader = BulkLoader(client, target.letters, _PACE)
        assert loader.load(target.index, _categories(60)) == Loaded(60, 0)
        assert loader.delete(target.index, [*(f"c{n}" for n in range(50)), "nobody"]) == Loaded(51, 0)
    assert set(target.versions()) == {f"c{n}" for n in range(50, 60)}


def test_a_failure_to_read_documents_is_passed_on_and_ends_the_load(target: CategoryIndex) -> None:
    def documents() -> Iterator[CategoryDocument]:
        yield from _categories(100)
        raise LookupError("the source is away")

    threads = threading.active_count()
    with pytest.raises(LookupError, match="the source is away"):
        target.load(target.url, documents())
    assert threading.active_count() == threads


def test_dead_letters_that_cannot_be_written_end_the_load(target: CategoryIndex, tmp_path: Path) -> None:
    (tmp_path / "private").write_text("a file where the directory should be", encoding="utf-8")
    with pytest.raises(SinkError, match="dead-letter file"):
        target.load(target.url, [CategoryDocument("c1", _TOO_LONG, "One", 1, (), (), {})])
