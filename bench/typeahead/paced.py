"""A load of a given rate over keep-alive connections: `python -m bench.typeahead.paced --port 8080 --rate 500 ...`.

Without a rate, one caller sends a request as soon as it has the response. With a rate, the time of a request runs from
its due time, also while every connection is busy, so that a stalled server cannot hide delayed requests (coordinated
omission). Between requests the process sleeps, with a real-time priority where it has the permission (Linux, root or
CAP_SYS_NICE): a busy loop would push other work of a machine of two cores to the core of the server.
"""

import argparse
import ctypes
import gc
import json
import random
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from bench.typeahead.priorities import raise_priority

_SUCCESS: Final = b"HTTP/1.1 200"
_END_OF_HEAD: Final = b"\r\n\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
_LENGTH: Final = b"content-length:"
_PATIENCE_S: Final = 10.0
_READ: Final = 262_144
_SEED: Final = 20_261_121
# Of prctl(2): how late the system may wake this process, in nanoseconds; usually 50,000.
_SET_TIMER_SLACK: Final = 29
_SLACK_NS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Result:
    """The result, printed as JSON: requests a second as of `Paced`, and the number of responses without success."""

    asked: float
    achieved: float
    refused: int
    p50_us: float
    p99_us: float


def due_times(rate: float, arrivals: str) -> Iterator[float]:
    """Endless due times in seconds from the start, so many a second: `even`, or `poisson` with a fixed seed."""
    chance = random.Random(_SEED)
    due = 0.0
    while True:
        yield due
        due += 1 / rate if arrivals == "even" else chance.expovariate(rate)


def whole(answer: bytes) -> bool:
    """Whether a response is complete."""
    head, ended, body = answer.partition(_END_OF_HEAD)
    if not ended:
        return False
    lowered = head.lower()
    at = lowered.find(_LENGTH)
    if at < 0:
        return body.endswith(_LAST_CHUNK)
    return len(body) >= int(lowered[at + len(_LENGTH) :].split(b"\r\n", 1)[0])


def percentile(ascending: Sequence[float], share: float) -> float:
    """The value that this share of all values does not exceed."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


class Pacer:
    """The connections to one server and their pending requests."""

    def __init__(self, port: int, requests: Sequence[bytes], connections: int) -> None:
        """Connect."""
        self._requests = requests
        self._next = 0
        self._sockets: dict[int, socket.socket] = {}
        for _ in range(connections):
            one = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets[one.fileno()] = one
        self._free = deque(self._sockets.values())
        self._due: dict[int, float] = {}
        self._read: dict[int, bytes] = {}
        self._took: list[float] = []
        self._refused = 0

    def run(self, schedule: Sequence[float]) -> Result:
        """Send requests at these times, in seconds from now."""
        start = time.perf_counter()
        sent, count = 0, len(schedule)
        # The timeout of epoll has a resolution of a millisecond only.
        sockets = list(self._sockets)
        while len(self._took) < count:
            now = time.perf_counter() - start
            while sent < count and self._free and schedule[sent] <= now:
                self._send(schedule[sent])
                sent += 1
            # Until the next request is due, if a connection is free for it.
            due = schedule[sent] if sent < count and self._free else now + _PATIENCE_S
            wait = max(0.0, due - (time.perf_counter() - start))
            for number in select.select(sockets, (), (), wait)[0]:
                self._receive(number, start)
            if now > schedule[-1] + _PATIENCE_S:
                raise TimeoutError(f"{count - len(self._took)} of {count} answers did not come")
        seconds = time.perf_counter() - start
        took = sorted(self._took)
        p50, p99 = (percentile(took, share) * 1e6 for share in (0.5, 0.99))
        return Result(count / schedule[-1], count / seconds, self._refused, p50, p99)

    def close(self) -> None:
        """Close the connections."""
        for one in self._sockets.values():
            one.close()

    def _send(self, due: float) -> None:
        one = self._free.popleft()
        one.sendall(self._requests[self._next])
        self._next = (self._next + 1) % len(self._requests)
        self._due[one.fileno()] = due
        self._read[one.fileno()] = b""

    def _receive(self, number: int, start: float) -> None:
        came = self._sockets[number].recv(_READ)
        if not came:
            raise ConnectionError("the server hung up")
        answer = self._read[number] + came
        if not whole(answer):
            self._read[number] = answer
            return
        self._took.append(time.perf_counter() - start - self._due[number])
        self._refused += not answer.startswith(_SUCCESS)
        self._free.append(self._sockets[number])


def sequential(port: int, requests: Sequence[bytes], seconds: float) -> Result:
    """One caller that sends a request as soon as it has the response; no times are corrected."""
    took: list[float] = []
    refused = 0
    with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        now = time.perf_counter()
        end = now + seconds
        while now < end:
            began = now
            one.sendall(requests[len(took) % len(requests)])
            answer = one.recv(_READ)
            while not whole(answer):
                came = one.recv(_READ)
                if not came:
                    raise ConnectionError("the server hung up")
                answer += came
            now = time.perf_counter()
            took.append(now - began)
            refused += not answer.startswith(_SUCCESS)
    rate = len(took) / sum(took)
    took.sort()
    return Result(rate, rate, refused, *(percentile(took, share) * 1e6 for share in (0.5, 0.99)))


def main() -> None:
    """Send the load and print the result."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--targets", type=Path, required=True, help="a file of targets, one a line")
    options.add_argument("--start", type=int, default=0, help="after how many of them it begins")
    options.add_argument("--rate", type=float, help="requests a second; one caller without")
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--connections", type=int, default=16)
    options.add_argument("--arrivals", choices=("even", "poisson"), default="even")
    given = options.parse_args()
    targets = given.targets.read_text("ascii").splitlines()
    start = given.start % len(targets)
    ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, _SLACK_NS, 0, 0, 0)
    with suppress(PermissionError):
        raise_priority()
    asked = [f"GET {line} HTTP/1.1\r\nHost: 127.0.0.1:{given.port}\r\n\r\n".encode() for line in targets]
    if given.rate is None:
        gc.disable()
        json.dump(asdict(sequential(given.port, asked[start:] + asked[:start], given.seconds)), sys.stdout)
        return
    schedule = list(islice(due_times(given.rate, given.arrivals), max(2, int(given.rate * given.seconds))))
    pacer = Pacer(given.port, asked[start:] + asked[:start], given.connections)
    gc.disable()
    try:
        json.dump(asdict(pacer.run(schedule)), sys.stdout)
    finally:
        pacer.close()


if __name__ == "__main__":
    main()
