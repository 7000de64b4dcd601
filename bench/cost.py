"""Processor time of a request, for the service, the engine and Redis: `python -m bench.cost --shops 100000`.

Ratios stand beside a bare ASGI answer of the same run. Rounds take turns, and the medians are told. docs/scale.md is
computed from these figures.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.asked import Catalogue, Kind, bare, from_many_callers, kinds, known_already, lines, mixed, typed
from bench.children import run
from bench.edge import hit_table, typing
from bench.logged import log_table
from bench.places import Place, Shops, environment_of
from bench.spent import Served, Spent, mean_bytes, memory_mib, middle, spent
from tests.processes.load.serving import Service, serving
from tests.support.real.process import ServerProcess, free_ports
from tests.support.real.redis import RedisServer
from tests.support.real.sources import Missing, find_redis_program

_MANY: Final = 1_000_000_000
# Nobody is refused, and a proxy tells the callers apart.
_OPEN: Final = {
    "QUOTA_ANONYMOUS": f'{{"reads": {_MANY}, "suggest": {_MANY}, "reports": 0}}',
    "QUOTA_CLASSES": f'{{"default": {{"reads": {_MANY}, "suggest": {_MANY}, "reports": {_MANY}}}}}',
    "TRUSTED_PROXIES": "127.0.0.1",
    "LOG_LEVEL": "warning",
}
_CONNECTIONS: Final = 8
# More than two workers can work on, so that none of them waits for the other's share.
_CROWD: Final = 32
_WARM_UP_S: Final = 12.0


class Bench:
    """One engine's services, asked in turns."""

    def __init__(self, place: Place, scratch: Path, redis: RedisServer, rounds: int, seconds: float) -> None:
        self._place = place
        self._scratch = scratch
        self._redis = redis
        self._rounds = rounds
        self._seconds = seconds
        self._seeds = iter(range(1, _MANY))
        self._sharing: set[int] = set()

    @contextmanager
    def service(self, title: str, *, shared: bool, workers: int = 1, level: str = "warning") -> Iterator[Service]:
        """A service of its own; `shared` has quotas, tokens and reports in Redis."""
        settings = {name.upper(): value for name, value in self._place.settings.items()} | _OPEN
        settings |= {"WORKERS": str(workers), "LOG_LEVEL": level}
        if shared:
            settings |= {"REDIS_URL": self._redis.url, "LIMITER": "redis", "TOKEN_STORE": "redis", "REPORTS": "redis"}
        with serving(self._scratch / title, settings) as service:
            if shared:
                self._sharing.add(service.port)
            yield service

    def served(self, service: Service) -> Served:
        """What is counted of a service."""
        engine = () if self._place.engine_pid is None else (self._place.engine_pid,)
        redis = (self._redis.process.pid,) if service.port in self._sharing else ()
        processes = {"service": pids(service), "engine": engine, "redis": redis}
        return Served(service.port, processes)

    def token(self, service: Service, *, shared: bool) -> str:
        """A token for a service, in the store that it looks into."""
        store = (
            {"token_store": "redis", "redis_url": self._redis.url} if shared else {"token_file": str(service.tokens)}
        )
        issued = run(["shop_directory", "token", "new", "--name", "bench", "--json"], environment_of(store))
        return str(issued.answer["token"])

    def take_turns(self, asked: Sequence[tuple[Served, Kind]], connections: int = _CONNECTIONS) -> list[Spent]:
        """The medians of each, in the same order."""
        found: list[list[Spent]] = [[] for _ in asked]
        for _ in range(self._rounds):
            for (served, kind), rounds in zip(asked, found, strict=True):
                seed = next(self._seeds)
                rounds.append(spent(served, kind, connections=connections, seconds=self._seconds, seed=seed))
        return [middle(rounds) for rounds in found]

    def warm_up(self, served: Served, kind: Kind) -> None:
        """Until what compiles itself as it runs has done so."""
        spent(served, kind, connections=_CONNECTIONS, seconds=_WARM_UP_S, seed=next(self._seeds))


def pids(service: Service) -> list[int]:
    """The processes that answer."""
    return service.workers() or [service.pid]


