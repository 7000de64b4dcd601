"""The page at / with its files under /assets, the widget, and what crawlers ask for: read once, the same for everybody.

Browsers keep each file and ask each time whether it is still the same. Nothing is loaded from elsewhere, and no text
becomes markup.
"""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.routing import Route

from index_mappings.countries import COUNTRY_CODES
from service.http.compression import VARY, accepts_gzip, compressed
from service.http.responses import Answer, Endpoint, Headers
from service.http.security_headers import CONTENT_SECURITY_POLICY, RESOURCE_POLICY
from service.mcp_server.server import ICON_PATH
from service.runtime.wire import entity_tags
from service.web.bundling import bundled, compact_lines, compact_style

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    # Where browsers know of it, no text can become markup or code at all.
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


_METHODS: Final = ("GET", "HEAD")
# Kept as long as wanted, and used only once the service has said that it is still the same.
_UNCHANGED: Final = b"no-cache"
# On other people's pages: an hour old without a question, a day while the next one is fetched.
_FOR_AN_HOUR: Final = b"public, max-age=3600, stale-while-revalidate=86400"
_FOREIGN_PAGES: Final[Headers] = ((RESOURCE_POLICY, b"cross-origin"),)
_ANY_ORIGIN: Final[Headers] = ((b"access-control-allow-origin", b"*"), *_FOREIGN_PAGES)

_HTML: Final = b"text/html; charset=utf-8"
_SCRIPT: Final = b"text/javascript; charset=utf-8"
_STYLE: Final = b"text/css; charset=utf-8"
_TEXT: Final = b"text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page.

    Attributes:
        path: where it is asked for.
        word: its name in the log and the metrics.
        body: its bytes.
        media_type: what they are.
        policy: what a browser lets it do; None for the files that the page loads, which leave that to the page.
        cache: the value of cache-control.
        headers: more headers of its answer.
    """

    path: str
    word: str
    body: bytes
    media_type: bytes
    policy: bytes | None = None
    cache: bytes = _UNCHANGED
    headers: Headers = ()

    @property
    def tag(self) -> str:
        """The entity tag: strong, the same for the same bytes only."""
        return f'"{sha256(self.body).hexdigest()[:32]}"'


def page_files() -> tuple[PageFile, ...]:
    """The page and all that it loads, itself first, read from the package."""
    modules = {**_scripts("page"), "countries.js": _country_codes()}
    return (
        PageFile("/", "page", compact_lines(_text("page/index.html")).encode(), _HTML, POLICY.encode()),
        # MCP hosts show it on pages of their own.
        PageFile(ICON_PATH, "page_asset", _text("page/icon.svg").encode(), b"image/svg+xml", headers=_FOREIGN_PAGES),
        PageFile("/assets/main.js", "page_asset", bundled("main.js", modules).encode(), _SCRIPT),
        PageFile("/assets/page.css", "page_asset", compact_style(_text("page/page.css")).encode(), _STYLE),
    )


def site_files() -> tuple[PageFile, ...]:
    """What belongs to the site and not to the page: the widget with the page that shows it, and files for crawlers."""
    widget = bundled("widget.js", {**_scripts("page"), **_scripts("widget")})
    return (
        PageFile("/widget.js", "widget", widget.encode(), _SCRIPT, cache=_FOR_AN_HOUR, headers=_ANY_ORIGIN),
        PageFile("/widget.html", "widget_page", _text("widget/widget.html").encode(), _HTML, POLICY.encode()),
        PageFile("/assets/example.js", "page_asset", _text("widget/example.js").encode(), _SCRIPT),
        PageFile("/assets/example.css", "page_asset", _text("widget/example.css").encode(), _STYLE),
        PageFile("/favicon.ico", "site_file", _bytes("site/favicon.ico"), b"image/x-icon"),
        PageFile("/robots.txt", "site_file", _text("site/robots.txt").encode(), _TEXT),
    )


def page_routes(page: tuple[PageFile, ...]) -> list[Route]:
    """One route a file."""
    return [Route(file.path, endpoint=_endpoint(file)) for file in page]


def page_words(page: tuple[PageFile, ...]) -> dict[str, str]:
    """The word for each path, as the log and the metrics name it."""
    return {file.path: file.word for file in page}


def _endpoint(file: PageFile) -> Endpoint:
    headers: Headers = ((b"cache-control", file.cache), *file.headers)
    if file.policy is not None:
        headers = (*headers, (CONTENT_SECURITY_POLICY, file.policy))
    # Other bytes need another strong tag.
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

    return Endpoint(_METHODS, answer)


def _bytes(path: str) -> bytes:
    return files(__package__).joinpath(path).read_bytes()


def _text(path: str) -> str:
    return _bytes(path).decode("utf-8")


def _scripts(folder: str) -> dict[str, str]:
    """The modules of a folder by their names."""
    found = files(__package__).joinpath(folder).iterdir()
    return {file.name: file.read_text(encoding="utf-8") for file in found if file.name.endswith(".js")}


def _country_codes() -> str:
    """A module with the codes that the interface takes (R4): the page has no list of its own."""
    return f'export const COUNTRY_CODES = "{" ".join(sorted(COUNTRY_CODES))}".split(" ");\n'
