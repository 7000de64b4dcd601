"""The Markdown pages of the project, read by a real parser, and the one list of what of them is not run by tests."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.real.sources import REPOSITORY

SHELL: Final = "sh"
_NOT_IN_AN_ANCHOR: Final = re.compile(r"[^\w -]")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code on a page, by the page's path below the repository and its first line, from 1.

    The language is the first word behind the fence, empty without one; an indented block is the shell's.
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def location(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    path: str

    @property
    def file(self) -> Path:
        return REPOSITORY / self.path

    @cached_property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(_blocks(self.path, self._tokens))

    @cached_property
    def phrases(self) -> tuple[str, ...]:
        return tuple(" ".join(part.content.split()) for part in self._inline if part.type == "code_inline")

    @cached_property
    def links(self) -> tuple[str, ...]:
        found = ((part.attrGet("href") or part.attrGet("src")) for part in self._inline)
        return tuple(str(target) for target in found if target)

    @cached_property
    def anchors(self) -> frozenset[str]:
        made: set[str] = set()
        for title in self._titles:
            plain = _NOT_IN_AN_ANCHOR.sub("", title.lower()).replace(" ", "-")
            number = sum(1 for one in made if re.fullmatch(rf"{re.escape(plain)}(-\d+)?", one))
            made.add(plain if not number else f"{plain}-{number}")
        return frozenset(made)

    @cached_property
    def _tokens(self) -> list[Token]:
        return MarkdownIt("commonmark").enable("table").parse(self.text)

    @property
    def _inline(self) -> Iterator[Token]:
        for token in self._tokens:
            yield from token.children or ()

    @property
    def _titles(self) -> Iterator[str]:
        for before, token in zip(self._tokens, self._tokens[1:], strict=False):
            if before.type == "heading_open":
                yield "".join(part.content for part in token.children or ())


def _blocks(page: str, tokens: list[Token]) -> Iterator[Block]:
    for token in tokens:
        if token.type in {"fence", "code_block"}:
            assert token.map is not None
            language = next(iter(token.info.split()), "") if token.type == "fence" else SHELL
            yield Block(page, token.map[0] + 1, language, token.content)


def _found() -> Iterator[Path]:
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "indexer/sample/README.md"):
        if (REPOSITORY / name).is_file():
            yield REPOSITORY / name
    yield from sorted((REPOSITORY / "docs").rglob("*.md"))


PAGES: Final = tuple(Page(path.relative_to(REPOSITORY).as_posix()) for path in _found())
BY_PATH: Final = {page.path: page for page in PAGES}


@dataclass(frozen=True, slots=True)
class NotRun:
    page: str
    text: str
    reason: str
    instead: str

    def names(self, page: str, command: str) -> bool:
        return self.page in {"", page} and self.text == command


@dataclass(frozen=True, slots=True)
class RunBy:
    """The blocks of one language on a page, and the test file that runs them."""

    page: str
    language: str
    test: str


_LISTED: Final = tomllib.loads(Path(__file__).with_name("not_run.toml").read_text(encoding="utf-8"))
NOT_RUN: Final = tuple(NotRun(**one) for one in _LISTED["not_run"])
RUN_BY: Final = tuple(RunBy(**one) for one in _LISTED["run_by"])
