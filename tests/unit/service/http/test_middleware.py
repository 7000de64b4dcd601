"""The bounds around an endpoint, and the dispatch of a call whose generation is removed meanwhile."""

import asyncio
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
from service.http.gate import BoundedEndpoint, Gate
from service.http.messages import BODY, is_json
from service.http.middleware import HttpMiddleware
from service.limits.memory import MemoryLimiter
from service.limits.policy import QuotaPolicy
from service.reports.sqlite import SqliteReports
from service.runtime.caller import Caller, Channel
from service.tools.registry import REGISTRY
from shop_directory.runtime.request_context import new_request_id
from shop_directory.search.failures import GenerationGone
from tests.support.reference.backend import ReferenceBackend
from tests.support.worlds import reference_world

SENT: Final[Message] = {"type": "http.request", "body": b"{}", "more_body": False}


class HandCaller:
    """One request by hand: sends a given body, and reads when the test says so."""

    def __init__(self) -> None:
        self.scope: Scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        self.sending: asyncio.Queue[Message] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.received: list[Message] = []

    async def receive(self) -> Message:
        return await self.sending.get()

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.received.append(message)


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
