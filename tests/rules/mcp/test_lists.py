"""What the transport says of itself to any client, and how much of it a model has to read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from mcp import Client

from service.app import create_app
from service.auth.secrets import new_token_text
from service.mcp_server.prompts import MAX_VALUES, PROMPTS, fill
from service.mcp_server.resources import CATEGORIES, SHOP
from service.mcp_server.server import CACHED_LISTS, CACHED_SECONDS, mcp_tool
from service.settings.service import Settings
from service.tools.find_shop import FIND_SHOP
from service.tools.registry import REGISTRY
from service.tools.tool import TokenRule
from shop_directory.search.bounds import MAX_Q, MAX_SUGGESTIONS
from shop_directory.settings.reading import SettingsError
from tests.rules.mcp.asking import error, read, status_of
from tests.rules.transports.test_mcp_transport import CAPABILITIES, HEADERS, PARAMS, client_program, printed_by
from tests.support.callers import issue
from tests.support.sample import SampleService, sample_service
from tests.support.served import get, post, served
from tests.support.transports import stdio_transport
from tests.support.wire import Era, call, request

ERAS: Final = list(Era)
PAGE: Final = Path(__file__).parents[3] / "docs" / "mcp.md"
LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
UNKNOWN_METHOD: Final = -32601
REF: Final = '"ref":{"type":"ref/prompt","name":"check_shop"}'
MALFORMED: Final = [
    ("resources/read", "", None),
    ("resources/read", '"uri":null', None),
    ("resources/list", '"cursor":5', None),
    ("resources/templates/list", '"cursor":{}', None),
    ("prompts/list", '"cursor":[]', None),
    ("prompts/get", "", None),
    ("prompts/get", '"name":"check_shop","arguments":[]', "check_shop"),
    ("prompts/get", '"name":"check_shop","arguments":{"shop_domain":5}', "check_shop"),
    ("prompts/get", '"name":"check_shop","arguments":{"shop_domain":{"a":"b"}}', "check_shop"),
    ("prompts/get", '"name":"check_shop","arguments":"shop_domain"', "check_shop"),
    ("completion/complete", "", None),
    ("completion/complete", REF, None),
    ("completion/complete", f'{REF},"argument":"shop_domain"', None),
    ("completion/complete", f'{REF},"argument":{{"name":"shop_domain"}}', None),
    ("completion/complete", f'{REF},"argument":{{"name":"shop_domain","value":5}}', None),
    ("completion/complete", '"ref":"check_shop","argument":{"name":"shop_domain","value":""}', None),
    ("completion/complete", '"ref":{"type":"ref/tool","name":"x"},"argument":{"name":"a","value":""}', None),
    ("completion/complete", '"ref":{"type":"ref/resource"},"argument":{"name":"a","value":""}', None),
    ("completion/complete", f'{REF},"argument":{{"name":"shop_domain","value":""}},"context":5', None),
]
PUBLIC: Final = "https://shops.example/directory"
SHOWN: Final = {
    "name": "shop-directory",
    "title": "Shop Directory",
    "version": "0.1.1",
    "websiteUrl": PUBLIC,
    "icons": [{"src": f"{PUBLIC}/assets/icon.svg", "mimeType": "image/svg+xml", "sizes": ["any"]}],
}
# Named here, so that tests of this folder may ask for it.
__all__ = ["client_program"]

FIND_A_CODE: Final = next(prompt for prompt in PROMPTS if prompt.name == "find_a_code")


@pytest.mark.rule("I3", "E2.protocol")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_capabilities_are_what_there_is_and_no_more(base: str, mode: str) -> None:
    async with Client(f"{base}/mcp", mode=mode) as client:
        capabilities = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
        instructions = client.instructions or ""
        resources, templates = await client.list_resources(), await client.list_resource_templates()
        prompts = await client.list_prompts()
    assert capabilities == CAPABILITIES
    uris = [resource.uri for resource in resources.resources]
    uris += [template.uri_template for template in templates.resource_templates]
    assert uris == ["taxonomy://categories", "shop://{domain}"]
    assert [name for name in (*uris, *(one.name for one in prompts.prompts)) if name not in instructions] == []


@pytest.mark.rule("C1.http", "I3")
@pytest.mark.parametrize("method", LISTS)
def test_lists_are_whole_and_may_be_cached_by_everybody(base: str, method: str) -> None:
    modern, older = (request(base, era, method).json["result"] for era in ERAS)
    assert (modern["ttlMs"], modern["cacheScope"], "nextCursor" in modern) == (300_000, "public", False)
    assert older == {LISTS[method]: modern[LISTS[method]]}


@pytest.fixture
def token(tmp_path: Path) -> str:
    return issue(tmp_path / "tokens.sqlite").text


@pytest.mark.rule("F16", "E2.protocol", "C1.http")
async def test_a_setting_lists_only_usable_tools_for_callers_without_a_token(
    index_directory: Path, tmp_path: Path, token: str
) -> None:
    everything = [tool.name for tool in REGISTRY]
    tokenless = [tool.name for tool in REGISTRY if tool.token is not TokenRule.REQUIRED]
    tokens = tmp_path / "tokens.sqlite"
    callers: list[tuple[str | None, list[str]]] = [
        (None, tokenless),
        (new_token_text(), tokenless),
        ("x", tokenless),
        (token, everything),
    ]
    settings = Settings(data_dir=index_directory, token_file=tokens, mcp_anonymous_tools="usable", request_timeout=10.0)
    with served(create_app(settings)) as url:
        for text, names in callers:
            modern, older = (request(url, era, "tools/list", x_api_token=text or "").json["result"] for era in ERAS)
            assert [tool["name"] for tool in modern["tools"]] == [tool["name"] for tool in older["tools"]] == names
            assert (modern["ttlMs"], modern["cacheScope"]) == (0, "private")
        assert call(url, Era.STATELESS, "get_trust", b"{}").status == 401
    variables = {"SHOP_DIRECTORY_TOKEN_FILE": str(tokens), "SHOP_DIRECTORY_MCP_ANONYMOUS_TOOLS": "usable"}
    for text, names in callers[::3]:
        given = variables | {"SHOP_DIRECTORY_API_TOKEN": text or ""}
        async with stdio_transport(index_directory, "2026-07-28", given) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == names


@pytest.mark.rule("C1.http", "V3")
def test_what_the_data_say_is_cached_nowhere(base: str) -> None:
    for uri in ("shop://shop_books", "taxonomy://categories"):
        result = read(base, Era.STATELESS, uri).json["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.rule("E6", "E5", "E1.transport", "R5")
@pytest.mark.parametrize(
    ("method", "params"),
    [("resources/read", '"uri":5'), ("resources/read", '"uri":["shop://shop_books"]'), ("prompts/get", '"name":5')],
)
def test_a_name_that_is_no_text_agrees_with_no_header(base: str, method: str, params: str) -> None:
    modern, older = (request(base, era, method, params.encode(), name="shop_books") for era in ERAS)
    assert modern.summary == (400, "application/json", error(-32020, HEADERS))
    assert older.summary == (200, "application/json", error(-32602, PARAMS))


@pytest.mark.rule("E6", "E5", "E1.transport", "E2.protocol")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("method", "params", "name"), MALFORMED)
def test_malformed_params_are_refused_in_our_words(
    base: str, era: Era, method: str, params: str, name: str | None
) -> None:
    reply = request(base, era, method, params.encode(), name=name)
    assert reply.summary == (status_of(era, -32602), "application/json", error(-32602, PARAMS))


def test_the_page_has_what_the_code_offers() -> None:
    page = PAGE.read_text(encoding="utf-8")
    lines = [
        f"The {len(REGISTRY)} [tools](tools.md) of REST, with the same answers.",
        f"| `{CATEGORIES.uri}` | {CATEGORIES.description} |",
        f"| `{SHOP.uri_template}` | {SHOP.description} |",
        *(f"- `{prompt.name}`: *{prompt.title}.* {prompt.description}" for prompt in PROMPTS),
    ]
    rows = [
        f"| `{prompt.name}` | `{argument.name}` | {'yes' if argument.required else 'no'} | {argument.description} | "
        for prompt in PROMPTS
        for argument in prompt.arguments or ()
    ]
    assert [line for line in lines if line not in page.splitlines()] == []
    assert re.findall(r"^(\| `\w+` \| `\w+` \| .*? \| .*? \| )", page, re.MULTILINE) == rows
    methods = ", ".join(f"`{method}`" for method in CACHED_LISTS)
    for stated in (
        f"domains, at most {MAX_SUGGESTIONS}.",
        f"slugs, at most {MAX_VALUES}, with",
        f"takes, at most {MAX_VALUES}, with",
        f"At most {MAX_Q} characters",
        f"{methods}: `ttlMs` {CACHED_SECONDS}000,",
    ):
        assert stated in " ".join(page.split())


def test_the_page_names_the_methods_that_are_served(base: str) -> None:
    named = set(re.findall(r"`([a-z]+(?:/[a-z]+)+)`", PAGE.read_text(encoding="utf-8")))
    assert named == {*LISTS, "resources/read", "completion/complete", "server/discover"}
    for method in named:
        answer = request(base, Era.STATELESS, method).json
        assert answer.get("error", {}).get("code") != UNKNOWN_METHOD
    assert request(base, Era.STATELESS, "resources/subscribe").json["error"]["code"] == UNKNOWN_METHOD


@pytest.fixture(scope="module")
def public(index_directory: Path) -> Iterator[str]:
    with served(create_app(Settings(data_dir=index_directory, public_url=PUBLIC, request_timeout=10.0))) as url:
        yield url


@pytest.mark.rule("I3")
def test_a_handshake_names_the_page_and_its_icon(public: str) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    reply = post(public, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert reply.json["result"]["serverInfo"] == SHOWN


@pytest.mark.rule("I3")
@pytest.mark.parametrize(("method", "params"), [("server/discover", b""), ("tools/call", b'"name":"list_categories"')])
def test_results_of_the_newer_era_name_them_too(public: str, method: str, params: bytes) -> None:
    name = "list_categories" if params else None
    result = request(public, Era.STATELESS, method, params, name=name).json["result"]
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == SHOWN


def test_a_page_of_another_origin_may_show_the_icon_and_no_other_file(public: str) -> None:
    policies = [
        get(public, path).headers["cross-origin-resource-policy"] for path in ("/assets/icon.svg", "/", "/health")
    ]
    assert policies == ["cross-origin", "same-origin", "same-origin"]


@pytest.mark.parametrize(
    "url", ["shops.example", "https://shops.example/", "ftp://shops.example", "https://a@b.example", "https://a/?b"]
)
def test_what_is_no_such_url_stops_the_start(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SHOP_DIRECTORY_PUBLIC_URL", url)
    with pytest.raises(SettingsError, match="SHOP_DIRECTORY_PUBLIC_URL is wrong"):
        Settings.load()


@pytest.mark.rule("I3", "I5", "V2")
@pytest.mark.parametrize("era", ["legacy", "2026-07-28", "auto"])
def test_the_typescript_client_is_offered_the_same(base: str, client_program: Path, era: str) -> None:
    text = post(base, "/tool/get_shop", {"shop_domain": "shop_books"}).body.decode()
    prompt = fill(FIND_A_CODE, {"shop_domain": "shop_books"})
    assert printed_by(client_program.with_name("more.ts"), base, era) == {
        "resources": ["taxonomy://categories"],
        "templates": ["shop://{domain}"],
        "prompts": ["check_shop", "find_a_code", "compare_shops"],
        "read": [{"uri": "shop://harbour-lane-books.example", "mimeType": "application/json", "text": text}],
        "prompt": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "completed": {"values": ["harbour-lane-books.example"], "hasMore": False},
        "missing": {"code": -32002 if era == "legacy" else -32602},
    }


PERFORMANCE_PAGE: Final = Path(__file__).parents[3] / "docs" / "performance.md"
# The fewest that usual tokenizers (o200k_base, cl100k_base) were measured to put into one token: 4.2 of schemas,
# 3.1 of answers, whose ids and times are no words.
CHARACTERS_OF_SCHEMAS: Final = 4
CHARACTERS_OF_ANSWERS: Final = 3
ROW: Final = re.compile(r"^\| `(\w+)` `(\{.*\})` \| ([\d,]+) \|$", re.MULTILINE)
STEP: Final = re.compile(r"^\d\. `(\w+)` `(\{.*\})`$", re.MULTILINE)
LIST_ROW: Final = re.compile(r"^\| `tools/list` \| ([\d,]+) \|$", re.MULTILINE)
TOOLS: Final = [mcp_tool(tool) for tool in REGISTRY]


class Bound(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    tokens: int


BOUNDS: Final = [
    Bound(tool, json.loads(arguments), int(tokens.replace(",", "")))
    for tool, arguments, tokens in ROW.findall(PERFORMANCE_PAGE.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleService]:
    with sample_service(tmp_path_factory.mktemp("sample")) as service:
        yield service


@pytest.mark.rule("F17", "R2.schema", "I5")
@pytest.mark.parametrize("era", list(Era))
def test_the_list_of_tools_takes_at_most_as_many_tokens_as_the_page_says(base: str, era: Era) -> None:
    (bound,) = LIST_ROW.findall(PERFORMANCE_PAGE.read_text(encoding="utf-8"))
    tools = request(base, era, "tools/list").json["result"]["tools"]
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    assert bound == "5,300"
    assert len(text) / CHARACTERS_OF_SCHEMAS <= 5_300


@pytest.mark.rule("R2.schema", "R2.ignored")
def test_no_schema_of_a_tool_repeats_what_the_openapi_document_says() -> None:
    listed = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TOOLS])
    assert [word for word in ("examples", "anyOf", "oneOf", "allOf", "$ref") if f'"{word}"' in listed] == []
    assert _described(tool.output_schema for tool in TOOLS) == {
        "A shop as in find_shop.",
        "As get_shipping_policy answers.",
        "As in resolve_checkout_url.",
        "As returns: country, source, checked_at, methods, as_stated.",
        "As returns: country, source, checked_at, as_stated.",
        "With fields of the top level.",
    }


@pytest.mark.rule("A1.size")
@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: f"{bound.tool} {json.dumps(bound.arguments)}")
def test_an_answer_takes_no_more_tokens_than_the_page_says(sample: SampleService, bound: Bound) -> None:
    reply = post(sample.base, f"/tool/{bound.tool}", bound.arguments, x_api_token=sample.token)
    tokens = len(reply.body.decode()) / CHARACTERS_OF_ANSWERS
    assert (reply.status, tokens <= bound.tokens, tokens >= bound.tokens / 2) == (200, True, True)


@pytest.mark.rule("A1.size")
def test_the_table_has_every_tool_and_ten_shops_take_at_most_fifteen_hundred_tokens() -> None:
    assert {bound.tool for bound in BOUNDS} == {tool.name for tool in REGISTRY}
    (ten,) = [bound.tokens for bound in BOUNDS if bound.arguments == {"query": "", "limit": 10}]
    assert ten <= 1_500


@pytest.mark.rule("A1.size")
def test_find_shop_is_described_with_the_numbers_of_the_table() -> None:
    of_limit = {bound.arguments.get("limit"): f"{bound.tokens:,}" for bound in BOUNDS if bound.tool == FIND_SHOP.name}
    stated = f"({of_limit[5]} tokens; the default 50: {of_limit[None]})"
    assert stated in FIND_SHOP.description


@pytest.mark.rule("F17", "F1", "F3", "A1.size")
def test_a_shop_that_ships_somewhere_and_has_a_code_is_found_in_the_two_calls_of_the_page(
    sample: SampleService,
) -> None:
    page = PERFORMANCE_PAGE.read_text(encoding="utf-8")
    (stated,) = re.findall(r"takes two calls after the list of tools, and ([\d,]+) tokens", page)
    found, coupons = [
        post(sample.base, f"/tool/{tool}", json.loads(arguments)) for tool, arguments in STEP.findall(page)
    ]
    assert {shop["ships_to"] for shop in found.json["results"]} == {"yes"}
    assert [entry["shop_domain"] for entry in coupons.json["shops"]] == [
        shop["domain"] for shop in found.json["results"]
    ]
    works_there = [
        any(
            code["verificationStatus"] == "verified_applied" and "AT" in (code["countries"] or ["AT"])
            for code in entry["coupons"]["results"]
        )
        for entry in coupons.json["shops"]
    ]
    assert works_there == [True] * 3
    tokens = len((found.body + coupons.body).decode()) / CHARACTERS_OF_ANSWERS
    bound = int(stated.replace(",", ""))
    assert bound / 2 <= tokens <= bound


def _described(schemas: Iterator[Any]) -> set[str]:
    return {found for schema in schemas for found in _descriptions(schema)}


def _descriptions(value: Any) -> Iterator[str]:  # noqa: ANN401 - any part of a schema
    if isinstance(value, dict):
        if isinstance(value.get("description"), str):
            yield value["description"]
        for part in value.values():
            yield from _descriptions(part)
