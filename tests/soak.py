"""The tests that have a longer form than CI's, in that form: `python -m tests.soak [PATH...]`, or `make soak`.

Takes an hour and a half of a quiet machine of two cores. Prints a table of what was tested at the end;
with paths, only the tests there are run, and no benchmark. The amounts are larger where more time finds more: in what
is drawn by chance, and in what grows slowly.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

_LIMIT_S: Final = 7_200
# Many shops: whether times reveal shops under review, and one-letter searches with their builds.
_BENCHMARKS: Final = (("bench.timing",), ("bench.scale", "--shops", "300000"))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: what is tested, how much of it, and what is shown when all of it passed.

    The paths are below this folder; the variables have the amount for the tests, without the prefix of settings.
    """

    tests: str
    amount: str
    result: str
    paths: tuple[str, ...]
    variables: Mapping[str, str]


ROWS: Final = (
    Row(
        "both engines and the reference compared",
        "60 catalogues, 20 queries each",
        "no difference",
        ("rules/backends/test_engines_agree.py",),
        {"AGREEMENT": "60x20"},
    ),
    Row(
        "the same call over every transport",
        "5,000",
        "the same answer",
        ("rules/transports/test_all_tools_three_transports.py",),
        {"TRANSPORT_CALLS": "5000"},
    ),
    Row(
        "generated requests, against the schemas",
        "10,000",
        "no finding",
        ("rules/judges/test_schemathesis.py",),
        {"SCHEMATHESIS": "10000"},
    ),
    Row(
        "kills of Redis and of what stores reports",
        "20 of each",
        "no acknowledged report lost or doubled",
        ("rules/reports/test_kill.py",),
        {"KILLS": "20"},
    ),
    Row(
        "changes in any order, with restarts and crashes",
        "10,000",
        "the documents of a full build",
        ("engines/following",),
        {"CHANGES": "10000"},
    ),
    Row(
        "kills of builds and of the follower",
        "30",
        "live answers whole, nothing left behind",
        ("processes/endurance/test_kills.py",),
        {"INDEX_KILLS": "30"},
    ),
    Row(
        "kills of OpenSearch nodes during builds, changes and reads",
        "at 9 and 4 points, each node in turn",
        "nothing lost, no wrong answer",
        ("processes/cluster",),
        {"NODE_KILLS": "all"},
    ),
    Row(
        "faults of OpenSearch and Redis, two rounds",
        "22",
        "reported as declared, and recovered from",
        ("processes/faults",),
        {"FAULTS": "all"},
    ),
    Row(
        "generations published under load, with rollbacks",
        "20, on each engine",
        "no failed or mixed answer",
        ("processes/endurance/test_swaps_under_load.py",),
        {"SWAPS": "20"},
    ),
    Row(
        "jobs that race for the lease",
        "20 turns each",
        "never two at a time",
        ("engines/integration/test_lease.py",),
        {"LEASE_TURNS": "20"},
    ),
    Row(
        "load for 10 minutes, with publications",
        "each engine",
        "no failure, no growth",
        ("processes/load/test_soak.py",),
        {"SOAK_SECONDS": "600"},
    ),
    Row(
        "three times the load that fills the service",
        "20 s",
        "served in time, or refused immediately",
        ("processes/load/test_overload.py",),
        {"OVERLOAD_SECONDS": "20"},
    ),
    Row(
        "connections of one address",
        "10,050",
        "others are served",
        ("processes/load/test_connections.py",),
        {"CONNECTIONS": "10050"},
    ),
    Row(
        "Redis stopped under token calls",
        "30 s",
        "only reports refused",
        ("processes/load/test_redis_away.py",),
        {"REDIS_AWAY_SECONDS": "30"},
    ),
    Row("stops under load", "10 of each kind", "no request cut", ("processes/load/test_stopping.py",), {"STOPS": "10"}),
    Row(
        "flipped bits and cut files of the embedded index",
        "1,000 and 60",
        "no wrong answer; each cut file found within 10 s",
        ("engines/integrity",),
        {"FLIPS": "1000", "TRUNCATIONS": "60"},
    ),
    Row(
        "requests of a search for the slowest",
        "20,000 of each kind, of 100,500 shops",
        "under 10 ms of processor time for `find_shop`, 5 for `/suggest`; other tools by the length of their answers",
        ("engines/slow_requests",),
        {"FUZZED_REQUESTS": "20000"},
    ),
)


def main(paths: Sequence[str]) -> int:
    """Run the tests, at some paths or all, and print the table; returns 1 if a test or a benchmark failed, else 0."""
    tests = Path(__file__).parent
    variables = {f"SHOP_DIRECTORY_{name}": value for row in ROWS for name, value in row.variables.items()}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        chosen = paths or [str(tests / path) for row in ROWS for path in row.paths]
        options = ["--require-real", "-p", "no:cacheprovider", "-o", f"timeout={_LIMIT_S}", f"--junit-xml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *chosen]
        codes = [subprocess.run(command, env=os.environ | variables, check=False).returncode]
        outcomes = dict(_outcomes(report)) if report.exists() else {}
    if not paths:
        codes += [subprocess.run([sys.executable, "-m", *one], check=False).returncode for one in _BENCHMARKS]
    lines = [*_table(outcomes), "", f"{len(outcomes)} tests, {(time.monotonic() - began) / 60:.0f} minutes"]
    print("\n".join(lines))  # noqa: T201 - what a command prints is its answer
    return int(any(codes))


def _outcomes(report: Path) -> Iterator[tuple[str, bool]]:
    """Each test by its path below this folder, with dots, and its name; and whether it passed."""
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        name = f"{case.attrib['classname'].removeprefix('tests.')}.{case.attrib['name']}"
        yield name, not any(case.find(wrong) is not None for wrong in ("failure", "error", "skipped"))


def _table(outcomes: Mapping[str, bool]) -> Iterator[str]:
    yield from ("| tests | amount | result |", "|---|---|---|")
    for row in ROWS:
        beginnings = tuple(f"{path.removesuffix('.py').replace('/', '.')}." for path in row.paths)
        passed = [outcome for name, outcome in outcomes.items() if name.startswith(beginnings)]
        if passed:
            failed = f"**{passed.count(False)} of {len(passed)} tests failed**"
            yield f"| {row.tests} | {row.amount} | {row.result if all(passed) else failed} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
