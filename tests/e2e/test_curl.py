"""The commands that the documentation gives to people work as they stand, with curl."""

import json
import shutil
import subprocess
from typing import Any, Final

import pytest

from tests.worlds import BOOKS_VIEW

CURL: Final = shutil.which("curl")
pytestmark = pytest.mark.rule("I2", "I3", "I68")

LIST: Final = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
CALL: Final = (
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call",'
    ' "params": {"name": "get_shop", "arguments": {"shop_domain": "shop_books"}}}'
)


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


def test_a_tool_is_called_by_one_line(base: str) -> None:
    status, content_type, shop = _curl(
        f"{base}/tool/get_shop", "-H", "content-type: application/json", "-d", '{"shop_domain": "shop_books"}'
    )
    assert (status, content_type, shop) == ("200", "application/json", BOOKS_VIEW)


def test_a_missing_content_type_is_told_with_the_header_to_send(base: str) -> None:
    status, content_type, problem = _curl(f"{base}/tool/list_categories", "-d", "{}")
    assert (status, content_type, problem["code"]) == ("415", "application/problem+json", "unsupported_media_type")
    assert "content-type: application/json" in problem["detail"]


def test_suggestions_come_for_text_as_curl_encodes_it(base: str) -> None:
    status, _, told = _curl("--get", f"{base}/suggest", "--data-urlencode", "q=Zoë’s Küche 厨")
    assert (status, told["query"], [shop["id"] for shop in told["shops"]]) == (
        "200",
        "Zoë’s Küche 厨",
        ["shop_kitchen"],
    )


def test_mcp_needs_no_handshake_and_no_stream(base: str) -> None:
    headers = ("-H", "content-type: application/json")
    status, content_type, listed = _curl(f"{base}/mcp", *headers, "-d", LIST)
    assert (status, content_type) == ("200", "application/json")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["find_shop", "list_categories", "get_shop"]
    _, _, called = _curl(f"{base}/mcp", *headers, "-d", CALL)
    assert called["result"]["structuredContent"] == BOOKS_VIEW
