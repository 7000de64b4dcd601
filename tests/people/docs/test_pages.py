"""Every block, link and named command of every page: run, leading somewhere, or listed with its reason."""

import asyncio
import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from service.reports.opening import QueueSettings, open_queue
from shop_directory.command_line import command_line
from shop_directory.settings.reading import installed_sides
from tests.people.docs.conftest import MakeWorld
from tests.people.docs.pages import BY_PATH, NOT_RUN, PAGES, RUN_BY, SHELL, Block, NotRun, Page, RunBy
from tests.people.docs.world import (
    CRONTAB,
    CommandFailedError,
    Shell,
    World,
    commands,
    sample_catalogue,
    without_comment,
)
from tests.rules.reports.stores import report
from tests.support.real.secured import Authority
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SampleService

Begin = Callable[[MakeWorld, SampleService, Path], World]


def plain(make_world: MakeWorld, _sample: SampleService, _folder: Path) -> World:
    return make_world()


def _served(make_world: MakeWorld, sample: SampleService, _folder: Path) -> World:
    tokens = sample.variables["SHOP_DIRECTORY_TOKEN_FILE"]
    return make_world(served=sample.base, SHOP_DIRECTORY_TOKEN_FILE=tokens, TOKEN=sample.token)


def _catalogue(make_world: MakeWorld, _sample: SampleService, folder: Path) -> World:
    catalogue = sample_catalogue(folder / "shops")
    (queries,) = [block.text for block in BY_PATH["docs/indexing.md"].blocks if block.language == "ndjson"]
    (folder / "acceptance.ndjson").write_text(queries, encoding="utf-8")
    (folder / "settings").touch()
    locations = {
        "./my-shops": str(catalogue),
        "/srv/shops": str(catalogue),
        "/etc/shop-directory/settings": str(folder / "settings"),
        "/opt/shop-directory/bin/": "",
        "/var/lib/shop-indexer/builds.jsonl": str(folder / "builds.jsonl"),
    }
    return make_world(stands_for=locations)


def _secrets(make_world: MakeWorld, _sample: SampleService, folder: Path) -> World:
    password = folder / "password"
    password.write_text("of the test\n", encoding="utf-8")
    locations = {
        "/etc/shop-directory/ca.pem": str(Authority(folder).file),
        "/run/secrets/opensearch-service": str(password),
    }
    return make_world(stands_for=locations)


def _reported(make_world: MakeWorld, _sample: SampleService, folder: Path) -> World:
    path = folder / "reports.sqlite"

    async def append() -> None:
        queue = open_queue(QueueSettings(path=path))
        for shop in ("s1", "s2", "s3"):
            await queue.append(report(shop))
        await queue.close()

    asyncio.run(append())
    return make_world(SHOP_DIRECTORY_REPORTS_FILE=str(path))


WORLDS: Final[dict[str, Begin]] = {
    "docs/clients.md": _served,
    "docs/indexing.md": _catalogue,
    "docs/opensearch-security.md": _secrets,
    "docs/rechecks.md": _reported,
}


# Pages whose blocks are ways to choose from: none goes on from the one before.
_ALTERNATIVES: Final = frozenset({"docs/redis.md"})
# Pages that are typed one after the other, by tests/people/docs/test_readme.py.
_TYPED: Final = frozenset({"README.md", "docs/tools.md", "docs/running.md"})
_LISTED: Final = {(one.page, one.language): one for one in RUN_BY}


def in_a_shell(page: Page) -> list[Block]:
    return [block for block in page.blocks if block.language in {SHELL, CRONTAB}]


def is_known(block: Block) -> bool:
    """Whether it is run, here or by the test of its subject, or is listed as not run."""
    if block.language in {SHELL, CRONTAB} or (block.page, block.language) in _LISTED:
        return True
    return any(one.page == block.page and block.text.startswith(one.text) for one in NOT_RUN)


def stands(listed: NotRun) -> bool:
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


