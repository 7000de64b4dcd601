"""Gives every test the real parts, the markers' meaning and `--require-real`, and its own folder for what is written.

The former lives in the plugin, so that a run outside this folder can load the same rules by name.
"""

import gc
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import settings

pytest_plugins = ["tests.support.real.plugin", "tests.support.real.starting", "tests.stages"]

# A busy machine may take any time for an example.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

_PLENTY: Final = {"reads": 1_000_000, "suggest": 1_000_000, "reports": 1_000_000}


@pytest.fixture(scope="session", autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What no test is about unless it says so: what is written goes to a folder of this run, and quotas never end.

    It is the environment and so reaches the processes that tests start; a setting that a test gives comes before it.
    """
    folder = tmp_path_factory.mktemp("surroundings")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SHOP_DIRECTORY_TOKEN_FILE", str(folder / "tokens.sqlite"))
        environment.setenv("SHOP_DIRECTORY_REPORTS_FILE", str(folder / "reports.sqlite"))
        # Of services that are processes, and of backends that tests open without settings.
        environment.setenv("SHOP_DIRECTORY_TYPEAHEAD_DIR", str(folder / "typeahead"))
        environment.setattr("service.search.opensearch.folder.gettempdir", lambda: str(folder))
        environment.setenv("SHOP_DIRECTORY_QUOTA_ANONYMOUS", json.dumps(_PLENTY))
        environment.setenv("SHOP_DIRECTORY_QUOTA_CLASSES", json.dumps({"default": _PLENTY}))
        # Python compiles each file once, not in each process: a service starts in a third of the time.
        environment.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def opened_by() -> Iterator[dict[threading.Thread, str]]:
    """The test during which each thread that checks an open index began; at the end of the run none is left.

    An index that nobody closes is read on and on, which holds up every later test of the process.
    """
    openers: dict[threading.Thread, str] = {}
    yield openers
    left = sorted({test for thread, test in openers.items() if thread.is_alive()})
    assert left == [], "these tests, or fixtures that they were the first to use, opened an index and did not close it"


@pytest.fixture(autouse=True)
def remembered(request: pytest.FixtureRequest, opened_by: dict[threading.Thread, str]) -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == "index-checks":
            opened_by.setdefault(thread, request.node.nodeid)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the machine code that was not compiled since its source changed: no test has the time for that."""
    if not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        subprocess.run([sys.executable, "-m", "service.search.typeahead"], check=True)


def pytest_collection() -> None:
    """Collect no garbage meanwhile: there is hardly any, and looking for it takes four seconds."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over all that was collected, in which it could hold up a service for a second."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Ctrl-C reaches what tests start, also where a shell that began the run in its background has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
