"""The page at / with its files under /assets: read once at the start, and the same for everybody.

Browsers keep each file and ask each time whether it is still the same. Nothing is loaded from elsewhere, and no text
becomes markup.
"""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final

from starlette.routing import Route

from index_mappings.countries import COUNTRY_CODES
from service.rest.answers import Answer, Asked, Endpoint, Headers
from service.rest.compression import VARY, accepts_gzip, compressed
from service.rest.security_headers import CONTENT_SECURITY_POLICY, RESOURCE_POLICY
from service.wire import entity_tags, header

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    # Where browsers know of it, no text can become markup or code at all.
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

ICON_PATH: Final = "/assets/icon.svg"

_METHODS: Final = ("GET", "HEAD")
_FOLDER: Final = "page"
_PAGE: Final = "index.html"
_COUNTRIES: Final = "countries.js"
# Kept as long as wanted, and used only once the service has said that it is still the same.
_CACHE: Final = (b"cache-control", b"no-cache")
_MEDIA_TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page.

    Attributes:
        path: where it is asked for.
        word: its name in the log and the measures.
        body: its bytes.
        media_type: what they are.
        policy: what a browser lets it do; None for the files that the page loads, which leave that to the page.
    """

    path: str
    word: str
    body: bytes
    media_type: bytes
    policy: bytes | None = None

    @property
    def tag(self) -> str:
        """The entity tag: strong, the same for the same bytes only."""
        return f'"{sha256(self.body).hexdigest()[:32]}"'


def page_files() -> tuple[PageFile, ...]:
    """All files of the page, itself first, read from the package.

    Raises:
        KeyError: there is a file of a kind that no media type is known of.
    """
    found = {file.name: file.read_bytes() for file in files(__package__).joinpath(_FOLDER).iterdir()}
    found[_COUNTRIES] = _country_codes()
    page = PageFile("/", "page", found.pop(_PAGE), _media_type(_PAGE), POLICY.encode())
    return page, *(
        PageFile(f"/assets/{name}", "page_asset", body, _media_type(name)) for name, body in sorted(found.items())
    )


def page_routes(page: tuple[PageFile, ...]) -> list[Route]:
    """One route a file."""
    return [Route(file.path, endpoint=_endpoint(file)) for file in page]


def page_words(page: tuple[PageFile, ...]) -> dict[str, str]:
    """The word for each path, as the log and the measures name it."""
    return {file.path: file.word for file in page}


def _endpoint(file: PageFile) -> Endpoint:
    headers: Headers = (_CACHE,)
    if file.path == ICON_PATH:
        # MCP hosts show it on pages of their own.
        headers = (*headers, (RESOURCE_POLICY, b"cross-origin"))
    if file.policy is not None:
        headers = (*headers, (CONTENT_SECURITY_POLICY, file.policy))
    # Other bytes need another strong tag.
    packed_tag = f'{file.tag[:-1]}-gzip"'
    packed = compressed(Answer(200, file.body, file.media_type, (*headers, (b"etag", packed_tag.encode()))))
    if packed is not None:
        headers = (*headers, VARY)
    plain = Answer(200, file.body, file.media_type, (*headers, (b"etag", file.tag.encode())))

    async def answer(asked: Asked) -> Answer:
        whole, tag = plain, file.tag
        if packed is not None and accepts_gzip(asked.headers):
            whole, tag = packed, packed_tag
        known = entity_tags(header(asked.headers, b"if-none-match"))
        unchanged = tag in known or "*" in known
        return Answer(304, b"", None, (*headers, (b"etag", tag.encode()))) if unchanged else whole

    return Endpoint(_METHODS, answer)


def _media_type(name: str) -> bytes:
    return _MEDIA_TYPES[PurePosixPath(name).suffix]


def _country_codes() -> bytes:
    """A module with the codes that the interface takes (R4): the page has no list of its own."""
    return f'export const COUNTRY_CODES = "{" ".join(sorted(COUNTRY_CODES))}".split(" ");\n'.encode()