@contextmanager
def bare_asgi(scratch: Path) -> Iterator[Served]:
    """An application that does nothing but answer a kilobyte."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "uvicorn", "bench.bare:app", "--port", str(port), "--no-access-log"]
    process = ServerProcess("bare", command, scratch / "bare.log")
    process.launch()
    try:
        process.wait_for(lambda: b"running on" in process.log.read_bytes(), "listening", 30.0)
        yield Served(port, {"service": (process.pid,)})
    finally:
        process.stop()


def measure(bench: Bench, engine: str, shops: Shops, scratch: Path) -> Iterator[Table]:
    """The tables of one engine."""
    shared = engine == "opensearch"
    with ExitStack() as stack:
        one = stack.enter_context(bench.service("one", shared=shared))
        logging = stack.enter_context(bench.service("logging", shared=shared, level="info"))
        counting = one if shared else stack.enter_context(bench.service("counting", shared=True))
        two = stack.enter_context(bench.service("two", shared=True, workers=2))
        plain = stack.enter_context(bare_asgi(scratch))
        every = list(kinds(Catalogue(shops.catalogue()), bench.token(one, shared=shared)))
        mix = mixed(every)
        for service in (one, logging, two):
            bench.warm_up(bench.served(service), mix)
        every.append(known_already(one.port, every[1]))
        asked = [(plain, bare()), *((bench.served(one), kind) for kind in every)]
        sizes = [mean_bytes(served.port, kind) for served, kind in asked]
        yield cost_table(engine, [kind.title for _, kind in asked], sizes, bench.take_turns(asked))
        services = {"1 worker": one, "1 worker, log level info": logging}
        services |= {} if shared else {"1 worker, quotas in Redis": counting}
        services |= {"2 workers, quotas in Redis": two}
        found = bench.take_turns([(bench.served(service), mix) for service in services.values()], _CROWD)
        memory = [memory_mib(pids(service)[0]) for service in services.values()]
        yield mix_table(engine, list(services), found, memory)
        yield log_table(logging.log)


def as_people_type(bench: Bench, data: Path) -> Spent:
    """The development data's streams of keystrokes, against its own shops."""
    with bench.service("typing", shared=False) as service:
        queries = (query for session in lines(data / "dev-sessions.ndjson") for query in session["keystrokes"])
        kind = Kind("as people type", from_many_callers(map(typed, queries)))
        bench.warm_up(bench.served(service), kind)
        return bench.take_turns([(bench.served(service), kind)])[0]


def cost_table(engine: str, titles: Sequence[str], sizes: Sequence[float], found: Sequence[Spent]) -> Table:
    """Milliseconds of processor time for people; the first is the bare answer."""
    table = Table("request", "bytes", "service, ms", "x bare", "engine, ms", "Redis, ms", "answers/s", title=engine)
    for title, size, one in zip(titles, sizes, found, strict=True):
        ratio = one.ms("service") / found[0].ms("service")
        cells = (f"{one.ms('service'):.3f}", f"{ratio:.1f}", f"{one.ms('engine'):.3f}", f"{one.ms('redis'):.4f}")
        table.add_row(title, f"{size:,.0f}", *cells, f"{one.per_second:,.0f}")
    return table


def mix_table(
    engine: str, titles: Sequence[str], found: Sequence[Spent], memory: Sequence[tuple[float, float]]
) -> Table:
    """The mix by setting for people; cores show what the load left to the service."""
    title = f"{engine}, the mix, {_CROWD} connections"
    table = Table(
        "service",
        "service, ms",
        "engine, ms",
        "Redis, ms",
        "answers/s",
        "its cores",
        "own, MiB",
        "mapped, MiB",
        title=title,
    )
    for name, one, (own, mapped) in zip(titles, found, memory, strict=True):
        times = [f"{one.ms(whose):.3f}" for whose in ("service", "engine", "redis")]
        table.add_row(
            name, *times, f"{one.per_second:,.0f}", f"{one.cores('service'):.2f}", f"{own:.0f}", f"{mapped:.0f}"
        )
    return table


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, default=100_000, help="how many invented shops")
    options.add_argument("--engine", choices=("embedded", "opensearch", "both"), default="both")
    options.add_argument("--directory", type=Path, help="where indices are kept for later runs; removed without")
    options.add_argument("--dev-data", type=Path, help="a folder of development data: typeahead as people type it")
    options.add_argument("--rounds", type=int, default=3, help="of which the medians are told")
    options.add_argument("--seconds", type=float, default=2.0, help="of each round")
    options.add_argument("--appendfsync", choices=("always", "everysec"), default="always", help="of Redis")
    options.add_argument("--heap", default="2g", help="the heap of the OpenSearch node")
    return options.parse_args()


def main() -> None:
    """Build, measure and print."""
    given = _options()
    console = Console(width=150)
    program = find_redis_program()
    if isinstance(program, Missing):
        raise SystemExit(f"no Redis: {program.reason}")
    with TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        shops = Shops(given.directory or scratch, given.shops, related_records=True)
        redis = RedisServer(str(program), scratch, appendonly=True, options=("--appendfsync", given.appendfsync))
        places: dict[str, Callable[[], AbstractContextManager[Place]]]
        places = {"embedded": shops.embedded, "opensearch": partial(shops.opensearch, given.heap)}
        for engine in places if given.engine == "both" else (given.engine,):
            with redis, places[engine]() as place:
                folder = scratch / engine
                folder.mkdir()
                console.print(f"{engine}: {place.built.index_mb * 1000 / given.shops:.2f} MB of index for 1,000 shops")
                for table in measure(Bench(place, folder, redis, given.rounds, given.seconds), engine, shops, folder):
                    console.print(table)
                console.print(f"Load average of the last minute: {os.getloadavg()[0]:.1f}")
        if given.dev_data:
            console.print(hit_table(typing(given.dev_data)))
            index = {"engine": "embedded", "data_dir": str(scratch / "development")}
            catalogue = str(given.dev_data / "dev-shops.ndjson")
            run(["shop_directory", "index", "build", "--catalogue", catalogue, "--json"], environment_of(index))
            with redis:
                bench = Bench(Place(index, place.built), scratch, redis, given.rounds, given.seconds)
                console.print(f"As people type, embedded: {as_people_type(bench, given.dev_data).ms('service'):.3f} ms")


if __name__ == "__main__":
    main()
