"""Suggest requests while changes are followed: `python -m bench.following --shops 1000000 --changes 50000`.

Builds invented shops, or takes the index that an earlier run left in the same folder, serves it, and renames shops by a
file of changes. First all changes wait when the follower starts, which gives the highest rate; then they are appended
at a share of that rate, and sampled names are looked for until `/suggest` shows them. Suggest requests are sent at an
even rate the whole time. A suggest request that fails, or a name that is not shown in time, ends with status 1.
"""

import argparse
import http.client
import json
import math
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle, islice
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final
from urllib.parse import quote

from rich.console import Console
from rich.table import Table

from bench.built_indices import BuiltIndex, Shops
from bench.commands import memory_mib, processor_seconds
from bench.typeahead.paced import percentile
from bench.typeahead.priorities import raise_priority
from tests.support.served import get, until
from tests.support.service_process import serving

_RATE: Final = 200.0
_SAMPLE_EVERY: Final = 500
_SHOWN_WITHIN_S: Final = 60.0
# The follower logs it after each refresh.
_BATCH: Final = re.compile(r"(\d+) changes applied, (\d+) older, (\d+) refused")
_SYLLABLES: Final = ("qua", "zor", "vex", "jum", "wib", "xyl", "fyo", "zig", "quo", "vya")


@dataclass(frozen=True, slots=True)
class Load:
    """Suggest requests of one phase: the times of all responses, ascending, from when each was due; those not 200."""

    took_ms: list[float]
    failed: int

    def row(self, phase: str) -> tuple[str, ...]:
        """A row of the table."""
        p50, p99 = (percentile(self.took_ms, share) for share in (0.5, 0.99))
        return phase, f"{len(self.took_ms):,}", str(self.failed), f"{p50:.2f}", f"{p99:.2f}", f"{self.took_ms[-1]:.1f}"


class SuggestLoad:
    """Sends suggest requests at an even rate over one connection until it is stopped, from a process of its own.

    In a thread of this process the requests would wait for whatever else this process does.
    """

    def __init__(self, port: int, texts: list[str]) -> None:
        processes = multiprocessing.get_context("spawn")
        self._results, theirs = processes.Pipe(duplex=False)
        self._stopped = processes.Event()
        self._process = processes.Process(target=_send, args=(port, texts, self._stopped, theirs), daemon=True)
        self._process.start()

    def stop(self) -> Load:
        """Stop, and return what was measured."""
        self._stopped.set()
        load: Load = self._results.recv()
        self._process.join()
        return load


def _send(port: int, texts: list[str], stopped: Event, results: Connection) -> None:
    with suppress(PermissionError):
        raise_priority()
    took: list[float] = []
    failed = 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    due = time.perf_counter()
    for text in cycle(texts):
        if stopped.is_set():
            break
        time.sleep(max(0.0, due - time.perf_counter()))
        connection.request("GET", f"/suggest?q={quote(text)}")
        response = connection.getresponse()
        response.read()
        took.append((time.perf_counter() - due) * 1000)
        failed += response.status != http.client.OK
        due += 1 / _RATE
    connection.close()
    results.send(Load(sorted(took), failed))


def new_name(number: int, pass_number: int) -> str:
    """A name that no other shop has, and none had in an earlier run."""
    return "".join(_SYLLABLES[int(digit)] for digit in f"{pass_number % 100_000}{number:06d}").title()


def change(record: dict[str, Any], number: int, pass_number: int) -> str:
    """The change that renames an invented shop and makes it public, as a line."""
    renamed = {**record, "name": new_name(number, pass_number), "visibility": "public"}
    version = pass_number * 10_000_000 + number + 1
    return f"{json.dumps({'op': 'upsert', 'type': 'shops', 'record': renamed, 'version': version})}\n"


def shown(port: int, name: str) -> bool:
    """Whether `/suggest` shows the name."""
    answer = get(f"http://127.0.0.1:{port}", f"/suggest?q={quote(name)}")
    return any(found["name"] == name for found in answer.json.get("shops", ()))


