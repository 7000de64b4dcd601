"""The constant files for people and agents: the start page, the widget, the documentation, and files for crawlers.

Browsers cache each file and revalidate it each time. Pages load nothing from other hosts, Swagger UI included, whose
files come from a package; no text becomes markup.
"""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import ascii_uppercase
from typing import Final

import fastapi_offline
from starlette.requests import Request

from index_mappings.countries import COUNTRY_CODES
from service.docs.llms import llms_page
from service.docs.tools_page import tools_page
from service.http.compression import VARY, accepts_gzip, compressed
from service.http.messages import (
    CONTENT_SECURITY_POLICY,
    HTML,
    READING,
    RESOURCE_POLICY,
    Answer,
    Endpoint,
    Headers,
    entity_tags,
)
from service.identity import ICON_PATH
from service.settings.service import Settings
from service.web.bundling import bundled, compact_style
from service.web.languages import Language
from service.web.site import SOURCES_PATH, Site
from service.web.sitemap import SITEMAP_PATH

# Swagger UI has its icons as data: URLs in its stylesheet.
DOCS_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

# Browsers may cache the file, but must revalidate it before each use.
UNCHANGED: Final = b"no-cache"
# On pages of other sites: used for an hour without revalidation, and for a day while it is revalidated.
_FOR_AN_HOUR: Final = b"public, max-age=3600, stale-while-revalidate=86400"
_FOREIGN_PAGES: Final[Headers] = ((RESOURCE_POLICY, b"cross-origin"),)
_ANY_ORIGIN: Final[Headers] = ((b"access-control-allow-origin", b"*"), *_FOREIGN_PAGES)

_SCRIPT: Final = b"text/javascript; charset=utf-8"
_STYLE: Final = b"text/css; charset=utf-8"
_TEXT: Final = b"text/plain; charset=utf-8"
# An image may be opened by itself, where it could be a document with scripts.
_LOGO_POLICY: Final = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
PAGE_PATH: Final = "/"
DOCS_PATH: Final = "/docs"
TOOLS_PATH: Final = "/tools.md"
LLMS_PATH: Final = "/llms.txt"

