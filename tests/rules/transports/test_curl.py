"""The commands that the documentation gives to people work as they stand, with curl."""

import json
import shutil
import subprocess
from typing import Any, Final

import pytest

from service.tools.registry import REGISTRY
from service.tools.tool import TokenRule
from tests.support.sample import SampleService
from tests.support.worlds import BOOKS_VIEW

CURL: Final = shutil.which("curl")
pytestmark = pytest.mark.rule("I2", "I3", "I68")

LIST: Final = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
CALL: Final = (
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call",'
    ' "params": {"name": "get_shop", "arguments": {"shop_domain": "shop_books"}}}'
)

SHOP: Final = '{"shop_domain": "lumen-larch.internal"}'
# A call of each tool that the sample answers, and a field of its answer.
ON_THE_SAMPLE: Final = {
    "find_shop": ('{"query": "lumen"}', "results"),
    "list_categories": ("{}", "results"),
    "get_shop": (SHOP, "domain"),
    "get_shops": ('{"shop_domains": ["lumen-larch.internal"]}', "found"),
    "list_coupons": (SHOP, "withheld"),
    "get_shipping_policy": (SHOP, "collected"),
    "get_trust": (SHOP, "signal_coverage"),
    "report_code": ('{"shop_domain": "lumen-larch.internal", "code": "LARCH-10", "reason": "invalid"}', "status"),
    "report_issue": (
        '{"subject_type": "shop", "shop_domain": "lumen-larch.internal", "reason": "unreachable"}',
        "status",
    ),
    "monetize_offer": ('{"offer_id": "off_004391243f48"}', "monetization"),
    "resolve_checkout_url": ('{"offer_id": "off_004391243f48"}', "checkout_url"),
    "resolve_conflict": ('{"from_shop_id": "lumen-larch.internal"}', "candidates"),
}


def _curl(*arguments: str) -> tuple[str, str, Any]:
    assert CURL is not None, "these tests need curl"
    written = subprocess.run(
        [CURL, "--silent", "--show-error", "--write-out", "\n%{http_code}\n%{content_type}", *arguments],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    ).stdout
    body, status, content_type = written.rsplit("\n", 2)
    return status, content_type, json.loads(body)


def test_a_missing_content_type_is_refused_with_the_header_to_send(base: str) -> None:
    status, content_type, problem = _curl(f"{base}/tool/list_categories", "-d", "{}")
    assert (status, content_type, problem["code"]) == ("415", "application/problem+json", "unsupported_media_type")
    assert "content-type: application/json" in problem["detail"]


def test_suggestions_come_for_text_as_curl_encodes_it(base: str) -> None:
    status, _, answer = _curl("--get", f"{base}/suggest", "--data-urlencode", "q=Zoë’s Küche 厨")
    assert (status, answer["query"], [shop["id"] for shop in answer["shops"]]) == (
        "200",
        "Zoë’s Küche 厨",
        ["shop_kitchen"],
    )


def test_mcp_needs_no_handshake_and_no_stream(base: str) -> None:
    headers = ("-H", "content-type: application/json")
    status, content_type, listed = _curl(f"{base}/mcp", *headers, "-d", LIST)
    assert (status, content_type) == ("200", "application/json")
    assert [tool["name"] for tool in listed["result"]["tools"]] == [tool.name for tool in REGISTRY]
    _, _, called = _curl(f"{base}/mcp", *headers, "-d", CALL)
    assert called["result"]["structuredContent"] == BOOKS_VIEW


@pytest.mark.rule("I1", "I78", "I79.more_reads", "I80", "I59", "I64", "I65", "I66")
@pytest.mark.parametrize("tool", REGISTRY, ids=lambda tool: tool.name)
def test_each_tool_of_the_sample_is_one_line_with_the_token_where_it_is_needed(
    sample: SampleService,
    tool: Any,  # noqa: ANN401 - a Tool of any request
) -> None:
    data, field = ON_THE_SAMPLE[tool.name]
    line = (f"{sample.base}/tool/{tool.name}", "-H", "content-type: application/json", "-d", data)
    status, content_type, answer = _curl(*line, "-H", f"x-api-token: {sample.token}")
    assert (status, content_type, field in answer) == ("200", "application/json", True)
    status, content_type, without = _curl(*line)
    if tool.token is TokenRule.REQUIRED:
        assert (status, content_type, without["code"]) == ("401", "application/problem+json", "token_required")
    else:
        assert (status, content_type, without) == ("200", "application/json", answer)