@contextmanager
def follower(built_index: BuiltIndex, state: Path, changes: Path, *options: str) -> Iterator["Follower"]:
    """The operator's command in a process of its own; it is ended by SIGTERM."""
    command = [sys.executable, "-m", "shop_directory", "index", "follow", "--changes", str(changes), *options]
    environment = {**os.environ, **built_index.environment, "SHOP_DIRECTORY_STATE_DIR": str(state)}
    with subprocess.Popen(  # noqa: S603 - our own command
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        running = Follower(process)
        running.start()
        try:
            yield running
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(timeout=120)
            running.join()


class Follower(Thread):
    """A running follower, whose log it passes on.

    `refreshed` has the number of changes up to each refresh, and its time (`time.monotonic`), both ascending.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self.process = process
        self.refreshed: list[tuple[int, float]] = []

    def run(self) -> None:
        """Read the log to its end."""
        count = 0
        for line in self.process.stderr or ():
            if logged := _BATCH.search(line):
                count += sum(map(int, logged.groups()))
                self.refreshed.append((count, time.monotonic()))
            else:
                sys.stderr.write(line)

    def refresh_of(self, number: int) -> float:
        """The time of the refresh that held a change, the first of which is number 0."""
        return self.refreshed[bisect_right(self.refreshed, (number, math.inf))][1]


def measure(
    built_index: BuiltIndex, state: Path, shops: list[dict[str, Any]], share: float, scratch: Path
) -> tuple[Table, str]:
    """Follow the changes of all these shops twice: all waiting, then appended at a share of the rate reached."""
    table = Table("phase", "requests", "failed", "p50 ms", "p99 ms", "max ms")
    texts = [record["name"][:length].lower() for record in shops[:2000] for length in (2, 3, 5)]
    first = int(time.time())  # of the two passes, so that later runs have later versions
    with serving(scratch / "service", built_index.service) as service:
        port = service.port
        load = SuggestLoad(port, texts)
        time.sleep(15)
        table.add_row(*load.stop().row("nothing followed"))
        # Every run appends to one file: a follower that finds another one misses changes.
        changes = state.with_name(f"{state.name}-changes.ndjson")
        with changes.open("a", encoding="utf-8") as file:
            file.writelines(change(record, number, first) for number, record in enumerate(shops))
        load, began = SuggestLoad(port, texts), time.monotonic()
        with follower(built_index, state, changes, "--once") as running:
            code = running.process.wait()
        seconds = time.monotonic() - began
        table.add_row(*load.stop().row("all changes waiting"))
        if code:
            raise RuntimeError(f"the follower ended with {code}")
        until(lambda: shown(port, new_name(len(shops) - 1, first)), bool, _SHOWN_WITHIN_S)
        rate = len(shops) / seconds
        load = SuggestLoad(port, texts)
        with follower(built_index, state, changes) as running:
            shown_at, memory, processor = append(running.process.pid, port, shops, first + 1, rate * share, changes)
        table.add_row(*load.stop().row(f"appended, {rate * share:,.0f} a second"))
    since_written = sorted(shown - written for _, written, shown in shown_at)
    since_refresh = sorted(max(0.0, shown - running.refresh_of(number)) for number, _, shown in shown_at)
    summary = (
        f"{len(shops):,} changes in {seconds:.1f} s: {rate:,.0f} a second. Appended: each of {len(shown_at)} sampled "
        f"changes was shown {_median_and_longest(since_refresh)} after the refresh that held it, and "
        f"{_median_and_longest(since_written)} after it was written. "
        f"The follower had at most {memory:,.0f} MiB of its own, and used {processor:.0f} s of processor time."
    )
    return table, summary


def _median_and_longest(seconds: list[float]) -> str:
    return f"{percentile(seconds, 0.5):.1f} s (median) and {seconds[-1]:.1f} s (longest)"


def append(  # noqa: PLR0917 - of one measurement
    pid: int, port: int, shops: list[dict[str, Any]], pass_number: int, rate: float, changes: Path
) -> tuple[list[tuple[int, float, float]], float, float]:
    """Append changes at a rate, and look for sampled ones.

    Returns for each sampled change its number, and the times at which it was written and shown (`time.monotonic`); the
    most memory of the follower, in MiB; its seconds of processor time.
    """
    shown_at: list[tuple[int, float, float]] = []
    sampled: list[tuple[int, float]] = []
    memory = 0.0
    written = 0
    with changes.open("a", encoding="utf-8", buffering=1) as file:
        began = time.monotonic()
        while written < len(shops) or sampled:
            due = min(len(shops), int((time.monotonic() - began) * rate))
            for number in range(written, due):
                file.write(change(shops[number], number, pass_number))
                if number % _SAMPLE_EVERY == 0:
                    sampled.append((number, time.monotonic()))
            written = due
            while sampled and shown(port, new_name(sampled[0][0], pass_number)):
                shown_at.append((*sampled.pop(0), time.monotonic()))
            if sampled and time.monotonic() > sampled[0][1] + _SHOWN_WITHIN_S:
                raise TimeoutError(f"{new_name(sampled[0][0], pass_number)} is not shown after {_SHOWN_WITHIN_S:g} s")
            memory = max(memory, memory_mib(pid)[0])
            time.sleep(0.05)
    return shown_at, memory, processor_seconds(pid)


def main() -> int:
    """Build, measure and print; returns the exit status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, default=1_000_000, help="how many invented shops")
    options.add_argument("--changes", type=int, default=50_000, help="how many of them are renamed, twice")
    options.add_argument("--share", type=float, default=0.8, help="of the highest rate, when changes are appended")
    options.add_argument("--engine", choices=("embedded", "opensearch"), default="embedded")
    options.add_argument("--directory", type=Path, help="where an earlier run left its index; it is changed")
    options.add_argument("--heap", default="3g", help="the heap of the OpenSearch node")
    given = options.parse_args()
    with TemporaryDirectory() as scratch:
        shops = Shops(given.directory or Path(scratch), given.shops)
        step = max(1, given.shops // given.changes)
        with shops.catalogue().open(encoding="utf-8") as lines:
            renamed = [json.loads(line) for line in islice(lines, 0, None, step)]
        with shops.embedded() if given.engine == "embedded" else shops.opensearch(given.heap) as built_index:
            try:
                state = shops.state(given.engine)
                table, summary = measure(built_index, state, renamed[: given.changes], given.share, Path(scratch))
            except (AssertionError, TimeoutError, RuntimeError) as error:
                Console().print(f"{given.engine}: {error}")
                return 1
    Console().print(f"{given.engine}, {given.shops:,} shops", table, summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
