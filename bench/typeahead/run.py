"""One comparison at one size: all servers run on one core, and the load on another measures them alternately.

Every round measures all systems, so that a disturbance of the machine affects all of them. A system that fails is
reported with the reason and without figures; nothing is retried.
"""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from bench.typeahead.bare import BareAsgi
from bench.typeahead.inputs import Inputs
from bench.typeahead.load import LoadError, Targets
from bench.typeahead.priorities import prioritised
from bench.typeahead.probe import Caller, Sizes, probe
from bench.typeahead.procedure import Procedure
from bench.typeahead.process_usage import memory
from bench.typeahead.quality import judged
from bench.typeahead.results import Result, Round, Size, Unmeasured
from bench.typeahead.system import BuildStats, Role, RunningServer, System, on_core

_BUILT: Final = TypeAdapter(BuildStats)
# Exceptions of the code of a system when its engine fails.
_FAILURES: Final = (LoadError, OSError, RuntimeError, AssertionError, ValueError, KeyError)


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
