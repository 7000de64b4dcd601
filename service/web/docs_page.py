"""The documentation that the service serves: /docs to read and to try, /tools.md and /llms.txt for agents.

Swagger UI's files come from a package, and the policy of the page forbids a browser to load anything from other hosts.
"""

from importlib.resources import files
from typing import Final

import fastapi_offline

from service.docs.llms import llms_page
from service.docs.tools_page import tools_page
from service.settings.service import Settings
from service.web.pages import PageFile

# Swagger UI has its icons as data: URLs in its stylesheet.
_DIRECTIVES: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
POLICY: Final = "; ".join(_DIRECTIVES)
DOCS_PATH: Final = "/docs"
TOOLS_PATH: Final = "/tools.md"
LLMS_PATH: Final = "/llms.txt"

_HTML: Final = b"text/html; charset=utf-8"
_SCRIPT: Final = b"text/javascript; charset=utf-8"
_STYLE: Final = b"text/css; charset=utf-8"
_MARKDOWN: Final = b"text/markdown; charset=utf-8"
# By convention llms.txt is plain text, although its content is Markdown.
_PLAIN: Final = b"text/plain; charset=utf-8"


def docs_files(settings: Settings) -> tuple[PageFile, ...]:
    """All files of the documentation, read from the packages; llms.txt states the quotas of the settings."""
    return (
        PageFile(DOCS_PATH, "docs", _own("docs.html"), _HTML, POLICY.encode()),
        _asset("docs.js", _own("docs.js"), _SCRIPT),
        _asset("docs.css", _own("docs.css"), _STYLE),
        _asset("swagger-ui-bundle.js", _packaged("swagger-ui-bundle.js"), _SCRIPT),
        _asset("swagger-ui.css", _packaged("swagger-ui.css"), _STYLE),
        PageFile(TOOLS_PATH, "tools_page", tools_page().encode(), _MARKDOWN),
        PageFile(LLMS_PATH, "llms", llms_page(settings).encode(), _PLAIN),
    )


def _asset(name: str, body: bytes, media_type: bytes) -> PageFile:
    return PageFile(f"{DOCS_PATH}/assets/{name}", "docs_asset", body, media_type)


def _own(name: str) -> bytes:
    return files(__package__).joinpath("reference", name).read_bytes()


def _packaged(name: str) -> bytes:
    return files(fastapi_offline).joinpath("static", name).read_bytes()
