"""A job of the indexer that can be killed.

`python -m tests.processes.endurance.job build|follow KIND TARGET PREFIX FOLDER CATALOGUE` prints `begun` before it
asks for the lease, and `publishing` when all is verified and it is to publish. A build waits for the lease and ends by
itself; following continues until it is killed.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from indexer.jobs.build import BuildOptions, build
from indexer.jobs.following import Following, FollowOptions
from indexer.sources.ndjson import NdjsonCatalogue
from tests.processes.endurance.worlds import Location
from tests.support.real.sources import REPOSITORY

_WAIT_S: Final = 60.0
_INTERVAL_S: Final = 0.02
_MICRO_BATCH: Final = 5


def start(what: str, location: Location, catalogue: Path, log: Path) -> subprocess.Popen[str]:
    """The job as a process of its own; what it complains of goes to the log."""
    command = [sys.executable, "-m", "tests.processes.endurance.job", what, *location.words(), str(catalogue)]
    environment = {**os.environ, "TMPDIR": str(location.temporary)}
    with log.open("a", encoding="utf-8") as errors:
        return subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        )


def wait_for(job: subprocess.Popen[str], line: str) -> None:
    assert job.stdout is not None
    said = job.stdout.readline()
    assert said == f"{line}\n", f"the job said {said!r} in the place of {line!r}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _run(what: str, location: Location, catalogue: NdjsonCatalogue) -> None:
    sink = location.sink()
    _say("begun")
    if what == "build":
        options = BuildOptions(wait=_WAIT_S, acceptance=lambda _: _say("publishing"))
        build(catalogue, sink, location.states(), options)
    else:
        pace = FollowOptions(interval=_INTERVAL_S, micro_batch=_MICRO_BATCH)
        Following(sink, location.states(), catalogue.changes(), pace).run(threading.Event())
    sink.close()


if __name__ == "__main__":
    _what, _kind, _target, _prefix, _folder, _catalogue = sys.argv[1:]
    _run(_what, Location(_kind, _target, _prefix, Path(_folder)), NdjsonCatalogue(Path(_catalogue)))
