"""`make run`: a line for each step, a second start that builds nothing, and how to pass an option on; other targets."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from indexer.catalogue.open_data.package import read_package
from indexer.commands.parts import SAMPLE
from tests.people.commands.world import ran
from tests.support.catalogues import shop, write_catalogue
from tests.support.open_data import small_package
from tests.support.real.sources import REPOSITORY
from tests.support.served import get


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with this Makefile, whose environment is installed already: the program is the one of these tests."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    program = programs / "shop-directory"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m shop_directory "$@"\n')
    program.chmod(0o755)
    (programs / "python").symlink_to(sys.executable)
    for made in (".run", ".compiled"):
        (tmp_path / ".venv" / made).touch()
    return tmp_path


def environment() -> dict[str, str]:
    """That of a user at a prompt, although `make test` runs these tests: a make within a make prints its folder."""
    own = {name: value for name, value in os.environ.items() if name not in {"MAKELEVEL", "MAKEFLAGS", "MFLAGS"}}
    return {**own, "PYTHONPATH": str(REPOSITORY)}


def started(checkout: Path, *variables: str, serving: Callable[[str], object] = str) -> str:
    said: list[str] = []
    with subprocess.Popen(
        ["make", "run", "PORT=0", *variables], cwd=checkout, env=environment(), text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line.startswith("Shop Directory serves at"):
                serving(line)
                break
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.read()
    return "".join(said)


@pytest.mark.slow
def test_the_second_start_says_that_nothing_has_changed_and_a_new_record_is_indexed(checkout: Path) -> None:
    catalogue = checkout / "my-shops"
    shutil.copytree(SAMPLE, catalogue, ignore=shutil.ignore_patterns("*.py", "__pycache__", "README.md"))
    first, second = (started(checkout, "CATALOGUE=my-shops", "INDEX=somewhere") for _ in range(2))
    assert first.splitlines()[0] == "Indexing my-shops into somewhere, unless nothing has changed ..."
    assert "Published generation" in first
    assert [line.partition(" generation ")[0] for line in second.splitlines()[1:3]] == [
        "Nothing has changed since",
        "Starting the service with my-shops from somewhere ...",
    ]
    lines = (catalogue / "offers.ndjson").read_text(encoding="utf-8").splitlines(keepends=True)
    (catalogue / "offers.ndjson").write_text("".join(lines[1:]), encoding="utf-8")
    assert "Published generation" in started(checkout, "CATALOGUE=my-shops", "INDEX=somewhere")


@pytest.mark.slow
def test_neither_the_sample_nor_a_smaller_catalogue_replaces_what_is_served_unasked(checkout: Path) -> None:
    shops = checkout / "mine.ndjson"
    write_catalogue(shops, [shop(f"Shop {number}", id=f"s{number}") for number in range(300)])
    build = [sys.executable, "-m", "shop_directory", "index", "build", "--catalogue", str(shops)]
    subprocess.run(build, cwd=checkout, env=environment(), capture_output=True, check=True)
    before = (checkout / "var" / "index" / "live").read_bytes()
    assert "Starting the service with the sample catalogue from var/sample ...\n" in started(checkout)
    assert (checkout / "var" / "index" / "live").read_bytes() == before
    write_catalogue(shops, [shop("Shop 1", id="s1")])
    refused = ran(["make", "run", "PORT=0", "CATALOGUE=mine.ndjson"], checkout, environment())
    assert refused.returncode != 0
    assert (
        "Nothing was published: 1 of 300 public shops remain, and at most 20% may be lost: check the catalogue, give"
        " another one an index of its own, or allow the loss by --allow-shrink.\n"
        "make run takes --catalogue as CATALOGUE=, --data-dir as INDEX=, others in BUILD_ARGS=\n"
    ) in refused.stderr
    assert "Starting the service with mine.ndjson from var/index ...\n" in started(
        checkout, "CATALOGUE=mine.ndjson", "BUILD_ARGS=--allow-shrink"
    )


@pytest.mark.slow
def test_real_shops_are_written_from_the_pinned_package_and_served_with_their_sources(checkout: Path) -> None:
    (checkout / "requirements-dev.lock").touch()
    (checkout / ".venv" / ".node").touch()
    # The place to which npm would fetch it.
    named = re.search(r"^OPEN_DATA_PACKAGE = (.+)@(.+)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert named is not None
    (checkout / "var" / "open-data").mkdir(parents=True)
    package = small_package(checkout / "var" / "open-data" / f"{named[1]}-{named[2]}.tgz")

    def made(*variables: str) -> subprocess.CompletedProcess[str]:
        return ran(["make", "open-catalogue", *variables], checkout, environment())

    refused = made()
    assert refused.returncode != 0
    assert "is expected: remove it, and fetch it again" in refused.stderr
    done = made(f"OPEN_DATA_INTEGRITY={read_package(package).integrity}")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Serve it by: make run CATALOGUE=var/open-catalogue")
    asked: list[str] = []

    def footer(line: str) -> None:
        (base,) = re.findall(r"http://[^/ ,;]+", line)
        asked.extend(get(base, path).body.decode() for path in ("/", "/sources.txt"))

    started(checkout, "CATALOGUE=var/open-catalogue", serving=footer)
    assert '<a href="sources.txt">Data: name-suggestion-index 8.0.1 (BSD-3-Clause), Wikidata (CC0)' in asked[0]
    assert asked[1] == (checkout / "var" / "open-catalogue" / "SOURCES.md").read_text(encoding="utf-8").strip()


def test_containers_are_up_when_they_serve_and_images_are_built_with_pips_configuration_where_it_is_named(
    tmp_path: Path,
) -> None:
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    program.chmod(0o755)

    def asked(target: str, configuration: str) -> str:
        given = {**environment(), "PATH": f"{tmp_path}:{os.environ['PATH']}", "PIP_CONFIG_FILE": configuration}
        return ran(["make", target], REPOSITORY, given, check=True).stdout

    assert asked("up", "") == "<compose><up><--build><--detach><--wait>"
    assert "<--secret><id=pip,src=/my pip.conf><--tag>" in asked("image", "/my pip.conf")
    assert "secret" not in asked("image", "")


def test_packages_are_installed_by_uv_from_where_pip_would_take_them_and_by_pip_where_uv_fails(checkout: Path) -> None:
    shutil.copy(REPOSITORY / "requirements-dev.lock", checkout)
    (checkout / ".venv" / ".run").unlink()
    program = checkout / ".venv" / "bin" / "python"
    program.unlink()
    program.write_text(
        '#!/bin/sh\n[ "$*" = "-m pip config list" ] || { echo "pip: $*" >> asked; exit 0; }\n'
        "cat <<'END'\nglobal.index-url='https://other.internal/'\n:env:.cert='/our certificates.pem'\n"
        ":env:.index-url='https://packages.internal/a b'\nEND\n"
    )
    program.chmod(0o755)
    uv = checkout / ".venv" / "bin" / "uv"
    pip = "pip: -m pip install --quiet --disable-pip-version-check"
    first = f"{pip} --require-hashes --no-deps -r .venv/uv-alone.lock"
    by_uv = (
        "uv: /our certificates.pem: https://packages.internal/a b:"
        " pip install --quiet --python .venv/bin/python --require-hashes --no-deps -r requirements.lock"
    )
    by_pip = f"{pip} --require-hashes --no-deps --no-compile -r requirements.lock"
    last = f"{pip} --no-deps --no-build-isolation -e ."
    for code, expected in ((0, [first, by_uv, last]), (1, [first, by_uv, by_pip, last])):
        uv.write_text(f'#!/bin/sh\necho "uv: $SSL_CERT_FILE: $UV_DEFAULT_INDEX: $*" >> asked\nexit {code}\n')
        uv.chmod(0o755)
        ran(["make", ".venv/.run"], checkout, environment(), check=True)
        assert (checkout / "asked").read_text().splitlines() == expected
        (checkout / "asked").unlink()
        (checkout / ".venv" / ".run").unlink()
    locked = (checkout / ".venv" / "uv-alone.lock").read_text()
    assert re.fullmatch(r"uv==\S+ \\\n(    --hash=sha256:\w{64}(?: \\)?\n)+(?:    # .*\n)*", locked), locked


def test_tests_of_containers_say_loudly_that_they_do_not_run_and_fail_only_where_they_are_asked_for(
    tmp_path: Path,
) -> None:
    def tried(*words: str) -> tuple[int, list[str]]:
        given = {**environment(), "PATH": str(tmp_path)}  # without the programs of Debian
        done = ran([sys.executable, "-m", *words], REPOSITORY, given)
        return done.returncode, done.stdout.splitlines()

    code, (said,) = tried("tests.containers")
    assert (code, said.startswith("containers: NOT RUN, because ")) == (3, True)
    # As `.ci/run` has it, whose last line counts the tests of all stages.
    code, lines = tried("tests.stages", "containers", "containers")
    assert (code, lines[:-1]) == (0, [said, said])
    assert lines[-1].startswith("0 passed, 0 failed in ")


def test_no_command_of_the_repository_lets_shops_be_lost_or_forgets_changes_unasked() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    run = [name for name in files.stdout.splitlines() if not name.endswith((".md", ".py", ".toml", ".json", ".ndjson"))]
    passing = {
        name
        for name in run
        for line in (REPOSITORY / name).read_text(encoding="utf-8", errors="ignore").splitlines()
        if re.search(r"--(allow-shrink|fresh-state)\b", line) and "@echo" not in line
    }
    assert ("Makefile" in run, "docker-compose.yml" in run, passing) == (True, True, set())