PROGRAM: Final = typer.main.get_command(command_line())
GROUPS: Final = frozenset(name for name, found in PROGRAM.commands.items() if hasattr(found, "commands"))  # type: ignore[attr-defined]  # the program is a group
_MODULE: Final = re.compile(r"\bpython -m ([\w.]+)")
_PATH: Final = re.compile(r"^(?:service|indexer|index_mappings|tests|bench|docs|\.ci)/[\w./-]+(?:::\w+)?$")
_SETTING: Final = re.compile(r"\bSHOP_DIRECTORY_[A-Z_]*[A-Z]\b(?!\.\.)")
SETTINGS: Final = {
    f"SHOP_DIRECTORY_{name.upper()}{file}"
    for side in installed_sides().values()
    for name in side.model_fields
    for file in ("", "_FILE")
}
# Where tests find the development data.
OF_OTHERS: Final = {"SHOP_DIRECTORY_DEV_DATA"}
_VARIABLE: Final = re.compile(r"^[A-Z_]+=\S*$")
_TARGET: Final = re.compile(r"^([a-z-]+):.*", re.MULTILINE)
TARGETS: Final = frozenset(_TARGET.findall((REPOSITORY / "Makefile").read_text(encoding="utf-8")))


def faults(words: list[str]) -> list[str]:
    """What of a command line the program does not know; the values of options and arguments may be anything."""
    found: Any = PROGRAM
    given = list(words)
    while given and (known := _commands(found)):
        word = given.pop(0)
        if word.startswith("-"):
            if word not in _options(found):
                return [word]
        elif word in {"…", "..."}:
            return []
        elif word not in known:
            return [word]
        else:
            found = known[word]
    return [word for word in given if word.startswith("-") and word.partition("=")[0] not in _options(found)]


@cache
def _commands(group: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a command of the library that typer brings along
    """The commands of a group; the program makes them again at each look."""
    found: Mapping[str, Any] = getattr(group, "commands", {})
    return found


def _options(found: Any) -> set[str]:  # noqa: ANN401 - a command of the library that typer brings along
    return {"--help", *(option for one in found.params for option in (*one.opts, *one.secondary_opts))}


def command_names(page: Page) -> list[list[str]]:
    """The command lines of `shop-directory` on a page; its groups may be named without the program."""
    lines = []
    for phrase in page.phrases:
        words = shlex.split(phrase, comments=True) if phrase.count("'") % 2 == 0 else phrase.split()
        while words and _VARIABLE.match(words[0]):
            del words[0]
        if words and words[0].endswith("shop-directory") and not words[0].startswith("{"):
            lines.append(words[1:])
        elif len(words) > 1 and words[0] in GROUPS and words[1] not in {"=", "/"}:
            lines.append(words)
    return lines


def unknown(page: Page) -> set[str]:
    """What a page names and nobody has: commands and options, targets of make, modules, files and folders, settings."""
    made = [word for phrase in page.phrases if phrase.startswith("make ") for word in phrase.split()[1:]]
    modules = [found[1] for phrase in page.phrases if (found := _MODULE.search(phrase))]
    paths = [phrase.partition("::")[0] for phrase in page.phrases if _PATH.match(phrase)]
    return {
        *(" ".join(words) for words in command_names(page) if faults(words)),
        *({word for word in made if "=" not in word and word.isidentifier()} - TARGETS),
        *(name for name in modules if not _is_there(REPOSITORY / name.replace(".", "/"))),
        *(name for name in paths if not (REPOSITORY / name).exists()),
        *(set(_SETTING.findall(page.text)) - SETTINGS - OF_OTHERS),
    }


def _is_there(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_every_command_target_module_file_and_setting_that_is_named_exists(page: Page) -> None:
    assert unknown(page) == set()


def test_a_command_an_option_and_a_group_that_do_not_exist_are_found() -> None:
    assert faults(["index", "status", "--json"]) == []
    assert faults(["index", "mend"]) == ["mend"]
    assert faults(["index", "status", "--all"]) == ["--all"]
    assert faults(["shops", "list"]) == ["shops"]


def test_what_fails_on_a_page_is_a_failure_with_what_it_said(sample: SampleService, tmp_path: Path) -> None:
    with Shell(tmp_path / "here", tmp_path / "home", {"PATH": "/usr/local/bin:/usr/bin:/bin"}) as shell:
        for command, said in (
            ("echo first; echo and why >&2; exit 7", r"ended with 7: first\nand why"),
            ("no-such-command --at-all", "no-such-command"),
            (f"curl {sample.base}/nothing", "404"),
        ):
            with pytest.raises(CommandFailedError, match=said):
                shell.run(command)
        with pytest.raises(CommandFailedError, match=r"did not become ready: no\n"):
            shell.start("echo no", lambda: False)
        shell.start("sh -c 'echo begun > begun; read -r _ < /dev/null; exit 3'", (shell.folder / "begun").is_file)
        shell.run("sleep 0.2")
        with pytest.raises(CommandFailedError, match="had ended by itself"):
            shell.end_lasting()
