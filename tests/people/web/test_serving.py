"""How the page is served: strictly, small, cached by browsers and revalidated each time, with nothing of others."""

import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Final

import pytest

from index_mappings.countries import COUNTRY_CODES
from service.mcp_server.server import ICON_PATH
from service.web.bundling import modules_of
from service.web.pages import page_files, page_labels
from tests.people.web.conftest import Site
from tests.support.served import ask, get

FILES: Final = page_files()
PATHS: Final = tuple(file.path for file in FILES)
MODULES: Final = tuple(file for file in FILES if file.path.endswith(".js"))
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
# What every answer carries, and what belongs to the one connection.
_OF_EVERY_RESPONSE: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_PASSING: Final = frozenset({"date", "x-request-id", "content-length", "etag", "connection", "vary"})
# Whatever makes markup or code of a text.
_SINKS: Final = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|setHTML|DOMParser|createContextualFragment|srcdoc"
    r"|\beval\b|\bFunction\(|javascript:|setAttribute\(\"on|\bimport\("
)


class _Markup(HTMLParser):
    """The tags of a document: what they load, and which attributes they have."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: set[str] = set()
        self.attributes: set[str] = set()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.attributes |= given.keys()
        address = given.get("src") or (given.get("href") if tag == "link" else None)
        if address:
            self.loaded.add(address)


def text_of(path: str) -> str:
    (file,) = (file for file in FILES if file.path == path)
    return file.body.decode("utf-8")


def markup() -> _Markup:
    parser = _Markup()
    parser.feed(text_of("/"))
    return parser


def test_the_page_is_served_by_a_strict_policy(site: Site) -> None:
    reply = get(site.base, "/")
    headers = {name: value for name, value in reply.headers.items() if name not in _PASSING}
    assert (reply.status, reply.body) == (200, text_of("/").encode())
    assert headers == {
        **_OF_EVERY_RESPONSE,
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": POLICY,
        "cache-control": "no-cache",
    }


@pytest.mark.parametrize("path", PATHS[1:])
def test_each_file_of_the_page_is_served_as_what_it_is(site: Site, path: str) -> None:
    kinds = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    reply = get(site.base, path)
    headers = {name: value for name, value in reply.headers.items() if name not in _PASSING}
    assert (reply.status, reply.body) == (200, text_of(path).encode())
    # MCP hosts show the icon on pages of their own.
    loaded_by = "cross-origin" if path == ICON_PATH else "same-origin"
    assert headers == {
        **_OF_EVERY_RESPONSE,
        "content-type": kinds[path.rpartition(".")[2]],
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "cache-control": "no-cache",
        "cross-origin-resource-policy": loaded_by,
    }


@pytest.mark.rule("E1")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/assets/main.js"])
def test_the_page_is_only_read(site: Site, method: str, path: str) -> None:
    reply = ask(site.base, method, path)
    assert (reply.status, reply.json["code"], reply.headers["allow"]) == (405, "method_not_allowed", "GET, HEAD")


@pytest.mark.rule("E1")
@pytest.mark.parametrize(
    "path",
    [
        "/index.html",
        "/assets",
        "/assets/",
        "/assets/index.html",
        "/assets/../pages.py",
        "/assets/%2e%2e/pages.py",
        "//",
    ],
)
def test_nothing_but_the_files_of_the_page_is_handed_out(site: Site, path: str) -> None:
    reply = get(site.base, path)
    assert (reply.status, reply.json["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", PATHS)
def test_a_file_that_a_browser_has_is_not_sent_again(site: Site, path: str) -> None:
    first = get(site.base, path)
    tag = first.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = get(site.base, path, if_none_match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == "no-cache"
    assert get(site.base, path, if_none_match='"other"').body == first.body


def test_each_file_has_a_tag_of_its_own() -> None:
    assert len({file.tag for file in FILES}) == len(FILES)


def test_the_page_loads_all_of_its_files_and_no_others() -> None:
    assert {f"/{address}" for address in markup().loaded} == set(PATHS[1:])
    assert not [
        module.path for module in MODULES if re.search(r"^(import|export)\b", module.body.decode(), re.MULTILINE)
    ]


def test_nothing_comes_from_elsewhere() -> None:
    namespace = "http://www.w3.org/2000/svg"
    for file in FILES:
        # The address of a shop's own site is a link, and nothing that is loaded.
        text = file.body.decode().replace(namespace, "").replace("`https://${", "")
        assert not re.search(r"[a-z]+://|url\(|@import|[\"'(=]//", text), file.path


def test_the_document_holds_no_style_and_no_script_of_its_own() -> None:
    found = markup()
    assert "style" not in found.tags
    assert "style" not in found.attributes
    assert not [name for name in found.attributes if name.startswith("on")]
    assert re.findall(r"<script[^>]*>(.*?)</script>", text_of("/"), re.DOTALL) == [""]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.path))
def test_no_module_makes_markup_or_code_of_a_text(module: object) -> None:
    (text,) = (file.body.decode() for file in MODULES if file is module)
    assert _SINKS.findall(text) == []


def test_the_countries_to_choose_from_are_those_that_the_interface_takes() -> None:
    (codes,) = re.findall(r'"([A-Z]{2}(?: [A-Z]{2})+)"', text_of("/assets/main.js"))
    assert codes.split() == sorted(COUNTRY_CODES)


def test_the_log_and_the_metrics_have_two_labels_for_the_page() -> None:
    words = page_labels(FILES)
    assert (words.pop("/"), set(words.values()), len(words)) == ("page", {"page_asset"}, len(FILES) - 1)


def test_every_file_in_the_folder_is_of_the_page() -> None:
    found = {file.name: file for file in files("service.web").joinpath("page").iterdir()}
    modules = {name: file.read_text(encoding="utf-8") for name, file in found.items() if name.endswith(".js")}
    served = {path.removeprefix("/assets/") for path in PATHS[1:]} | {"index.html"}
    bundled = set(modules_of("main.js", {**modules, "countries.js": ""})) - {"countries.js"}
    assert found.keys() == served | bundled
