"""Traces: off by default; switched on, one server span a call on each transport, with what it asked below it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from mcp.client.client import Client
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from service.app import create_app
from service.mcp_server.server import build_server
from service.mcp_server.stdio import call_over_stdio
from service.parts import Parts
from service.runtime.tracing import open_traces
from service.settings.service import Settings
from tests.support.served import get, post, served
from tests.support.wire import Era, call, request
from tests.support.worlds import embedded_world

CANARY: Final = "quixotic canary"
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
PARENT: Final = "b7ad6b7169203331"
TRACEPARENT: Final = f"00-{TRACE}-{PARENT}-01"
_BOUND_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Traced:
    base: str
    exporter: InMemorySpanExporter

    def server_spans(self, count: int) -> list[ReadableSpan]:
        """Those of the calls so far: a span ends shortly after its answer was sent."""
        until = time.monotonic() + _BOUND_S
        while len(found := [span for span in self.spans if span.kind is SpanKind.SERVER]) < count:
            assert time.monotonic() < until, "a span is missing"
            time.sleep(0.01)
        time.sleep(0.05)
        return found

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    settings = Settings(data_dir=embedded_world(tmp_path), token_file=tmp_path / "t", reports_file=tmp_path / "r")
    exporter = InMemorySpanExporter()
    with served(create_app(settings, spans=SimpleSpanProcessor(exporter))) as base:
        yield Traced(base, exporter)


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    """Its attributes, without the request's id and the generation, which differ from run to run."""
    return {name: value for name, value in (span.attributes or {}).items() if name not in _OWN}


_OWN: Final = ("request.id", "shop_directory.generation")


def test_a_call_over_rest_is_one_server_span_and_what_it_asked_is_below_it(traced: Traced) -> None:
    answer = post(traced.base, "/tool/find_shop", {"query": "harbour"}, traceparent=TRACEPARENT)
    (span,) = traced.server_spans(1)
    assert (answer.status, span.name) == (200, "POST /tool/find_shop")
    assert attributes_of(span) == {
        "http.request.method": "POST",
        "http.route": "/tool/find_shop",
        "shop_directory.outcome": "ok",
    }
    assert span.attributes is not None
    assert span.attributes["request.id"] == answer.headers["x-request-id"]
    assert span.attributes["shop_directory.generation"] == answer.headers["x-generation"]
    assert span.context is not None
    assert span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    below = [other for other in traced.spans if other.parent == span.context]
    assert {(other.name, other.kind) for other in below} == {("search tantivy", SpanKind.CLIENT)}
    assert len(traced.spans) == 1 + len(below)


@pytest.mark.parametrize("era", list(Era))
def test_a_call_over_mcp_is_one_server_span_named_by_its_tool(traced: Traced, era: Era) -> None:
    reply = call(traced.base, era, "get_shop", b'{"shop_domain":"shop_books"}')
    (span,) = traced.server_spans(1)
    assert (reply.status, span.name) == (200, "tools/call get_shop")
    assert attributes_of(span) == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "get_shop",
        "shop_directory.outcome": "ok",
    }
    below = [other.name for other in traced.spans if other.parent == span.context]
    assert below == ["search tantivy"]
    assert len(traced.spans) == 2


def test_a_trace_that_a_message_carries_comes_before_one_of_its_headers(traced: Traced) -> None:
    params = b'"name":"list_categories","arguments":{},"_meta":{"traceparent":"%s"}' % TRACEPARENT.encode()
    other = f"00-{'1' * 32}-{'2' * 16}-01"
    request(traced.base, Era.HANDSHAKE, "tools/call", params, traceparent=other)
    (span,) = traced.server_spans(1)
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == TRACE


async def test_a_call_over_stdio_is_one_server_span(tmp_path: Path) -> None:
    index, token, reports = embedded_world(tmp_path), tmp_path / "t", tmp_path / "r"
    settings = Settings(data_dir=index, token_file=token, reports_file=reports, request_timeout=5.0)
    exporter = InMemorySpanExporter()
    traces = open_traces("shop-directory", "1", SimpleSpanProcessor(exporter))
    assert traces is not None
    parts = Parts(settings)
    server = build_server(parts.dispatcher, parts.responder, "1", call_over_stdio(None), traces=traces)
    try:
        async with Client(server) as client:
            await client.call_tool("get_shop", {"shop_domain": "shop_books"})
            await client.call_tool("get_shop", {"shop_domain": "shop_hidden"})
    finally:
        await parts.close()
        traces.close()
    calls = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.SERVER]
    assert [(span.name, attributes_of(span)["shop_directory.outcome"]) for span in calls] == [
        ("tools/call get_shop", "ok"),
        ("tools/call get_shop", "shop_not_found"),
    ]


def test_what_callers_send_is_in_no_span(traced: Traced) -> None:
    get(traced.base, f"/suggest?q={quote(CANARY)}")
    post(traced.base, "/tool/find_shop", {"query": CANARY}, x_api_token=CANARY)
    post(traced.base, f"/tool/{quote(CANARY)}", {})
    call(traced.base, Era.HANDSHAKE, CANARY, b"{}")
    request(traced.base, Era.HANDSHAKE, CANARY)
    post(traced.base, "/tool/get_shop", {"shop_domain": CANARY}, traceparent=CANARY, tracestate=CANARY)
    names = [span.name for span in traced.server_spans(6)]
    assert names == [
        "GET /suggest",
        "POST /tool/find_shop",
        "HTTP unknown",
        "tools/call",
        "other",
        "POST /tool/get_shop",
    ]
    whole = "".join(span.to_json() for span in traced.spans)
    assert "find_shop" in whole
    assert "canary" not in whole


def test_faults_are_errors_and_a_callers_mistakes_are_none(traced: Traced, tmp_path: Path) -> None:
    post(traced.base, "/tool/find_shop", {"query": 1})
    (tmp_path / "index" / "live").unlink()
    time.sleep(1.1)
    assert post(traced.base, "/tool/find_shop", {"query": "a"}).status == 503
    mistake, fault = traced.server_spans(2)
    assert (mistake.status.is_ok, attributes_of(mistake)["shop_directory.outcome"]) == (True, "invalid_input")
    assert (fault.status.is_ok, attributes_of(fault)["error.type"]) == (False, "not_ready")


def test_by_default_nothing_is_traced() -> None:
    assert (open_traces("shop-directory", "1"), Settings.model_fields["traces"].default) == (None, "off")
