"""Every link of the pages leads somewhere, and every page can be reached from the README."""

from pathlib import Path
from typing import Final

import pytest

from tests.people.docs.pages import BY_PATH, PAGES, Page
from tests.support.real.sources import REPOSITORY

_ELSEWHERE: Final = ("https://", "http://", "mailto:")


def _target(page: Page, link: str) -> tuple[Path, str]:
    path, _, anchor = link.partition("#")
    return ((page.file.parent / path).resolve() if path else page.file), anchor


def _relative(page: Page) -> list[str]:
    return [link for link in page.links if not link.startswith(_ELSEWHERE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_every_relative_link_leads_to_what_is_there(page: Page) -> None:
    dead = []
    for link in _relative(page):
        file, anchor = _target(page, link)
        path = file.relative_to(REPOSITORY).as_posix() if file.is_relative_to(REPOSITORY) else ""
        known = BY_PATH.get(path)
        if not path or not file.exists() or (anchor and (known is None or anchor not in known.anchors)):
            dead.append(link)
    assert dead == []


def _reached_from(page: Page) -> set[str]:
    """The pages that its links name; a link to a folder shows the pages in it, as hosts of repositories list them."""
    found: set[str] = set()
    for link in _relative(page):
        file, _ = _target(page, link)
        files = file.glob("*.md") if file.is_dir() else [file]
        found |= {one.relative_to(REPOSITORY).as_posix() for one in files if one.is_relative_to(REPOSITORY)}
    return found & set(BY_PATH)


def test_every_page_is_reached_from_the_readme() -> None:
    seen: set[str] = set()
    ahead = {"README.md"}
    while ahead:
        path = ahead.pop()
        seen.add(path)
        ahead |= _reached_from(BY_PATH[path]) - seen
    assert set(BY_PATH) - seen == set()
