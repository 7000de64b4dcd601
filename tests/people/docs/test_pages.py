"""Every block of every page is run, or stands in the one list of what is not; the shell's blocks run here.

The README has a test of its own, and what is no shell's is run by the test of its subject that the list names.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.people.docs.conftest import MakeWorld
from tests.people.docs.not_run import NOT_RUN, RUN_BY, NotRun, RunBy
from tests.people.docs.page_worlds import WORLDS, plain
from tests.people.docs.pages import PAGES, SHELL, Block, Page
from tests.people.docs.shell import commands
from tests.people.docs.world import CRONTAB, without_comment
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SampleService

# Pages whose blocks are ways to choose from: none goes on from the one before.
_ALTERNATIVES: Final = frozenset({"docs/redis.md"})
# Pages that are typed one after the other, by tests/people/docs/test_readme.py.
_TYPED: Final = frozenset({"README.md", "docs/calling.md", "docs/running.md"})
_LISTED: Final = {(one.page, one.language): one for one in RUN_BY}


def in_a_shell(page: Page) -> list[Block]:
    """The blocks that a shell runs."""
    return [block for block in page.blocks if block.language in {SHELL, CRONTAB}]


def is_known(block: Block) -> bool:
    """Whether it is run, here or by the test of its subject, or is listed as not run."""
    if block.language in {SHELL, CRONTAB} or (block.page, block.language) in _LISTED:
        return True
    return any(one.page == block.page and block.text.startswith(one.text) for one in NOT_RUN)


def stands(listed: NotRun) -> bool:
    """Whether a page still has a command, or a block that begins so."""
    blocks = [block for page in PAGES if listed.page in {"", page.path} for block in page.blocks]
    given = {without_comment(command) for one in blocks if one.language == SHELL for command in commands(one.text)}
    return listed.text in given or any(one.language != SHELL and one.text.startswith(listed.text) for one in blocks)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if in_a_shell(page) and page.path not in _TYPED], ids=lambda page: page.path
)
def test_the_commands_of_a_page_do_what_they_should(
    make_world: MakeWorld, sample: SampleService, tmp_path: Path, page: Page
) -> None:
    world = WORLDS.get(page.path, plain)(make_world, sample, tmp_path)
    for block in in_a_shell(page):
        if page.path in _ALTERNATIVES:
            world.shell.begin()
        world.do(block)
    world.shell.end_lasting()


def test_no_block_is_neither_run_nor_listed() -> None:
    assert [block.location for page in PAGES for block in page.blocks if not is_known(block)] == []


def test_nothing_is_listed_that_no_page_has_any_more() -> None:
    assert [one for one in NOT_RUN if not stands(one)] == []
    there = {(block.page, block.language) for page in PAGES for block in page.blocks}
    assert set(_LISTED) - there == set()
    assert len(_LISTED) == len(RUN_BY)


@pytest.mark.parametrize("listed", RUN_BY, ids=lambda one: f"{one.page} {one.language}")
def test_the_test_that_is_said_to_run_a_block_reads_its_page(listed: RunBy) -> None:
    test = (REPOSITORY / listed.test).read_text(encoding="utf-8")
    helpers = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / listed.test).parent.glob("[!t]*.py"))
    assert Path(listed.page).name in test + helpers


def test_the_list_of_what_is_not_run_is_short_and_gives_reasons() -> None:
    assert len(NOT_RUN) <= 18
    assert all(one.reason for one in NOT_RUN)
    named = [one.instead.split()[0] for one in NOT_RUN]
    assert [name for name in named if name.startswith(("tests/", ".ci/")) and not (REPOSITORY / name).exists()] == []
