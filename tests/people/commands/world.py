"""A folder in which every example of the program's help can be run, and the program as an operator starts it."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from indexer.commands.parts import SAMPLE
from service.auth.protocol import Token
from service.auth.secrets import hash_of, new_token_text
from service.auth.sqlite import SqliteTokenStore
from service.reports.sqlite import SqliteReports
from tests.rules.reports.stores import report
from tests.support import forked
from tests.support.open_data import small_package

TOKEN_ID: Final = "0123456789abcdef"
PROGRAMS: Final = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.out)

    @property
    def error(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.err.splitlines()[-1])


def environment(**more: str) -> dict[str, str]:
    """An environment that says nothing of settings, colours and terminals, with the program on its path."""
    return {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "HOME": "/nonexistent", "LANG": "C.UTF-8", **more}


def run(folder: Path, *words: str, **variables: str) -> Done:
    done = forked.run(
        [sys.executable, "-m", "shop_directory", *words],
        cwd=folder, env=environment(**variables), stdin=subprocess.DEVNULL, text=True, timeout=60,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def ran(
    words: Sequence[str | Path], folder: Path, given: Mapping[str, str], *, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """A program that comes to its end, in this environment."""
    return subprocess.run(
        words, cwd=folder, env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=check
    )


def fill(folder: Path) -> None:
    """Put a catalogue, its index in two generations, a token and two claimed re-checks where the program looks."""
    shutil.copytree(SAMPLE, folder / "my-shops", ignore=shutil.ignore_patterns("README.md"))
    (folder / "changes.ndjson").write_text("")
    (folder / "shops.csv").write_text("name,website,category\nLamp House,lamp-house.example,Lighting\n")
    (folder / "list.csv").write_text("Label;URL;Category\nLamp House;lamp-house.example;Lighting\n")
    small_package(folder / "name-suggestion-index.tgz")
    # As many codes as there were, so that builds lose none.
    coupons = map(json.loads, (SAMPLE / "coupons.ndjson").read_text(encoding="utf-8").splitlines())
    rows = dict.fromkeys(f"{one['shop_id']},{one['code']}\n" for one in coupons)
    (folder / "codes.csv").write_text(f"shop,code\n{''.join(rows)}")
    (folder / "my-shops" / "changes.ndjson").write_text("")
    for _ in range(2):
        built = run(folder, "index", "build", "--catalogue", "my-shops")
        assert built.code == 0, built.err
    asyncio.run(_fill_stores(folder / "var"))


async def _fill_stores(var: Path) -> None:
    tokens = SqliteTokenStore(var / "tokens.sqlite")
    await tokens.issue(Token(TOKEN_ID, "price widget", "default", None), hash_of(new_token_text()))
    await tokens.close()
    await queue_up(var / "reports.sqlite")


async def queue_up(path: Path) -> None:
    reports = SqliteReports(path)
    for shop_id in ("s1", "s2"):
        await reports.append(report(shop_id))
    await reports.claim("desk-1", 2, 60)
    await reports.close()
