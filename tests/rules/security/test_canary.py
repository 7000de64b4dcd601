"""An exception thrown at any layer reaches no answer; the log has it under the answer's request id (E5)."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from service.errors import InternalError
from service.settings.service import Settings
from tests.rules.mcp.asking import read
from tests.rules.security.canary import CANARY, FUSE_VARIABLE, GIVEAWAYS, Fuse, Layer, fused, fused_app
from tests.support.callers import COUPONS, issue
from tests.support.served import Reply, get, post, served
from tests.support.wire import ABOUT, Era, call, request, stdio_lines
from tests.support.worlds import embedded_world

PROBLEM: Final = InternalError().problem()
SHOP: Final = {"shop_domain": "shop_books"}
REPORT: Final = {"shop_domain": "shop_books", "code": "SPRING10", "reason": "invalid"}
READS: Final = frozenset({"get_shop", "mcp get_shop", "older mcp get_shop"})
RESOURCES: Final = frozenset({"mcp resource", "older mcp resource"})
WRITES: Final = frozenset({"report_code", "mcp report_code", "older mcp report_code"})
LISTS: Final = frozenset({"mcp tools/list", "older mcp tools/list"})
HANDSHAKE: Final = frozenset({"older mcp initialize"})
OPERATORS: Final = frozenset({"ops state", "metrics", "resources"})
TOOLS: Final = READS | WRITES
CALLS: Final = TOOLS | RESOURCES
MCP: Final = frozenset(name for name in CALLS if "mcp" in name) | LISTS | HANDSHAKE
CONSTANT: Final = frozenset({"health", "version", "openapi", "nothing"})
EVERYTHING: Final = CALLS | LISTS | HANDSHAKE | OPERATORS | CONSTANT | {"suggest", "ready"}

# Where the exception ends an answer. Every other answer stays as it is.
ENDS: Final[dict[Layer, frozenset[str]]] = {
    Layer.TOKEN_STORE: CALLS,
    Layer.VERIFIER: CALLS,
    Layer.LIMITER: EVERYTHING - CONSTANT,
    Layer.ENGINE: CALLS | {"suggest", "ready"},
    Layer.SEARCH: CALLS | {"suggest"},
    Layer.REPORTS: WRITES,
    Layer.WRITABLE: frozenset({"ready"}),
    Layer.VALIDATION: CALLS,
    Layer.RUN: CALLS,
    Layer.ENCODING: CALLS,
    Layer.SUGGEST: frozenset({"suggest"}),
    Layer.QUERY: frozenset({"suggest"}),
    Layer.STATE: frozenset({"ops state"}),
    Layer.EXPOSITION: frozenset({"metrics", "resources"}),
    Layer.METRICS: frozenset(),
    Layer.MESSAGE: MCP,
    Layer.RESULT: TOOLS & MCP,
    Layer.SDK: LISTS,
    Layer.GATE: CALLS | MCP | {"suggest"},
    Layer.DEFAULTS: EVERYTHING,
    Layer.OBSERVER: EVERYTHING,
}
# What operators read of a part that is broken says that it is.
_NO_ACCOUNTS: Final = "503 The accounts can't be read from the search engine just now; try again in 1 second."
SHOWS: Final[dict[Layer, dict[str, str]]] = {Layer.ENGINE: {"resources": _NO_ACCOUNTS}}
INITIALIZE: Final = b'"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}'


@dataclass(frozen=True, slots=True)
class Service:
    base: str
    fuse: Fuse
    token: str
    variables: dict[str, str]

    def answers(self) -> dict[str, Reply]:
        token = {"x_api_token": self.token}
        shop, report = json.dumps(SHOP).encode(), json.dumps(REPORT).encode()
        found = {
            "get_shop": post(self.base, "/tool/get_shop", SHOP, **token),
            "report_code": post(self.base, "/tool/report_code", REPORT, **token),
            "older mcp initialize": request(self.base, Era.HANDSHAKE, "initialize", INITIALIZE),
            "health": get(self.base, "/health"),
            "ready": get(self.base, "/ready"),
            "version": get(self.base, "/version"),
            "openapi": get(self.base, "/openapi.json"),
            "nothing": get(self.base, "/nothing"),
            # The way through the whole application: a plain suggest request takes the fast path, which is tested below.
            "suggest": get(self.base, "/suggest?q=harbour", connection="close"),
            "ops state": get(self.base, "/api/ops/state"),
            "metrics": get(self.base, "/metrics"),
            "resources": get(self.base, "/metrics/resources"),
        }
        for era, name in ((Era.STATELESS, "mcp"), (Era.HANDSHAKE, "older mcp")):
            found[f"{name} tools/list"] = request(self.base, era, "tools/list")
            found[f"{name} resource"] = read(self.base, era, "shop://shop_books", **token)
            found[f"{name} get_shop"] = call(self.base, era, "get_shop", shop, **token)
            found[f"{name} report_code"] = call(self.base, era, "report_code", report, **token)
        return found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("canary")
    fuse = Fuse(folder / "layer")
    fuse.set(None)
    variables = {
        "SHOP_DIRECTORY_DATA_DIR": str(embedded_world(folder / "world", coupons=COUPONS)),
        "SHOP_DIRECTORY_TOKEN_FILE": str(folder / "tokens.sqlite"),
        "SHOP_DIRECTORY_REPORTS_FILE": str(folder / "reports.sqlite"),
        "SHOP_DIRECTORY_REQUEST_TIMEOUT": "10",
        # Cached answers would bypass the layers.
        "SHOP_DIRECTORY_SUGGEST_CACHE_MB": "0",
    }
    token = issue(folder / "tokens.sqlite").text
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables.items():
            environment.setenv(name, value)
        with fused(fuse), served(fused_app(Settings(), fuse)) as base:
            yield Service(base, fuse, token, {**variables, "SHOP_DIRECTORY_API_TOKEN": token})


@pytest.fixture(scope="module")
def healthy(service: Service) -> dict[str, Reply]:
    return service.answers()


def test_as_long_as_nothing_is_thrown_everything_is_answered(healthy: dict[str, Reply]) -> None:
    assert set(healthy) == EVERYTHING
    unlike = {name: reply.status for name, reply in healthy.items() if reply.status != 200}
    assert unlike == {"version": 503, "nothing": 404}
    assert [name for name in TOOLS & MCP if healthy[name].json["result"]["isError"]] == []


@pytest.mark.rule("E5", "E5.request_id", "E1", "E2", "I58")
@pytest.mark.parametrize("layer", Layer)
def test_a_canary_thrown_at_a_layer_reaches_no_answer_over_http(
    service: Service, healthy: dict[str, Reply], layer: Layer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        service.fuse.set(layer)
        try:
            answers = service.answers()
        finally:
            service.fuse.set(None)
    assert {name: found for name, reply in answers.items() if (found := _giveaways(reply))} == {}
    failed = {name for name, reply in answers.items() if _kind(reply) == "failed"}
    assert failed == ENDS[layer]
    unchanged = {name: _kind(reply) for name, reply in healthy.items()} | SHOWS.get(layer, {})
    assert {name: _kind(reply) for name, reply in answers.items() if name not in failed} == {
        name: kind for name, kind in unchanged.items() if name not in failed
    }
    ids = {name: _request_id(answers[name]) for name in failed}
    assert [name for name, request_id in ids.items() if f"request={request_id}" not in caplog.text] == []
    assert CANARY in caplog.text
    assert {name: _kind(reply) for name, reply in service.answers().items()} == {
        name: _kind(reply) for name, reply in healthy.items()
    }


@pytest.mark.rule("E5", "E5.request_id", "E1")
@pytest.mark.parametrize(
    "layer", [Layer.ENGINE, Layer.LIMITER, Layer.SEARCH, Layer.SUGGEST, Layer.QUERY, Layer.DEFAULTS]
)
def test_a_canary_thrown_at_the_fast_path_of_suggest_reaches_no_answer(service: Service, layer: Layer) -> None:
    before = get(service.base, "/suggest?q=harbour")
    service.fuse.set(layer)
    try:
        reply = get(service.base, "/suggest?q=harbour")
    finally:
        service.fuse.set(None)
    assert _giveaways(reply) == []
    assert _kind(reply) in {"failed", 200}
    assert before.json == get(service.base, "/suggest?q=harbour").json


@pytest.mark.rule("E5", "E5.request_id", "E2", "I4")
@pytest.mark.parametrize("era", Era)
def test_a_canary_thrown_at_a_layer_reaches_no_answer_over_stdio(service: Service, era: Era) -> None:
    layers = (
        Layer.TOKEN_STORE, Layer.VERIFIER, Layer.LIMITER, Layer.ENGINE, Layer.SEARCH, Layer.REPORTS, Layer.VALIDATION,
        Layer.RUN, Layer.ENCODING, Layer.RESULT,
    )  # fmt: skip
    variables = {**service.variables, FUSE_VARIABLE: str(service.fuse._file)}
    with stdio_lines(variables, "tests.rules.security.canary") as process:
        try:
            opened = process.ask(_opening(era))
            answers: dict[Layer, bytes] = {}
            for layer in layers:
                service.fuse.set(layer)
                answers[layer] = process.ask(_call(era, "report_code", REPORT))
            service.fuse.set(Layer.SDK)
            listing = process.ask(_message(era, "tools/list", {}))
        finally:
            service.fuse.set(None)
        after = process.ask(_call(era, "report_code", REPORT))
    assert "result" in json.loads(opened)
    assert [word for word in GIVEAWAYS if word.encode() in b"".join((*answers.values(), listing))] == []
    for layer, line in answers.items():
        answer = json.loads(line)
        if layer is Layer.ENCODING or layer is Layer.RESULT:
            assert answer["error"]["code"] == -32603
            continue
        assert (layer, answer["result"]["isError"]) == (layer, True)
        assert json.loads(answer["result"]["content"][0]["text"]) == PROBLEM
        assert f"request={answer['result']['_meta']['x-request-id']}" in process.log
    assert json.loads(listing)["error"]["code"] == -32603
    assert json.loads(after)["result"]["isError"] is False
    assert CANARY in process.log


def _kind(reply: Reply) -> int | str:
    """`failed` for the declared internal error in its three forms; else the status, with the reason of other errors."""
    if "json" not in reply.headers["content-type"]:
        return reply.status
    document = reply.json
    declared = ("application/problem+json", PROBLEM), ("application/json", _rpc_error(document))
    if reply.status == 500 and (reply.headers["content-type"], document) in declared:
        return "failed"
    if document.get("error", {}).get("code") == -32603:
        return "failed"
    result = document.get("result", {})
    if result.get("isError"):
        return "failed" if json.loads(result["content"][0]["text"]) == PROBLEM else "another error"
    return f"{reply.status} {document['detail']}" if "detail" in document else reply.status


def _rpc_error(document: dict[str, Any]) -> dict[str, Any]:
    error = {"code": -32001, "message": PROBLEM["detail"], "data": PROBLEM}
    return {"jsonrpc": "2.0", "id": document.get("id"), "error": error}


def _giveaways(reply: Reply) -> list[str]:
    sent = f"{reply.status} {dict(reply.headers)} {reply.body.decode()}"
    # The description of the interface and of the metrics speak of no fault at all, but of much else.
    words = GIVEAWAYS if len(reply.body) < 10_000 else (CANARY, "CanaryError", "Traceback", "site-packages")
    return [word for word in words if word in sent]


def _request_id(reply: Reply) -> str:
    result = reply.json.get("result", {})
    return str(result.get("_meta", {}).get("x-request-id", reply.headers["x-request-id"]))


def _opening(era: Era) -> bytes:
    if era is Era.HANDSHAKE:
        return _message(era, "initialize", json.loads(b"{%s}" % INITIALIZE))
    return _message(era, "tools/list", {})


def _call(era: Era, tool: str, arguments: dict[str, Any]) -> bytes:
    return _message(era, "tools/call", {"name": tool, "arguments": arguments})


def _message(era: Era, method: str, params: dict[str, Any]) -> bytes:
    if era is Era.STATELESS:
        params = {**params, "_meta": ABOUT}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
