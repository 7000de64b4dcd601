"""The real parts: found where they are, and loudly missed."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.real import process
from tests.support.real.sources import REPOSITORY

SEVEN_TESTS = """
import pytest

def test_plain(): pass

@pytest.mark.opensearch
def test_marked(): pass

def test_asking(opensearch_url): pass

def test_own_node(opensearch_node): pass

@pytest.mark.redis
def test_redis(): pass

@pytest.mark.browser
def test_page(): pass

def test_data(dev_data): pass
"""


def run_without_parts(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest on a file of tests with no programs on the PATH, no Docker engine and no earlier build."""
    tests = tmp_path / "test_file.py"
    tests.write_text(SEVEN_TESTS)
    unset = ("OPENSEARCH_URL", "REDIS_URL")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {
        "PATH": str(tmp_path),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
        "DOCKER_HOST": "tcp://127.0.0.1:1",
        "SHOP_DIRECTORY_DEV_DATA": f"{tmp_path}/none",
    }
    # Without the fixtures of tests/conftest.py, which no test here needs: they load the compiled code.
    plugins = ("-p", "tests.support.real.plugin", "-p", "tests.stages")
    command = [sys.executable, "-m", "pytest", *plugins, "-c", "pyproject.toml", *options, str(tests)]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


def test_tests_whose_part_is_absent_are_left_out_with_one_line_each(tmp_path: Path) -> None:
    run = run_without_parts(tmp_path, "-n", "2")

    lines = [line for line in run.stdout.splitlines() if line.startswith("NOT RUN")]
    assert [line.split(":")[1].strip() for line in lines] == [
        "2 test(s) that need a real OpenSearch",
        "1 test(s) that need OpenSearch nodes of their own",
        "1 test(s) that need a real Redis",
        "1 test(s) that need a Chromium",
        "1 test(s) that need the development data",
    ]
    assert "OPENSEARCH_URL is not set; no Docker engine answers" in lines[0]
    assert lines[2].endswith("no redis-server on the PATH")
    assert lines[3].endswith("no chromium on the PATH")
    # Workers deselect by themselves, and their controller does not count it.
    assert "1 passed in" in run.stdout
    assert run.returncode == 0


DOES_NOT_START = """
import pytest

STARTS = []

@pytest.fixture(scope="session")
def redis_url():
    STARTS.append(1)
    raise TimeoutError("the server was not ready within 20 s")

def test_first(redis_url): pass

def test_second(redis_url): pass

class TestFolder:
    def test_third(self, redis_url): pass

def test_other(): pass

def test_started_once(): assert len(STARTS) == 1
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_part_that_does_not_start_fails_one_test_and_the_others_are_counted(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    tests = tmp_path / "test_file.py"
    tests.write_text(DOES_NOT_START)
    plugins = ("-p", "tests.support.real.starting", "-p", "tests.stages", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *plugins, "-c", "pyproject.toml", *workers, str(tests)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert "2 passed, 1 error in" in run.stdout
    assert run.stdout.count("E       TimeoutError: the server was not ready") == 1
    assert "NOT RUN: 2 test(s) after the one that failed as redis_url did not start" in run.stdout
    assert run.returncode == pytest.ExitCode.TESTS_FAILED


def test_nothing_runs_where_a_required_part_is_absent(tmp_path: Path) -> None:
    run = run_without_parts(tmp_path, "--require-real", "-n", "2")

    missing = "NOT RUN: 2 test(s) that need a real OpenSearch: OPENSEARCH_URL is not set"
    assert missing in run.stdout
    assert "passed" not in run.stdout
    assert run.returncode == pytest.ExitCode.USAGE_ERROR


def test_no_two_processes_and_no_connection_are_given_one_port(tmp_path: Path) -> None:
    lowest = 20_000
    program = f"from tests.support.real import process; process._PORTS = range({lowest}, {lowest + 30})\n"
    asking = f"{program}print(*process.free_ports(5), flush=True)\ninput()"
    command = [sys.executable, "-c", asking]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    given = list[int]()
    with ExitStack() as running:
        for _ in range(4):
            one = running.enter_context(
                subprocess.Popen(
                    command, cwd=REPOSITORY, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            assert one.stdin is not None
            running.callback(one.stdin.close)
            assert one.stdout is not None
            given += map(int, one.stdout.readline().split())
    assert len(set(given)) == len(given) == 20
    ephemeral = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if ephemeral.exists():
        assert max(process._PORTS) < int(ephemeral.read_text().split()[0])