_MARKDOWN: Final = b"text/markdown; charset=utf-8"


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file; `label` is its route in the log and the metrics, `cache` the value of cache-control.

    Files that a page loads have no separate content security policy: that of the page applies.
    """

    path: str
    label: str
    body: bytes
    media_type: bytes
    policy: bytes | None = None
    cache: bytes = UNCHANGED
    headers: Headers = ()

    @property
    def tag(self) -> str:
        """The strong entity tag, which is equal only for equal bytes."""
        return f'"{sha256(self.body).hexdigest()[:32]}"'


@cache
def page_script(language: Language) -> PageFile:
    """The script of the pages, with the texts of a language."""
    modules = {**language.modules(_scripts("page")), "countries.js": _countries()}
    return PageFile(language.script_path, "page_asset", bundled("main.js", modules).encode(), _SCRIPT)


def page_files(site: Site) -> tuple[PageFile, ...]:
    """The files that all pages of a site load, in any language."""
    style = compact_style(_text("page/page.css")) + site.style
    logo = () if site.logo is None else (PageFile(*site.logo, policy=_LOGO_POLICY),)
    return (
        # MCP hosts show it on their own pages.
        PageFile(ICON_PATH, "page_asset", _text("page/icon.svg").encode(), b"image/svg+xml", headers=_FOREIGN_PAGES),
        PageFile("/assets/page.css", "page_asset", style.encode(), _STYLE),
        *logo,
    )


def site_files(site: Site) -> tuple[PageFile, ...]:
    """The other files of a site: the widget with its page, and the files for crawlers."""
    sitemap = f"Sitemap: {site.public_url}{SITEMAP_PATH}\n" if site.sitemap else ""
    sources = () if site.sources is None else (PageFile(SOURCES_PATH, "site_file", site.sources.encode(), _TEXT),)
    widget = bundled("widget.js", {**_scripts("page"), **_scripts("widget")})
    return (
        PageFile("/widget.js", "widget", widget.encode(), _SCRIPT, cache=_FOR_AN_HOUR, headers=_ANY_ORIGIN),
        PageFile(
            "/widget.d.ts", "widget", _bytes("widget/widget.d.ts"), _TEXT, cache=_FOR_AN_HOUR, headers=_ANY_ORIGIN
        ),
        PageFile("/widget.html", "widget_page", _named("widget/widget.html", site.name), HTML, site.policy),
        PageFile("/assets/example.js", "page_asset", _text("widget/example.js").encode(), _SCRIPT),
        PageFile("/assets/example.css", "page_asset", _text("widget/example.css").encode(), _STYLE),
        PageFile("/favicon.ico", "site_file", _bytes("site/favicon.ico"), b"image/x-icon"),
        PageFile("/robots.txt", "site_file", f"{_text('site/robots.txt')}{sitemap}".encode(), _TEXT),
        *sources,
    )


def file_endpoint(file: PageFile) -> Endpoint:
    """The endpoint of a file."""
    headers: Headers = ((b"cache-control", file.cache), *file.headers)
    if file.policy is not None:
        headers = (*headers, (CONTENT_SECURITY_POLICY, file.policy))
    # The compressed bytes need their own strong tag.
    packed_tag = f'{file.tag[:-1]}-gzip"'
    packed = compressed(Answer(200, file.body, file.media_type, (*headers, (b"etag", packed_tag.encode()))))
    if packed is not None:
        headers = (*headers, VARY)
    plain = Answer(200, file.body, file.media_type, (*headers, (b"etag", file.tag.encode())))

    async def answer(request: Request) -> Answer:
        whole, tag = plain, file.tag
        if packed is not None and accepts_gzip(request.headers.raw):
            whole, tag = packed, packed_tag
        known = entity_tags(request.headers.get("if-none-match"))
        unchanged = tag in known or "*" in known
        return Answer(304, b"", None, (*headers, (b"etag", tag.encode()))) if unchanged else whole

    return Endpoint(READING, answer)


def _bytes(path: str) -> bytes:
    return files(__package__).joinpath(path).read_bytes()


def _text(path: str) -> str:
    return _bytes(path).decode("utf-8")


def _named(path: str, name: str) -> bytes:
    """A page under the name of the operator's directory."""
    return _text(path).replace("Shop Directory", escape(name)).encode()


def _scripts(folder: str) -> dict[str, str]:
    found = files(__package__).joinpath(folder).iterdir()
    return {file.name: file.read_text(encoding="utf-8") for file in found if file.name.endswith(".js")}


def _countries() -> str:
    """A module with the country codes of the interface (R4), so that the page has no copy.

    The second letters of the codes, in groups by the first one, which takes half of the bytes.
    """
    groups = ",".join(
        "".join(sorted(code[1] for code in COUNTRY_CODES if code[0] == first)) for first in ascii_uppercase
    )
    codes = "[...group].map((letter) => String.fromCharCode(65 + index) + letter)"
    return f'export const COUNTRY_CODES = "{groups}".split(",").flatMap((group, index) => {codes});\n'


def docs_files(settings: Settings) -> tuple[PageFile, ...]:
    """All files of the documentation, read from the packages; llms.txt states the quotas of the settings."""
    return (
        PageFile(DOCS_PATH, "docs", _named("reference/docs.html", settings.site_name), HTML, DOCS_POLICY),
        _asset("docs.js", _bytes("reference/docs.js"), _SCRIPT),
        _asset("docs.css", _bytes("reference/docs.css"), _STYLE),
        _asset("swagger-ui-bundle.js", _packaged("swagger-ui-bundle.js"), _SCRIPT),
        _asset("swagger-ui.css", _packaged("swagger-ui.css"), _STYLE),
        PageFile(TOOLS_PATH, "tools_page", tools_page().encode(), _MARKDOWN),
        # By convention llms.txt is plain text, although its content is Markdown.
        PageFile(LLMS_PATH, "llms", llms_page(settings).encode(), _TEXT),
    )


def _asset(name: str, body: bytes, media_type: bytes) -> PageFile:
    return PageFile(f"{DOCS_PATH}/assets/{name}", "docs_asset", body, media_type)


def _packaged(name: str) -> bytes:
    return files(fastapi_offline).joinpath("static", name).read_bytes()
