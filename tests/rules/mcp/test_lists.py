"""What the transport says of itself: capabilities, lists that are whole and may be cached, a page with no more (I3)."""

import re
from pathlib import Path
from typing import Final

import pytest
from mcp import Client

from service.docs.mcp_page import mcp_page
from tests.rules.mcp.asking import error, read, status_of
from tests.rules.transports.test_mcp_transport import CAPABILITIES, HEADERS, LIBRARY_WORDS, PARAMS
from tests.support.rpc import Era, request

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
    assert [word for word in LIBRARY_WORDS if word in reply.body.decode()] == []


def test_the_page_is_what_the_code_offers() -> None:
    renewal = "docs/mcp.md is stale; renew it by `python -m service.docs.mcp_page > docs/mcp.md`"
    assert PAGE.read_text(encoding="utf-8") == mcp_page(), renewal


def test_the_page_names_the_methods_that_are_served(base: str) -> None:
    named = set(re.findall(r"`([a-z]+(?:/[a-z]+)+)`", mcp_page()))
    assert named == {*LISTS, "resources/read", "completion/complete", "server/discover"}
    for method in named:
        answer = request(base, Era.STATELESS, method).json
        assert answer.get("error", {}).get("code") != UNKNOWN_METHOD
    assert request(base, Era.STATELESS, "resources/subscribe").json["error"]["code"] == UNKNOWN_METHOD
