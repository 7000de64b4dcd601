"""A service each of whose layers throws on demand, with a text that no caller may see; as a program, over stdio.

The layers are the service's real parts behind a fuse. Where a layer is a function and no part, the fuse stands before
the function.
"""

import asyncio
import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, cast

import pytest
from fastapi import FastAPI

import service.parts
from service.app import create_app
from service.runtime.telemetry import NO_METRICS
from service.settings.service import Settings
from service.stdio import run_stdio
from service.tools.registry import REGISTRY

T = TypeVar("T")

CANARY: Final = "canary-4711@node-7.internal/shops-000042"
# Of the exception nothing may show: neither text, nor type, nor where it was.
GIVEAWAYS: Final = (
    CANARY, "canary", "node-7", "Throwing", "CanaryError", "KeyError", "Traceback", "raise ", "tests.rules.security",
    "site-packages", "service/", ".py", 'File "',
)  # fmt: skip
FUSE_VARIABLE: Final = "CANARY_LAYER_FILE"


class CanaryError(RuntimeError):
    """What is thrown."""


class Layer(StrEnum):
    TOKEN_STORE = "find a token"
    VERIFIER = "judge a token"
    LIMITER = "count a call"
    ENGINE = "ask the engine for what is live"
    SEARCH = "ask what is live"
    REPORTS = "append a report"
    WRITABLE = "ask whether a report could be written"
    VALIDATION = "validate a request"
    RUN = "run a tool"
    ENCODING = "encode an answer"
    SUGGEST = "make the document of /suggest"
    QUERY = "read the query of /suggest"
    STATE = "make the state for operators"
    EXPOSITION = "write the metrics"
    METRICS = "count what was done"
    MESSAGE = "read a message of MCP"
    RESULT = "make a result of MCP"
    SDK = "handle a request in the SDK"
    GATE = "enter the gate"
    DEFAULTS = "complete an answer's headers"
    OBSERVER = "begin a request"


class Fuse:
    """Says at which layer the exception is thrown just now: at none, or at one."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def set(self, layer: Layer | None) -> None:
        self._file.write_text(layer or "")

    def burn(self, layer: Layer) -> None:
        if self._file.read_text() == layer:
            _throw()

    def before(self, layer: Layer, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function):

            async def awaited(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the function
                self.burn(layer)
                return await function(*given, **named)

            return awaited

        @functools.wraps(function)
        def called(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the function
            self.burn(layer)
            return function(*given, **named)

        return called


def _throw() -> NoReturn:
    raise CanaryError(CANARY) from KeyError(CANARY)


class _Throwing:
    def __init__(self, part: Any, fuse: Fuse, layers: dict[str, Layer], otherwise: Layer) -> None:  # noqa: ANN401 - any part
        self._part = part
        self._fuse = fuse
        self._layers = layers
        self._otherwise = otherwise

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the part's
        found = getattr(self._part, name)
        if not callable(found) or name == "close":
            return found
        return self._fuse.before(self._layers.get(name, self._otherwise), found)


def _throwing(part: T, fuse: Fuse, otherwise: Layer, **layers: Layer) -> T:
    return cast("T", _Throwing(part, fuse, layers, otherwise))


class _ThrowingSearch:
    def __init__(self, search: Any, fuse: Fuse) -> None:  # noqa: ANN401 - any backend
        self._search = search
        self._fuse = fuse

    async def snapshot(self) -> Any:  # noqa: ANN401 - a snapshot
        self._fuse.burn(Layer.ENGINE)
        return _throwing(await self._search.snapshot(), self._fuse, Layer.SEARCH)

    def current(self) -> Any:  # noqa: ANN401 - a snapshot
        self._fuse.burn(Layer.ENGINE)
        snapshot = self._search.current()
        return None if snapshot is None else _throwing(snapshot, self._fuse, Layer.SEARCH)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the backend's
        return getattr(_throwing(self._search, self._fuse, Layer.ENGINE), name)


@contextmanager
def fused(fuse: Fuse) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for name, layer, layers in (
            ("open_tokens", Layer.TOKEN_STORE, {}),
            ("TokenVerifier", Layer.VERIFIER, {}),
            ("open_limiter", Layer.LIMITER, {}),
            ("open_queue", Layer.REPORTS, {"check": Layer.WRITABLE}),
        ):
            patched.setattr(service.parts, name, _opening(getattr(service.parts, name), fuse, layer, layers))
        real = service.parts.open_search
        patched.setattr(service.parts, "open_search", lambda *given: _ThrowingSearch(real(*given), fuse))
        # What a store said of a token is forgotten immediately, so that it is asked again each time.
        patched.setattr("service.auth.verifier.CACHE_SECONDS", -1.0)
        patched.setattr("service.rest.probes._CACHE_SECONDS", -1.0)
        for target, layer in _FUNCTIONS.items():
            module, _, name = target.rpartition(".")
            function = getattr(__import__(module, fromlist=[name]), name)
            patched.setattr(target, fuse.before(layer, function))
        throwing = tuple(map(functools.partial(_tool, fuse), REGISTRY))
        patched.setattr(service.parts, "REGISTRY", throwing)
        patched.setattr("service.app.REGISTRY", throwing)
        yield


_FUNCTIONS: Final = {
    "service.calls.dispatch.validated": Layer.VALIDATION,
    "service.calls.dispatch.to_wire": Layer.ENCODING,
    "service.suggest.responder.encode_results": Layer.SUGGEST,
    "service.suggest.responder.parse": Layer.QUERY,
    "service.rest.operations.ops_state": Layer.STATE,
    "service.rest.operations.encode_families": Layer.EXPOSITION,
    "service.mcp_server.endpoint.check_message": Layer.MESSAGE,
    "service.mcp_server.stdio.check_message": Layer.MESSAGE,
    "service.mcp_server.server.tool_result": Layer.RESULT,
    "service.mcp_server.endpoint.result_meta": Layer.RESULT,
    "service.mcp_server.server.ListToolsResult": Layer.SDK,
    "service.http.middleware.GateSlot": Layer.GATE,
    "service.http.middleware.with_defaults": Layer.DEFAULTS,
    "service.http.middleware.request_context_of": Layer.OBSERVER,
}


def fused_app(settings: Settings, fuse: Fuse) -> FastAPI:
    return create_app(settings, metrics=_throwing(NO_METRICS, fuse, Layer.METRICS))


def _opening(opens: Callable[..., Any], fuse: Fuse, layer: Layer, layers: dict[str, Layer]) -> Callable[..., Any]:
    def opening(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the opening
        return _throwing(opens(*given, **named), fuse, layer, **layers)

    return opening


def _tool(fuse: Fuse, tool: Any) -> Any:  # noqa: ANN401 - a tool of any request
    return dataclasses.replace(tool, run=fuse.before(Layer.RUN, tool.run))


def main() -> None:
    """Serve on stdio until stdin ends; the variable names the file that says where to throw."""
    with fused(Fuse(Path(os.environ[FUSE_VARIABLE]))):
        asyncio.run(run_stdio(Settings.load()))


if __name__ == "__main__":
    main()
