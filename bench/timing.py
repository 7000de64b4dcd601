"""Whether response times distinguish a shop under review from an unknown one: `python -m bench.timing`; they must not.

Calls of both kinds are sent in random order within one process, so that only the service itself is measured.
The two kinds are compared by the Mann-Whitney AUC: the chance that an answer about a shop under review takes longer
than one about an unknown shop; 0.5 is no difference at all. The same measurement has to
find a planted delay on one side (V2).
"""

import argparse
import asyncio
import gc
import json
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import numpy as np
from fastapi import FastAPI
from rich.console import Console
from rich.table import Table

from bench.invented import invented_shops
from indexer.jobs.build import build
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sources.ndjson import NdjsonCatalogue
from service.app import create_app
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from shop_directory.search.embedded.engine import EmbeddedBackend
from shop_directory.search.protocol import SearchBackend, Snapshot
from tests.support.callers import issue

ALLOWED: Final = 0.03
_PLANTED_S: Final = 0.0001
_SEED: Final = 20_261_121
_SHOPS: Final = 3_000
_WARM_UP: Final = 100
_BETWEEN_COLLECTIONS: Final = 500
_PLENTY: Final = 10**9
# get_trust has the same response for an unknown shop and for one without measurements (A8).
_ABSENT: Final = {"get_shops": HTTPStatus.OK, "get_trust": HTTPStatus.OK}
T = TypeVar("T")


class _DelayedBackend:
    """A backend with a planted timing leak: `wait` is called with what each look-up of a shop or an offer names."""

    def __init__(self, inner: SearchBackend, wait: Callable[[object], None]) -> None:
        self._inner = inner
        self._wait = wait

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any method
        return getattr(self._inner, name)

    async def snapshot(self) -> "_DelayedSnapshot":
        return _DelayedSnapshot(await self._inner.snapshot(), self._wait)

    def current(self) -> "_DelayedSnapshot | None":
        snapshot = self._inner.current()
        return None if snapshot is None else _DelayedSnapshot(snapshot, self._wait)

    async def refresh(self) -> "_DelayedSnapshot":
        return _DelayedSnapshot(await self._inner.refresh(), self._wait)


class _DelayedSnapshot:
    def __init__(self, inner: Snapshot, wait: Callable[[object], None]) -> None:
        def each(references: Iterable[object]) -> None:
            for reference in references:
                wait(reference)

        self._inner = inner
        self.shop, self.shops = _delayed(inner.shop, wait), _delayed(inner.shops, each)
        self.facts, self.trust = _delayed(inner.facts, each), _delayed(inner.trust, wait)
        self.offer = _delayed(inner.offer, wait)
        self.coupons = _delayed(inner.coupons, lambda query: each(query.shops or ()))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any method
        return getattr(self._inner, name)


def _delayed(look: Callable[..., Awaitable[T]], wait: Callable[[Any], None]) -> Callable[..., Awaitable[T]]:
    async def delayed(asked: object, *more: object) -> T:
        wait(asked)
        return await look(asked, *more)

    return delayed


@dataclass(frozen=True, slots=True)
class Timing:
    """One tool's comparison, with the medians; `auc` is 0.5 if they do not differ, more if hidden shops take longer."""

    tool: str
    auc: float
    unknown_ms: float
    hidden_ms: float

    @property
    def distinguishable(self) -> bool:
        """Whether the times distinguish the two kinds."""
        return abs(self.auc - 0.5) > ALLOWED


@dataclass(frozen=True, slots=True)
class World:
    """An index, and the numbers of shops on either side: both are drawn from the same shops by chance."""

    index: Path
    unknown: tuple[int, ...]
    hidden: tuple[int, ...]


_Arguments = Callable[[int], dict[str, Any]]
TOOLS: Final[dict[str, _Arguments]] = {
    "get_shop": lambda number: {"shop_domain": _domain(number)},
    "get_shops": lambda number: {"shop_domains": [_domain(number)]},
    "list_coupons": lambda number: {"shop_domain": _domain(number)},
    "get_shipping_policy": lambda number: {"shop_domain": _domain(number), "country": "AT"},
    "get_shop_policies": lambda number: {"shop_domain": _domain(number), "country": "AT"},
    "get_trust": lambda number: {"shop_domain": _domain(number)},
    "report_code": lambda number: {"shop_domain": _domain(number), "code": "SPRING10", "reason": "invalid"},
    "resolve_conflict": lambda number: {"from_shop_id": _shop_id(number)},
    "resolve_checkout_url": lambda number: {"offer_id": _offer_id(number)},
}


