"""The real parts: found where they are, and loudly missed."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.real.node_build import Jdk, JdkMissingError, find_jdk
from tests.support.real.sources import REPOSITORY, Missing, Source, find_dev_data, find_opensearch, find_redis

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


def make_jdk(home: Path, version: str, *programs: str) -> None:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'IMPLEMENTOR="Made up"\nJAVA_VERSION="{version}"\nOS_NAME="Linux"\n')
    for program in programs or ("java", "javac"):
        (home / "bin" / program).touch(mode=0o755)


def test_the_newest_jdk_of_all_locations_is_chosen(tmp_path: Path) -> None:
    make_jdk(tmp_path / "stated", "21.0.11")
    make_jdk(tmp_path / "on-path", "21.0.9")
    make_jdk(tmp_path / "roots" / "newest", "25")
    make_jdk(tmp_path / "roots" / "old", "1.8.0_402")
    environment = {"JAVA_HOME": str(tmp_path / "stated"), "PATH": str(tmp_path / "on-path" / "bin")}

    assert find_jdk(environment, [f"{tmp_path}/roots/*"]) == Jdk((25,), tmp_path / "roots" / "newest")
    assert find_jdk(environment, []) == Jdk((21, 0, 11), tmp_path / "stated")
    assert find_jdk({"PATH": environment["PATH"]}, []) == Jdk((21, 0, 9), tmp_path / "on-path")


def test_a_java_on_the_path_is_followed_to_its_jdk(tmp_path: Path) -> None:
    make_jdk(tmp_path / "jdk", "22.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(tmp_path / "jdk" / "bin" / "java")

    assert find_jdk({"PATH": str(tmp_path / "bin")}, []) == Jdk((22, 0, 1), tmp_path / "jdk")


def test_older_jdks_and_runtimes_without_a_compiler_do_not_serve(tmp_path: Path) -> None:
    make_jdk(tmp_path / "old", "17.0.15")
    make_jdk(tmp_path / "runtime", "25.0.3", "java")

    with pytest.raises(JdkMissingError) as missing:
        find_jdk({}, [f"{tmp_path}/*"])

    assert str(missing.value) == (
        f"no JDK of version 21 or later (found: 17.0.15 in {tmp_path}/old); install one, for example the package "
        "openjdk-21-jdk or a Temurin build, and put it on the PATH or in JAVA_HOME"
    )


def test_a_stated_url_is_used_as_it_is(tmp_path: Path) -> None:
    search = find_opensearch({"OPENSEARCH_URL": "https://search.example:9200"})
    redis = find_redis({"REDIS_URL": "redis://cache.example/3"})

    assert isinstance(search, Source)
    assert isinstance(redis, Source)
    with search.open(tmp_path) as search_url, redis.open(tmp_path) as redis_url:
        assert (search_url, redis_url) == ("https://search.example:9200", "redis://cache.example/3")


def test_development_data_is_a_folder_that_exists(tmp_path: Path) -> None:
    assert find_dev_data({"SHOP_DIRECTORY_DEV_DATA": str(tmp_path)}) == tmp_path
    assert find_dev_data({"SHOP_DIRECTORY_DEV_DATA": f"{tmp_path}/none"}) == Missing(
        f"there is no folder {tmp_path}/none (SHOP_DIRECTORY_DEV_DATA)"
    )


def run_without_parts(
    tmp_path: Path, *options: str, tests_of_file: str = SEVEN_TESTS, program: Sequence[str] = ("pytest",)
) -> subprocess.CompletedProcess[str]:
    """Runs pytest on a file of tests with no programs on the PATH, no Docker engine and no earlier build."""
    tests = tmp_path / "test_file.py"
    tests.write_text(tests_of_file)
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
    command = [sys.executable, "-m", *program, *plugins, "-c", "pyproject.toml", *options, str(tests)]
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


def test_nothing_runs_where_a_required_part_is_absent(tmp_path: Path) -> None:
    run = run_without_parts(tmp_path, "--require-real", "-n", "2")

    missing = "NOT RUN: 2 test(s) that need a real OpenSearch: OPENSEARCH_URL is not set"
    assert missing in run.stdout
    assert "passed" not in run.stdout
    assert run.returncode == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(("stage", "code"), [("parallel", 0), ("serial", pytest.ExitCode.NO_TESTS_COLLECTED)])
def test_a_stage_leaves_the_tests_of_the_other_one_out(stage: str, code: int, tmp_path: Path) -> None:
    run = run_without_parts(tmp_path, "--stage", stage, "-k", "test_plain")

    assert run.returncode == code
    assert ("1 passed" in run.stdout) is (stage == "parallel")


@pytest.mark.parametrize(
    ("options", "line", "code"),
    [
        ((), "1 passed, 2 failed in ", pytest.ExitCode.TESTS_FAILED),
        (("--unknown",), "0 passed, 2 failed in ", pytest.ExitCode.USAGE_ERROR),
    ],
    ids=["failed", "not run"],
)
def test_both_stages_end_with_one_closing_line(options: tuple[str, ...], line: str, code: int, tmp_path: Path) -> None:
    run = run_without_parts(
        tmp_path,
        *options,
        tests_of_file="def test_right(): pass\ndef test_wrong(): assert False\ndef test_error(unknown): pass\n",
        program=("tests.stages", "parallel", "serial"),
    )

    assert run.stdout.splitlines()[-1].startswith(line)
    assert run.returncode == code


def test_require_real_asks_only_for_what_the_selected_tests_need(tmp_path: Path) -> None:
    run = run_without_parts(tmp_path, "--require-real", "-k", "test_plain")

    assert "1 passed, 6 deselected" in run.stdout
    assert run.returncode == 0
