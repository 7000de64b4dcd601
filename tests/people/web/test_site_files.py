"""What belongs to the site and not to the page: the widget, an icon and rules for crawlers, and how they are served."""

import re

import pytest

from service.web.pages import page_labels, site_files
from tests.people.web.conftest import Site
from tests.support.served import ask, get

MOST_BYTES_OF_THE_WIDGET = 8_000


def test_the_widget_may_be_loaded_by_any_page_and_is_cached_for_an_hour(site: Site) -> None:
    reply = get(site.base, "/widget.js", origin="https://elsewhere.example")

    headers = {name: reply.headers.get(name) for name in (
        "content-type", "access-control-allow-origin", "cross-origin-resource-policy", "cache-control",
    )}  # fmt: skip
    assert (reply.status, headers) == (
        200,
        {
            "content-type": "text/javascript; charset=utf-8",
            "access-control-allow-origin": "*",
            "cross-origin-resource-policy": "cross-origin",
            "cache-control": "public, max-age=3600, stale-while-revalidate=86400",
        },
    )
    again = get(site.base, "/widget.js", if_none_match=reply.headers["etag"])
    assert (again.status, again.body, again.headers["access-control-allow-origin"]) == (304, b"", "*")


def test_the_widget_is_small_and_one_file(site: Site) -> None:
    reply = get(site.base, "/widget.js")

    assert "content-encoding" not in reply.headers
    assert len(reply.body) <= MOST_BYTES_OF_THE_WIDGET
    assert not re.search(rb"(?m)^(import|export)\b", reply.body)


@pytest.mark.parametrize(
    ("path", "media_type", "beginning"),
    [
        ("/favicon.ico", "image/x-icon", b"\x00\x00\x01\x00\x01\x00\x20\x20"),
        ("/robots.txt", "text/plain; charset=utf-8", b"# The start"),
        ("/widget.html", "text/html; charset=utf-8", b"<!doctype html>"),
    ],
)
def test_other_files_of_the_site_are_for_it_alone(site: Site, path: str, media_type: str, beginning: bytes) -> None:
    reply = get(site.base, path)

    assert (reply.status, reply.headers["content-type"]) == (200, media_type)
    assert (reply.headers["cache-control"], reply.headers["cross-origin-resource-policy"]) == (
        "no-cache",
        "same-origin",
    )
    assert reply.body.startswith(beginning)
    assert ask(site.base, "POST", path).status == 405


def test_crawlers_are_excluded_from_searches_and_the_interface(site: Site) -> None:
    lines = get(site.base, "/robots.txt").body.decode().splitlines()

    assert [line for line in lines if not line.startswith("#")] == [
        "User-agent: *",
        *(f"Disallow: {path}" for path in ("/*?q=", "/*&q=", "/suggest", "/tool/", "/mcp", "/api/")),
    ]  # fmt: skip


def test_a_link_to_the_page_has_a_title_and_a_description_to_show(site: Site) -> None:
    found = {
        name: content
        for names, content in re.findall(
            r'<meta ((?:(?:property|name)="[^"]+" )+)content="([^"]+)">', get(site.base, "/").body.decode()
        )
        for name in re.findall(r'"([^"]+)"', names)
    }

    assert {name for name in found if name.startswith(("og:", "twitter:"))} == {
        "og:type", "og:site_name", "og:title", "og:description", "twitter:card",
    }  # fmt: skip
    assert found["og:description"] == found["description"]


def test_the_log_and_the_metrics_know_each_file_of_the_site_by_a_word() -> None:
    assert page_labels(site_files()) == {
        "/widget.js": "widget",
        "/widget.html": "widget_page",
        "/assets/example.js": "page_asset",
        "/assets/example.css": "page_asset",
        "/favicon.ico": "site_file",
        "/robots.txt": "site_file",
    }