def make_world(directory: Path) -> World:
    """Build an index of invented shops, some of them under review, and some left out of the catalogue altogether."""
    chance = random.Random(_SEED)
    kinds = ["public", "public", "public", "under_review", "unknown"]
    sides = [chance.choice(kinds) for _ in range(_SHOPS)]
    records: dict[str, list[dict[str, Any]]] = {"shops": [], "coupons": [], "offers": [], "shipping": [], "trust": []}
    for number, shop in enumerate(invented_shops(_SHOPS)):
        if sides[number] != "unknown":
            visible = {"id": _shop_id(number), "domain": _domain(number), "visibility": sides[number]}
            records["shops"].append({**shop, **visible})
            for kind, line in _related_records(number).items():
                records[kind].append(line)
    catalogue = directory / "catalogue"
    catalogue.mkdir()
    for kind, lines in records.items():
        (catalogue / f"{kind}.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    build(NdjsonCatalogue(catalogue), EmbeddedSink(directory / "index"))
    unknown, hidden = ([n for n, side in enumerate(sides) if side == kind] for kind in ("unknown", "under_review"))
    return World(directory / "index", tuple(unknown), tuple(hidden))


async def measure(world: World, directory: Path, count: int, planted: float = 0.0) -> tuple[Timing, ...]:
    """Compare the times of each tool, over `count` calls of each side.

    Look-ups of a shop under review take `planted` seconds longer.
    """
    slowed = {name(number) for number in world.hidden for name in (_shop_id, _domain, _offer_id)}

    def wait(asked: object) -> None:
        end = time.perf_counter() + planted
        while asked in slowed and time.perf_counter() < end:
            pass

    search: Any = EmbeddedBackend(world.index)
    tokens = directory / "tokens.sqlite"
    settings = Settings(
        token_file=tokens,
        reports_file=directory / "reports.sqlite",
        quota_classes={"default": QuotaClass(reads=_PLENTY, suggest=_PLENTY, reports=_PLENTY)},
    )
    token = (await asyncio.to_thread(issue, tokens)).text
    if planted:
        search = _DelayedBackend(search, wait)
    app = create_app(settings, search=search)
    async with app.router.lifespan_context(app):
        return tuple([await _compared(app, token, tool, world, count) for tool in TOOLS])


def auc(first: Sequence[float], second: Sequence[float]) -> float:
    """The chance that one of `second` is greater than one of `first`, ties counted half."""
    ascending = np.sort(first)
    smaller, not_greater = (np.searchsorted(ascending, second, side) for side in ("left", "right"))
    return float(np.mean(smaller + not_greater)) / (2 * len(first))


async def _compared(app: FastAPI, token: str, tool: str, world: World, count: int) -> Timing:
    chance = random.Random(_SEED)
    sides = [False, True] * count
    chance.shuffle(sides)
    arguments = TOOLS[tool]
    scope = _scope(tool, token)
    times: dict[bool, list[float]] = {False: [], True: []}
    asked = [(side, arguments(chance.choice(world.hidden if side else world.unknown))) for side in sides]
    status = {await _call(app, scope, given, []) for _, given in asked[:_WARM_UP]}
    gc.collect()
    gc.disable()
    try:
        for position, (side, given) in enumerate(asked):
            if position % _BETWEEN_COLLECTIONS == 0:
                gc.collect()
            status.add(await _call(app, scope, given, times[side]))
    finally:
        gc.enable()
    if status != {_ABSENT.get(tool, HTTPStatus.NOT_FOUND)}:
        raise RuntimeError(f"{tool} did not answer that there is no such thing, but {sorted(status)}")
    unknown, hidden = times[False], times[True]
    return Timing(tool, auc(unknown, hidden), statistics.median(unknown) * 1000, statistics.median(hidden) * 1000)


async def _call(app: FastAPI, scope: dict[str, Any], arguments: dict[str, Any], times: list[float]) -> int:
    """Call a tool; its seconds are appended to `times`, its status is returned."""
    body = json.dumps(arguments).encode()
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401 - the type of ASGI
        nonlocal status
        status = message.get("status", status)

    fresh = {**scope, "state": {}}
    started = time.perf_counter()
    await app(fresh, receive, send)
    times.append(time.perf_counter() - started)
    return status


def _scope(tool: str, token: str) -> dict[str, Any]:
    headers = [(b"host", b"bench"), (b"content-type", b"application/json"), (b"x-api-token", token.encode())]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": f"/tool/{tool}",
        "raw_path": f"/tool/{tool}".encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }


def _related_records(number: int) -> dict[str, dict[str, Any]]:
    shop = {"shop_id": _shop_id(number)}
    checked = {"source": "bench", "checked_at": "2026-05-06T07:08:09Z"}
    return {
        "coupons": {**shop, "id": f"cpn_{number:08d}", "code": "SPRING10", "verification_status": "unverified"},
        "offers": {**shop, "id": _offer_id(number), "title": "Lamp", "url": f"https://{_domain(number)}/lamp"},
        "shipping": {**shop, "destinations": ["DE", "AT"]},
        "trust": {**shop, "kind": "tls_grade", "value": "A", **checked},
    }


def _shop_id(number: int) -> str:
    return f"shop_{number:08d}"


def _domain(number: int) -> str:
    return f"shop-{number:08d}.internal"


def _offer_id(number: int) -> str:
    return f"off_{number:08d}"


def main() -> None:
    """Measure the service as it is, and with a planted delay that has to be found; print both."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=5_000, help="how many calls of each side, for each tool")
    count = options.parse_args().calls
    title = f"{count:,} calls of each side; an AUC over {ALLOWED} from 0.5 distinguishes them"
    table = Table("tool", "unknown, ms", "under review, ms", "AUC", "", "planted", "", title=title)
    with TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        found, planted = (asyncio.run(measure(world, Path(folder), count, delay)) for delay in (0.0, _PLANTED_S))
    for one, delayed in zip(found, planted, strict=True):
        cells = [f"{one.unknown_ms:.3f}", f"{one.hidden_ms:.3f}"]
        for timing in (one, delayed):
            cells += [f"{timing.auc:.3f}", "apart" if timing.distinguishable else "same"]
        table.add_row(one.tool, *cells)
    table.caption = f"Medians; planted: look-ups of shops under review take {_PLANTED_S * 1000:g} ms longer."
    Console().print(table)


if __name__ == "__main__":
    main()
