"""What a host shows of the server: its page and its icon, where the operator says at which URL they are reached."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from service.app import create_app
from service.settings.service import Settings
from shop_directory.settings.reading import SettingsError
from tests.support.rpc import Era, request
from tests.support.served import get, post, served

PUBLIC: Final = "https://shops.example/directory"
SHOWN: Final = {
    "name": "shop-directory",
    "title": "Shop Directory",
    "version": "0.1.1",
    "websiteUrl": PUBLIC,
    "icons": [{"src": f"{PUBLIC}/assets/icon.svg", "mimeType": "image/svg+xml", "sizes": ["any"]}],
}


@pytest.fixture(scope="module")
def public(index_directory: Path) -> Iterator[str]:
    """The four shops' service, with a public URL."""
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
