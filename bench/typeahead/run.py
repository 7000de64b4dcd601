"""One comparison at one size: all servers run on one core, and the load on another measures them alternately.

Every round measures all systems, so that a disturbance of the machine affects all of them. A system that fails is
reported with the reason and without figures; nothing is retried.
"""

import http.client
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from bench.typeahead.bare import BareAsgi
from bench.typeahead.inputs import Inputs
from bench.typeahead.load import Load, LoadError, Targets
from bench.typeahead.priorities import may_raise_priority, prioritised
from bench.typeahead.quality import judged
from bench.typeahead.results import Result, Round, Size, Unmeasured
from bench.typeahead.system import BuildStats, Role, RunningServer, System, memory, on_core

_BUILT: Final = TypeAdapter(BuildStats)
# Exceptions of the code of a system when its engine fails.
_FAILURES: Final = (LoadError, OSError, RuntimeError, AssertionError, ValueError, KeyError)
_PATIENCE_S: Final = 30.0
_SAMPLE: Final = 400


@dataclass(frozen=True, slots=True)
class Procedure:
    """The procedure that measures all systems; the load runs on another core than the servers.

    `warm_up` is the minimum seconds of load before the first round, extended while a system gets faster. Systems that
    run `apart`, one after the other, take less memory, and their rounds do not alternate. `say` takes each line of
    progress.
    """

    server_core: int
    load: Load
    rounds: int
    warm_up: float
    quality: bool
    apart: bool
    say: Callable[[str], None]


