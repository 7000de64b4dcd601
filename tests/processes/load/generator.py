"""A process that makes load: `python -m tests.processes.load.generator` reads its plan and prints the result."""

import asyncio
import gc
import hashlib
import json
import re
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, Final

import uvloop

from tests.processes.load.plan import NUMBER, Plan, Question, encode_result, plan_from

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END: Final = b"\r\n\r\n"


class ConnectionCutError(Exception):
    """The connection ended before the answer was whole."""


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as it came; the head ends before the empty line."""

    status: int
    head: bytes
    body: bytes


class Wire(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Raw] | None = None
        self._came = bytearray()
        self.closed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        end = self._came.find(_END)
        if end < 0 or self._waiting is None:
            return
        head = bytes(self._came[:end])
        length = _LENGTH.search(head)
        whole = end + len(_END) + (int(length[1]) if length else 0)
        if len(self._came) < whole:
            return
        body = bytes(self._came[end + len(_END) : whole])
        del self._came[:whole]
        waiting, self._waiting = self._waiting, None
        if b"connection: close" in head.lower():
            self.close()
        if not waiting.done():
            waiting.set_result(Raw(int(head[9:12]), head, body))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionCutError(f"{type(exc).__name__}, {len(self._came)} bytes came"))

    def ask(self, request: bytes) -> asyncio.Future[Raw]:
        """Send a whole request; its answer, or ConnectionCutError."""
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        if self.closed:
            self._waiting.set_exception(ConnectionCutError("closed while no request was sent"))
        else:
            self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.close()


async def connected(port: int) -> Wire:
    _, wire = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
    return wire


_POLL_S: Final = 0.2
_ANSWER_BOUND_S: Final = 15.0
_GENERATION: Final = re.compile(rb"\r\nx-generation: ([^\r]+)")
_READY: Final = b"GET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


class Generator:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chance = Random(plan.seed)  # noqa: S311 - repeatable
        positions = range(len(plan.questions))
        weights = [question.weight for question in plan.questions]
        self._positions = self._chance.choices(positions, weights, k=10_007)
        self._turn = count()
        self._numbers = count(plan.seed * 1_000_000)
        self._ready = set() if plan.balanced else set(plan.ports)
        self.stop = asyncio.Event()
        self.rows: list[list[Any]] = []
        self.cut: list[str] = []
        self.unsent = 0

    async def run(self) -> str:
        """Until it is over; returns the account."""
        began = time.monotonic()
        polls = [asyncio.create_task(self._poll(port)) for port in self._plan.ports if self._plan.balanced]
        asyncio.get_running_loop().call_later(self._plan.seconds, self.stop.set)
        if self._plan.rate:
            await self._open_loop()
        else:
            await asyncio.gather(*(self._client(number) for number in range(self._plan.connections)))
        seconds = time.monotonic() - began
        for poll in polls:
            poll.cancel()
        return encode_result(self.rows, self.cut, self.unsent, seconds)

    async def _client(self, number: int) -> None:
        """Ask, wait for the answer, ask again; of several services another one each time."""
        wires: dict[int, Wire] = {}
        for turn in count(number):
            if self.stop.is_set():
                break
            ports = [port for port in self._plan.ports if port in self._ready]
            if not ports:
                await asyncio.sleep(0.02)
                continue
            port = ports[turn % len(ports)]
            wire = wires.get(port)
            if wire is None or wire.closed:
                try:
                    wire = wires[port] = await connected(port)
                except OSError as error:
                    self._not_connected(error)
                    await asyncio.sleep(0.02)
                    continue
            await self._asked(wire)
            if self._plan.pause:
                await asyncio.sleep(self._plan.pause * self._chance.uniform(0.5, 1.5))
        for wire in wires.values():
            wire.close()

    async def _open_loop(self) -> None:
        (port,) = self._plan.ports
        free = [await connected(port) for _ in range(self._plan.connections)]
        tasks: set[asyncio.Task[None]] = set()

        async def one(wire: Wire) -> None:
            try:
                if wire.closed:
                    wire = await connected(port)
                await self._asked(wire)
            except OSError as error:
                self._not_connected(error)
            free.append(wire)

        began, sent = time.monotonic(), 0
        while not self.stop.is_set():
            due = int((time.monotonic() - began) * self._plan.rate)
            for _ in range(due - sent):
                if not free:
                    self.unsent += 1
                    continue
                task = asyncio.create_task(one(free.pop()))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            sent = due
            await asyncio.sleep(0.002)
        await asyncio.gather(*tasks)

    def _not_connected(self, error: OSError) -> None:
        self.cut.append(f"{time.monotonic():.3f} not connected: {type(error).__name__}")

    async def _asked(self, wire: Wire) -> None:
        position = self._positions[next(self._turn) % len(self._positions)]
        question = self._plan.questions[position]
        request, number = question.raw, 0
        if question.numbered:
            number = next(self._numbers)
            request = request.replace(NUMBER, f"{number:08d}")
        began = time.monotonic()
        try:
            async with asyncio.timeout(_ANSWER_BOUND_S):
                raw = await wire.ask(request.encode())
        except (ConnectionCutError, TimeoutError) as error:
            wire.close()
            self.cut.append(f"{began:.3f} {question.name}: {type(error).__name__} {error}")
            return
        seconds = time.monotonic() - began
        self.rows.append([position, raw.status, *_content(question, raw), number, began, seconds])

    async def _poll(self, port: int) -> None:
        wire: Wire | None = None
        while True:
            is_ready = False
            with suppress(OSError, ConnectionCutError, TimeoutError):
                async with asyncio.timeout(_ANSWER_BOUND_S):
                    if wire is None or wire.closed:
                        wire = await connected(port)
                    is_ready = (await wire.ask(_READY)).status == 200
            (self._ready.add if is_ready else self._ready.discard)(port)
            await asyncio.sleep(_POLL_S)


def _content(question: Question, raw: Raw) -> tuple[str, bool, str, str]:
    """The problem's code, whether it says when to try again, a mark of what it says, and its generation."""
    retry = b"\r\nretry-after: " in raw.head
    content: Any = raw.body
    named = _GENERATION.search(raw.head)
    code, generation = "", named[1].decode() if named else ""
    if question.mcp and raw.body:
        message = json.loads(raw.body)
        if "error" in message:
            return (message["error"].get("data") or {}).get("code", str(message["error"]["code"])), retry, "", ""
        # Apart from its content, a result names the id of its request.
        result = message["result"]
        generation = result.get("_meta", {}).get("x-generation", "")
        content = json.dumps({name: part for name, part in result.items() if name != "_meta"}, sort_keys=True).encode()
        if result.get("isError"):
            code = json.loads(result["content"][0]["text"])["code"]
    elif raw.status >= 400 and raw.body:
        code = json.loads(raw.body)["code"]
    return code, retry, hashlib.sha256(content).hexdigest()[:16], generation


async def main() -> None:
    plan = plan_from(sys.stdin.readline())
    generator = Generator(plan)
    loop = asyncio.get_running_loop()

    async def until_input_ends() -> None:
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        await reader.read()
        generator.stop.set()

    watching = asyncio.create_task(until_input_ends())
    # A pause of the collector would look like one of the service.
    gc.disable()
    print(await generator.run())  # noqa: T201 - the account
    watching.cancel()


if __name__ == "__main__":
    uvloop.run(main())
