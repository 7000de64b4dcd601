"""Every example of the program's help does what it says: each is run as it stands there and in docs/commands.md.

Only the port 8080, which may be taken, is another one here.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import pytest

from tests.people.commands.page import all_descriptions, command_descriptions
from tests.people.commands.world import PROGRAMS, environment
from tests.support.catalogues import shop

# What runs until it gets a signal to stop.
_LASTING: Final = re.compile(r"shop-directory (serve (?!.*--print-config)|index follow (?!.*--once))")
_PORT: Final = "--port 8080"
_PATIENCE_S: Final = 30.0
EXAMPLES: Final = tuple(dict.fromkeys(example for command in all_descriptions() for example in command.examples))
LASTING: Final = tuple(example for example in EXAMPLES if _LASTING.search(example))
ENDING: Final = tuple(example for example in EXAMPLES if example not in LASTING)
# Where an example looks for a service.
_ADDRESS: Final = "http://127.0.0.1:8080"
_QUOTAS: Final = '{"reads": 100000, "suggest": 100000, "reports": 0}'


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Where the index of the folder is served, with quotas that no test waits for."""
    with subprocess.Popen(
        [PROGRAMS / "shop-directory", "serve", "--port", "0", "--json"], cwd=folder,
        env=environment(SHOP_DIRECTORY_DRAIN_SECONDS="0", SHOP_DIRECTORY_QUOTA_ANONYMOUS=_QUOTAS),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()


@pytest.mark.parametrize("example", ENDING)
def test_an_example_ends_well(example: str, folder: Path, request: pytest.FixtureRequest) -> None:
    line = example.replace(_ADDRESS, request.getfixturevalue("address")) if _ADDRESS in example else example
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("example", LASTING)
def test_an_example_that_lasts_does_its_work_and_ends_well_on_sigterm(example: str, folder: Path) -> None:
    serves = " serve " in example
    if not serves:
        change(folder / "changes.ndjson")
        change(folder / "my-shops" / "changes.ndjson")
    with subprocess.Popen(
        ["bash", "-c", example.replace(_PORT, "--port 0")], cwd=folder,
        env=environment(SHOP_DIRECTORY_DRAIN_SECONDS="0"), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        impatient = threading.Timer(_PATIENCE_S, process.kill)
        impatient.start()
        stream = process.stdout if serves else process.stderr
        assert stream is not None
        said = until(stream, "http://" if serves else "changes applied")
        # Of a pipeline the first: what follows it comes to its end by itself.
        os.kill([*children(process.pid), process.pid][0], signal.SIGTERM)
        out, err = process.communicate()
        impatient.cancel()
    assert (process.returncode, "Traceback" in said + err) == (0, False), said + err
    assert serves or out.startswith("Followed for ")


def test_the_examples_of_every_command_are_run() -> None:
    run = {*LASTING, *ENDING}
    assert [
        command.words for command in command_descriptions() if not command.examples or not set(command.examples) <= run
    ] == []
    assert [example for example in ENDING if " check " in example and _ADDRESS in example]
    assert {"shop-directory serve --port 8080 --hints", "shop-directory index follow --catalogue ./my-shops"} <= {
        *LASTING
    }


def change(file: Path) -> None:
    line = {"op": "upsert", "type": "shops", "record": shop("Zinnia", id="zinnia"), "version": time.time_ns()}
    with file.open("a", encoding="utf-8") as changes:
        changes.write(f"{json.dumps(line)}\n")


def children(process: int) -> list[int]:
    return [int(found) for found in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def until(stream: IO[str], words: str) -> str:
    said = ""
    while words not in said and (line := stream.readline()):
        said += line
    return said
