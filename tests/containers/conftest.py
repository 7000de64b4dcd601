"""One engine and one build of the image for all tests here, which run only where `python -m tests.containers` does."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.containers.images import BASE, make_engines, package_index
from tests.containers.machine import FOLDER, NO_ENGINE, Machine, machine_of_this_run
from tests.people.containers.building import copy_sources
from tests.support.real.node_build import NodeBuild
from tests.support.real.sources import REPOSITORY

FORMER_COMMIT: Final = "3f786850e387550fdab836ed7e6dc881de23001b"
COMMIT: Final = "89e6c98d92887913cadf06b2adb97f26cde4849b"
_BUILT_AT: Final = "2026-11-21T09:30:00Z"
FORMER: Final = "shop-directory:former"
NEW: Final = "shop-directory:new"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave these out of every other run: they need the engine's namespaces."""
    del collection_path
    return None if FOLDER in os.environ else True


@dataclass(frozen=True, slots=True)
class Built:
    """What the builder said of the former image, and of the new one, before which one file was changed."""

    former: str
    new: str


@pytest.fixture(scope="session")
def machine(node_build: NodeBuild) -> Iterator[Machine]:
    machine = machine_of_this_run()
    with ExitStack() as stack:
        try:
            stack.enter_context(machine.engine())
            machine.docker("import", str(machine.folder / "base.tar"), BASE)
            machine.docker("run", "--rm", BASE, "true")
        except AssertionError as failure:
            pytest.exit(f"the engine starts no container: {failure}", NO_ENGINE)
        make_engines(machine, node_build)
        yield machine


@pytest.fixture(scope="session")
def built(machine: Machine) -> Built:
    source = copy_sources(machine.folder)
    for name in ("Dockerfile", ".dockerignore"):
        (source / name).write_bytes((REPOSITORY / name).read_bytes())
    said = {}
    with package_index(machine.folder / "wheels", machine.folder) as pip:
        for tag, commit in ((FORMER, FORMER_COMMIT), (NEW, COMMIT)):
            stated = {"PYTHON_IMAGE": BASE, "COMMIT": commit, "BUILT_AT": _BUILT_AT}
            arguments = [word for item in stated.items() for word in ("--build-arg", "=".join(item))]
            said[tag] = machine.build(*arguments, "--secret", f"id=pip,src={pip}", "--tag", tag, str(source))
            page = source / "service" / "web" / "page" / "page.css"
            page.write_text(f"{page.read_text('utf-8')}/* changed */\n", "utf-8")
    return Built(said[FORMER], said[NEW])