def two_cores() -> tuple[int, int]:
    """The core of the servers and that of the load."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise LoadError("two processor cores are needed: one for the server, one for the load")
    return cores[0], cores[1]


def described_settings(procedure: Procedure, requests: int, heap: str) -> dict[str, str]:
    """The settings of the procedure for the report."""
    load = {name: str(value) for name, value in asdict(procedure.load).items() if name != "core"}
    servers = "one after the other" if procedure.apart else "all together"
    return {
        **load,
        "rounds": str(procedure.rounds),
        "requests in the workload": str(requests),
        "OpenSearch heap": heap,
        "servers": servers,
        "priorities": "the load, then who is asked, then the others" if may_raise_priority() else "none",
    }


@dataclass(frozen=True, slots=True)
class Sizes:
    """The mean sizes of answers in bytes, with and without the head."""

    whole: float
    body: float


class Caller:
    """One connection."""

    def __init__(self, port: int) -> None:
        """Nothing is sent yet."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)

    def ask(self, target: str) -> tuple[bytes, int]:
        """The body of an answer, and the size of it with its head."""
        self._connection.request("GET", target)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise LoadError(f"{target} was answered {answer.status}: {body[:300]!r}")
        head = 17 + len(answer.reason) + sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
        return body, head + len(body)

    def shops(self, system: System, query: str, country: str | None, limit: int) -> list[str]:
        """The ids of the shops that a system finds, best first; arguments as of `System.path`."""
        body, _ = self.ask(system.path(query, country, limit))
        return system.ids(body)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def probe(system: System, port: int, targets: Sequence[str]) -> Sizes:
    """Ask for some of the targets, taken evenly, and read the answers."""
    whole: list[int] = []
    bodies: list[int] = []
    with closing(Caller(port)) as caller:
        for target in targets[:: max(1, len(targets) // _SAMPLE)]:
            body, size = caller.ask(target)
            try:
                system.ids(body)
            except (ValueError, KeyError, TypeError) as unread:
                raise LoadError(f"{target} was answered by no list of shops: {body[:300]!r}") from unread
            whole.append(size)
            bodies.append(len(body))
    return Sizes(sum(whole) / len(whole), sum(bodies) / len(bodies))


@dataclass(slots=True)
class _Running:
    """A running system and its measurements."""

    system: System
    built: BuildStats
    served: RunningServer
    targets: Targets
    sizes: Sizes
    rounds: list[Round] = field(default_factory=list)


class Comparison:
    """Measures systems with one corpus and one list of requests."""

    def __init__(self, procedure: Procedure, folder: Path, scratch: Path, inputs: Inputs) -> None:
        """Configure the comparison.

        `folder` stores the indices for later runs, `scratch` is for files of this run.
        """
        self._procedure = procedure
        self._folder = folder
        self._scratch = scratch
        self._inputs = inputs
        self._absent: list[Unmeasured] = []
        self._failed: list[Unmeasured] = []

    def measure(self, systems: Sequence[System], shops: int, *, bare: bool) -> Size:
        """Build, serve and measure all systems; the bare server last, when the size of our responses is known."""
        groups = [[one] for one in systems] if self._procedure.apart else [list(systems)]
        results: list[Result] = []
        for group in groups:
            results += self._together(group, bare=bare and not self._procedure.apart)
        if bare and self._procedure.apart:
            results += self._together([_bare([one.body_bytes for one in results if one.role is Role.OURS])], bare=False)
        with self._inputs.corpus.open("rb") as file:
            lines = sum(1 for _ in file)
        mixed = self._inputs.dev_data is not None
        return Size(shops, lines, mixed, tuple(results), tuple(self._absent), tuple(self._failed))

    def _together(self, systems: Sequence[System], *, bare: bool) -> list[Result]:
        """Measure systems that run at the same time."""
        with ExitStack() as stack:
            running = [one for one in (self._started(stack, each) for each in systems) if one is not None]
            if bare:
                server = _bare([one.sizes.body for one in running if one.system.role is Role.OURS])
                running += filter(None, [self._started(stack, server)])
            for number in range(self._procedure.rounds):
                every = [one.served for one in running]
                running = [one for one in running if self._round(one, number, every)]
            return [result for result in map(self._result, running) if result is not None]

    def _started(self, stack: ExitStack, system: System) -> _Running | None:
        """Start, probe and warm up a system; None where it is missing or fails, which is recorded."""
        if reason := system.missing():
            self._procedure.say(f"ABSENT {system.name}: {reason}")
            self._absent.append(Unmeasured(system.name, reason))
            return None
        try:
            built = self._built(system)
            with on_core(self._procedure.server_core):
                served = stack.enter_context(system.serving(self._home(system)))
            asked = [system.path(typed.q, typed.country) for typed in self._inputs.typed]
            distinct = list(dict.fromkeys(asked))
            sizes = probe(system, served.port, asked)
            targets = self._written(f"{system.name}.targets", asked, sizes)
            once = self._written(f"{system.name}.distinct", distinct, probe(system, served.port, distinct))
            self._procedure.say(f"{system.name}: {sizes.body:.0f} bytes an answer; warming up")
            self._procedure.load.warm_up(served, once, self._procedure.warm_up, every=system.caches_responses)
        except _FAILURES as failure:
            self._record_failure(system, failure)
            return None
        return _Running(system, built, served, targets, sizes)

    def _round(self, entry: _Running, number: int, every: Sequence[RunningServer]) -> bool:
        """Measure one round of one system; returns whether it succeeded."""
        load, served, targets = self._procedure.load, entry.served, entry.targets
        start = number * targets.count // self._procedure.rounds
        try:
            with prioritised(served, every):
                counted, cpu_us, server_cpu_us = load.saturated(served, targets, start)
                single = load.single(served, targets, start)
                rate = counted.per_second / 2
                even = load.paced(served, targets, start, rate, "even")
                poisson = load.paced(served, targets, start, rate, "poisson")
        except _FAILURES as failure:
            self._record_failure(entry.system, failure)
            return False
        entry.rounds.append(
            Round(counted.per_second, cpu_us, server_cpu_us, single.p50_us, single.p99_us, even, poisson)
        )
        slack = "" if even.on_rate and poisson.on_rate else "; THE MACHINE WAS BUSY, half load was not reached"
        self._procedure.say(
            f"{entry.system.name}, round {number + 1}: {counted.per_second:,.0f} a second, {cpu_us:.0f} us of "
            f"processor time; one caller {single.p50_us:.0f}/{single.p99_us:.0f} us; half load even "
            f"{even.p50_us:.0f}/{even.p99_us:.0f}, by chance {poisson.p50_us:.0f}/{poisson.p99_us:.0f} us (p50/p99)"
            f"{slack}"
        )
        return True

    def _result(self, entry: _Running) -> Result | None:
        system, dev_data = entry.system, self._inputs.dev_data
        quality = None
        try:
            held = memory(entry.served)
            if self._procedure.quality and dev_data is not None and system.role is not Role.BARE:
                self._procedure.say(f"{system.name}: quality")
                with closing(Caller(entry.served.port)) as caller:
                    quality = judged(partial(caller.shops, system), dev_data)
            version = system.version()
        except _FAILURES as failure:
            self._record_failure(system, failure)
            return None
        return Result(
            system.name,
            system.role,
            system.about,
            version,
            entry.built,
            entry.sizes.body,
            tuple(entry.rounds),
            held,
            quality,
        )

    def _built(self, system: System) -> BuildStats:
        """The cost of the build, read from the file alongside the index where an earlier run has built it."""
        home = self._home(system)
        stored = home.with_suffix(".json")
        if not stored.exists():
            self._procedure.say(f"{system.name}: building")
            shutil.rmtree(home, ignore_errors=True)  # of a run that was ended while it built
            home.mkdir(parents=True)
            built = system.build(self._inputs.corpus, home)
            stored.write_bytes(_BUILT.dump_json(built))
        return _BUILT.validate_json(stored.read_bytes())

    def _home(self, system: System) -> Path:
        return self._folder / (system.index or system.name)

    def _written(self, name: str, targets: Iterable[str], sizes: Sizes) -> Targets:
        lines = list(targets)
        path = self._scratch / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
        return Targets(path, len(lines), sizes.whole)

    def _record_failure(self, system: System, failure: BaseException) -> None:
        reason = f"{type(failure).__name__}: {failure}"
        self._procedure.say(f"FAILED {system.name}: {reason}")
        self._failed.append(Unmeasured(system.name, reason[:500]))


def _bare(bodies: Sequence[float]) -> BareAsgi:
    """The bare server with response bodies of the mean size of ours."""
    return BareAsgi(round(sum(bodies) / len(bodies))) if bodies else BareAsgi()
