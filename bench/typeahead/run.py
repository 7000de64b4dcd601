"""One comparison at one size: all servers up on one core, asked in turns from the other, round after round.

Rounds take turns between contestants, so that what disturbs the machine for a while hits all alike. Who fails is named
with the reason and has no figures; nothing is tried again until it fits.
"""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from bench.typeahead.bare import BareAsgi
from bench.typeahead.contestant import Built, Contestant, Role, Served, on_core
from bench.typeahead.course import Course
from bench.typeahead.load import LoadError, Targets
from bench.typeahead.material import Material
from bench.typeahead.probe import Caller, Sizes, probe
from bench.typeahead.quality import judged
from bench.typeahead.results import Left, Result, Round, Size
from bench.typeahead.turns import its_turn
from bench.typeahead.vitals import memory

_BUILT: Final = TypeAdapter(Built)
# What a contestant's own code may raise where its engine fails; its name and the reason go into the report.
_FAILURES: Final = (LoadError, OSError, RuntimeError, AssertionError, ValueError, KeyError)


@dataclass(slots=True)
class _Entrant:
    """A contestant that runs."""

    contestant: Contestant
    built: Built
    served: Served
    targets: Targets
    sizes: Sizes
    rounds: list[Round] = field(default_factory=list)


class Comparison:
    """One corpus, one list of requests, and who answers them."""

    def __init__(self, course: Course, folder: Path, scratch: Path, material: Material) -> None:
        """Nothing runs yet.

        Args:
            course: how they are measured.
            folder: where indices are kept.
            scratch: for what this run alone needs.
            material: what is asked of what.
        """
        self._course = course
        self._folder = folder
        self._scratch = scratch
        self._material = material
        self._absent: list[Left] = []
        self._failed: list[Left] = []

    def measure(self, contestants: Sequence[Contestant], shops: int, *, bare: bool) -> Size:
        """Build, serve and measure all of them.

        Args:
            contestants: but the bare answer.
            shops: how many invented ones there are.
            bare: whether the bare answer takes part; it comes last, when the size of our answers is known.
        """
        groups = [[one] for one in contestants] if self._course.apart else [list(contestants)]
        results: list[Result] = []
        for group in groups:
            results += self._together(group, bare=bare and not self._course.apart)
        if bare and self._course.apart:
            results += self._together([_bare([one.body_bytes for one in results if one.role is Role.OURS])], bare=False)
        with self._material.corpus.open("rb") as file:
            lines = sum(1 for _ in file)
        mixed = self._material.dev_data is not None
        return Size(shops, lines, mixed, tuple(results), tuple(self._absent), tuple(self._failed))

    def _together(self, contestants: Sequence[Contestant], *, bare: bool) -> list[Result]:
        """Measure some that are up at the same time."""
        with ExitStack() as stack:
            entrants = [one for one in (self._entered(stack, each) for each in contestants) if one is not None]
            if bare:
                server = _bare([one.sizes.body for one in entrants if one.contestant.role is Role.OURS])
                entrants += filter(None, [self._entered(stack, server)])
            for number in range(self._course.rounds):
                every = [one.served for one in entrants]
                entrants = [one for one in entrants if self._round(one, number, every)]
            return [result for result in map(self._result, entrants) if result is not None]

    def _entered(self, stack: ExitStack, contestant: Contestant) -> _Entrant | None:
        """A contestant that is up, warm, and gives answers; None where it is not, which is kept with the reason."""
        if reason := contestant.missing():
            self._course.say(f"ABSENT {contestant.name}: {reason}")
            self._absent.append(Left(contestant.name, reason))
            return None
        try:
            built = self._built(contestant)
            with on_core(self._course.server_core):
                served = stack.enter_context(contestant.serving(self._home(contestant)))
            asked = [contestant.path(typed.q, typed.country) for typed in self._material.typed]
            distinct = list(dict.fromkeys(asked))
            sizes = probe(contestant, served.port, asked)
            targets = self._written(f"{contestant.name}.targets", asked, sizes)
            once = self._written(f"{contestant.name}.distinct", distinct, probe(contestant, served.port, distinct))
            self._course.say(f"{contestant.name}: {sizes.body:.0f} bytes an answer; warming up")
            self._course.load.warm_up(served, once, self._course.warm_up, every=contestant.keeps_answers)
        except _FAILURES as failure:
            self._fell(contestant, failure)
            return None
        return _Entrant(contestant, built, served, targets, sizes)

    def _round(self, entrant: _Entrant, number: int, every: Sequence[Served]) -> bool:
        """One round of one contestant, among all that are up; whether it gave answers."""
        load, served, targets = self._course.load, entrant.served, entrant.targets
        start = number * targets.count // self._course.rounds
        try:
            with its_turn(served, every):
                counted, cpu_us, server_cpu_us = load.saturated(served, targets, start)
                single = load.single(served, targets, start)
                rate = counted.per_second / 2
                even = load.paced(served, targets, start, rate, "even")
                poisson = load.paced(served, targets, start, rate, "poisson")
        except _FAILURES as failure:
            self._fell(entrant.contestant, failure)
            return False
        entrant.rounds.append(
            Round(counted.per_second, cpu_us, server_cpu_us, single.p50_us, single.p99_us, even, poisson)
        )
        slack = "" if even.kept and poisson.kept else "; THE MACHINE WAS BUSY, half load was not kept"
        self._course.say(
            f"{entrant.contestant.name}, round {number + 1}: {counted.per_second:,.0f} a second, {cpu_us:.0f} us of "
            f"processor time; one caller {single.p50_us:.0f}/{single.p99_us:.0f} us; half load even "
            f"{even.p50_us:.0f}/{even.p99_us:.0f}, by chance {poisson.p50_us:.0f}/{poisson.p99_us:.0f} us (p50/p99)"
            f"{slack}"
        )
        return True

    def _result(self, entrant: _Entrant) -> Result | None:
        contestant, dev_data = entrant.contestant, self._material.dev_data
        quality = None
        try:
            held = memory(entrant.served)
            if self._course.quality and dev_data is not None and contestant.role is not Role.BARE:
                self._course.say(f"{contestant.name}: quality")
                with Caller(entrant.served.port) as caller:
                    quality = judged(partial(caller.shops, contestant), dev_data)
            version = contestant.version()
        except _FAILURES as failure:
            self._fell(contestant, failure)
            return None
        return Result(
            contestant.name,
            contestant.role,
            contestant.about,
            version,
            entrant.built,
            entrant.sizes.body,
            tuple(entrant.rounds),
            held,
            quality,
        )

    def _built(self, contestant: Contestant) -> Built:
        """What the build took, now or in an earlier run; what is kept is told beside the index."""
        home = self._home(contestant)
        told = home.with_suffix(".json")
        if not told.exists():
            self._course.say(f"{contestant.name}: building")
            shutil.rmtree(home, ignore_errors=True)  # of a run that was ended while it built
            home.mkdir(parents=True)
            built = contestant.build(self._material.corpus, home)
            told.write_bytes(_BUILT.dump_json(built))
        return _BUILT.validate_json(told.read_bytes())

    def _home(self, contestant: Contestant) -> Path:
        return self._folder / (contestant.index or contestant.name)

    def _written(self, name: str, targets: Iterable[str], sizes: Sizes) -> Targets:
        lines = list(targets)
        path = self._scratch / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
        return Targets(path, len(lines), sizes.whole)

    def _fell(self, contestant: Contestant, failure: BaseException) -> None:
        reason = f"{type(failure).__name__}: {failure}"
        self._course.say(f"FAILED {contestant.name}: {reason}")
        self._failed.append(Left(contestant.name, reason[:500]))


def _bare(bodies: Sequence[float]) -> BareAsgi:
    """The bare answer, as large as ours are on average."""
    return BareAsgi(round(sum(bodies) / len(bodies))) if bodies else BareAsgi()
