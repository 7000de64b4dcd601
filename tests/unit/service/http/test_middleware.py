"""The bounds around an endpoint, and the dispatch of a call whose generation is removed meanwhile."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from starlette.types import Message, Receive, Scope, Send

from index_mappings.documents import Category
from service.auth.sqlite import SqliteTokenStore
from service.auth.verifier import TokenVerifier
from service.calls.admission import Admission
from service.calls.dispatch import Dispatcher
from service.calls.live_data import LiveData
from service.errors import MAX_BODY_BYTES, BodyTooLargeError
from service.http.messages import BODY, is_json, json_answer, request_context_of
from service.http.middleware import BoundedEndpoint, Gate, HttpMiddleware
from service.limits.memory import MemoryLimiter
from service.limits.policy import QuotaPolicy
from service.reports.sqlite import SqliteReports
from service.runtime.caller import Caller, Channel
from service.runtime.request_context import new_request_id
from service.runtime.telemetry import Metrics
from service.search.failures import GenerationGone
from service.tools.registry import REGISTRY
from tests.support.reference.backend import ReferenceBackend
from tests.support.worlds import reference_world

SENT: Final[Message] = {"type": "http.request", "body": b"{}", "more_body": False}


class HandCaller:
    """One request by hand: sends a given body, and reads when the test says so."""

    def __init__(self, method: str = "POST", headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.scope: Scope = {"type": "http", "method": method, "path": "/", "headers": list(headers)}
        self.sending: asyncio.Queue[Message] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.received: list[Message] = []

    async def receive(self) -> Message:
        return await self.sending.get()

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.received.append(message)


class Counted(Metrics):
    def __init__(self) -> None:
        self.changes: list[int] = []

    def in_flight(self, change: int) -> None:
        self.changes.append(change)


async def answering(scope: Scope, receive: Receive, send: Send) -> None:
    body = scope[BODY]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0)


async def test_a_caller_who_reads_slowly_takes_no_slot() -> None:
    gate = Gate(1)
    gated = HttpMiddleware(BoundedEndpoint(answering, gate, 1.0))
    slow, quick = HandCaller(), HandCaller()
    quick.reads.set()
    for caller in (slow, quick):
        caller.sending.put_nowait(SENT)
    slow_call = asyncio.create_task(gated(slow.scope, slow.receive, slow.send))
    await until(slow.sending.empty)
    await until(lambda: gate.in_flight == 0)
    await gated(quick.scope, quick.receive, quick.send)
    assert [message.get("status") for message in quick.received] == [200, None]
    slow.reads.set()
    await slow_call
    assert [message.get("status") for message in slow.received] == [200, None]


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    """An endpoint that breaks before it answers, or as its answer says, behind that."""
    if scope["path"] == "/late":
        await answering(scope, receive, send)
    raise KeyError


@pytest.mark.parametrize("path", ["/", "/late"])
async def test_a_slot_comes_back_once_whatever_became_of_the_work(path: str) -> None:
    gate = Gate(1)
    caller = HandCaller()
    caller.scope["path"] = path
    caller.reads.set()
    caller.sending.put_nowait(SENT)
    with pytest.raises(KeyError):
        await BoundedEndpoint(failing, gate, 1.0)(caller.scope, caller.receive, caller.send)
    assert (gate.in_flight, len(caller.received)) == (0, 2 if path == "/late" else 0)


async def test_a_request_beyond_the_bound_is_refused_before_its_body_is_read() -> None:
    metrics = Counted()
    gate = Gate(1, metrics)
    caller = HandCaller()
    caller.reads.set()
    gate.enter()
    await BoundedEndpoint(answering, gate, 1.0)(caller.scope, caller.receive, caller.send)
    gate.leave()
    start, body = caller.received
    assert (start["status"], json.loads(body["body"])["code"]) == (503, "overloaded")
    assert (b"retry-after", b"1") in start["headers"]
    assert (request_context_of(caller.scope).outcome, metrics.changes) == ("overloaded", [1, -1])


@pytest.mark.rule("E6")
@pytest.mark.parametrize("pieces", [[b"x" * (MAX_BODY_BYTES + 1)], [b"x" * 60_000, b"x" * 60_000]])
async def test_of_an_endless_body_only_a_bounded_part_is_read_and_the_endpoint_refuses_it(pieces: list[bytes]) -> None:
    got: list[object] = []

    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        got.append(type(scope[BODY]))

    caller = HandCaller()
    for piece in (*pieces, b"not read"):
        caller.sending.put_nowait({"type": "http.request", "body": piece, "more_body": True})
    await BoundedEndpoint(taking, Gate(1), 1.0)(caller.scope, caller.receive, caller.send)
    assert (got, caller.sending.qsize()) == ([BodyTooLargeError], 1)


async def test_work_ends_when_its_caller_has_left_and_its_slot_is_free() -> None:
    gate = Gate(1)
    ended: list[str] = []

    async def working(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    caller = HandCaller("GET")
    call = asyncio.create_task(BoundedEndpoint(working, gate, 60.0)(caller.scope, caller.receive, caller.send))
    await until(lambda: gate.in_flight == 1)
    request_context_of(caller.scope).caller_left()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (ended, gate.in_flight) == (["ended"], 0)


@pytest.mark.rule("I5")
def test_answers_are_compact_utf_8() -> None:
    assert (
        json_answer({"name": "Zoë", "none": None, "score": 8.5}).body
        == '{"name":"Zoë","none":null,"score":8.5}'.encode()
    )


@pytest.mark.rule("E6")
@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", True),
        ("application/json;charset=utf-8", True),
        ("APPLICATION/JSON ; x=y", True),
        ("application/jsonx", False),
        ("text/json", False),
        ("", False),
        (None, False),
    ],
)
def test_json_is_declared_by_its_media_type(content_type: str | None, *, expected: bool) -> None:
    assert is_json(content_type) is expected


class Replaced(ReferenceBackend):
    """A world whose generation is gone a number of times, each time until it is asked for again."""

    def __init__(self, world: ReferenceBackend, times: int) -> None:
        super().__init__(world.stamp, {})
        self._world = world
        self._times = times
        self.refreshed = 0

    async def categories(self) -> tuple[Category, ...]:
        self._times -= 1
        raise GenerationGone("gone")

    async def refresh(self) -> ReferenceBackend:
        self.refreshed += 1
        if self._times > 0:
            raise GenerationGone("gone again")
        return self._world


@pytest.mark.rule("C2.one_generation", "E3")
@pytest.mark.parametrize(("times", "code"), [(1, None), (2, "backend_unavailable")])
async def test_a_generation_that_is_gone_is_asked_for_again_once_and_not_twice(
    tmp_path: Path, times: int, code: str | None
) -> None:
    backend = Replaced(reference_world(tmp_path), times)
    admission = Admission(TokenVerifier(SqliteTokenStore(tmp_path / "tokens")), MemoryLimiter(), QuotaPolicy())
    reports = SqliteReports(tmp_path / "reports")
    dispatcher = Dispatcher(REGISTRY, LiveData(backend, 5.0), admission, reports, timeout=5.0)
    outcome = await dispatcher.call("list_categories", {}, Caller(Channel.REST, new_request_id()))
    assert (outcome.document.get("code"), backend.refreshed) == (code, 1)
