"""What of the pages is not run by the tests, and which blocks are run by the test of their subject: `not_run.toml`.

A line that no page has any more fails, and so does a command that is neither run nor listed.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final


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
