"""The right service in this process, and runs of `check` against it or against what was made of it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

import httpx2
from fastapi import FastAPI
from starlette.types import ASGIApp

from service.app import create_app
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from shop_directory.conformance.bounds import Bounds
from shop_directory.conformance.rule import Rule
from shop_directory.conformance.rules import RULES
from shop_directory.conformance.run import Run, RunOptions, run
from shop_directory.search.protocol import SearchBackend
from tests.support.callers import issue
from tests.support.served import settings_in

COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"
BUILT_AT: Final = "2026-11-21T09:30:00Z"
OPS_KEY: Final = "an-operations-key-of-these-tests"
# Shops of the sample that are under review (indexer/sample/shops.ndjson).
UNDER_REVIEW: Final = ("quillomere.internal", "shop_quillomere", "zathrune.internal")
BASE: Final = "http://127.0.0.1"
_START_BOUND_S: Final = 20.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """A running application, its loop on a thread, the folder of its files, and options that ask all of it."""

    app: FastAPI
    options: RunOptions
    loop: asyncio.AbstractEventLoop
    folder: Path

    def check(
        self,
        rules: Sequence[Rule] = RULES,
        wrap: Callable[[ASGIApp], ASGIApp] | None = None,
        options: RunOptions | None = None,
    ) -> Run:
        app: ASGIApp = self.app if wrap is None else wrap(self.app)
        # An exception of an application that was broken on purpose is a dropped connection, as on the network.
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        return self.wait(run(options or self.options, rules, transport))

    def wait(self, work: Awaitable[T]) -> T:
        async def done() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(timeout=120)


@contextmanager
def staged(index: Path, folder: Path, search: SearchBackend | None = None) -> Iterator[Stage]:
    """The service on an index or another backend, with a token, an operations key and a file for reports."""
    settings = right_settings(index, folder)
    options = RunOptions(
        BASE, issue(settings.token_file).text, OPS_KEY, UNDER_REVIEW, write=True, bounds=Bounds(requests=2000)
    )
    with living(create_app(settings, search=search)) as (app, loop):
        yield Stage(app, options, loop, folder)


def right_settings(index: Path, folder: Path) -> Settings:
    """Those of the right service: what is generous for all is more so with a token."""
    return settings_in(
        folder,
        data_dir=index,
        ops_key=OPS_KEY,
        commit=COMMIT,
        built_at=BUILT_AT,
        quota_anonymous=QuotaClass(reads=100_000, suggest=100_000, reports=0),
        quota_classes={"default": QuotaClass(reads=1_000_000, suggest=1_000_000, reports=100_000)},
    )


@contextmanager
def living(app: FastAPI) -> Iterator[tuple[FastAPI, asyncio.AbstractEventLoop]]:
    """An application that is ready, and its loop, which runs on a thread of its own until the end."""
    started, ended = threading.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def live() -> None:
        transport = httpx2.ASGITransport(app)
        async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
            while (await client.get("/ready")).status_code != HTTPStatus.OK and not ended.is_set():
                await asyncio.sleep(0.05)
            loops.append(asyncio.get_running_loop())
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    try:
        assert started.wait(_START_BOUND_S), "the application did not start in time"
        yield app, loops[0]
    finally:
        ended.set()
        thread.join()
