"""A wheel knows its commit and time from the environment, from git or from its source archive; else it says so."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from tests.people.containers.building import BOUND_S, build_wheel, copy_sources, install, run
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE

COMMIT: Final = "3f786850e387550fdab836ed7e6dc881de23001b"
BUILT_AT: Final = "2026-11-21T09:30:00Z"
GIVEN: Final = {"SHOP_DIRECTORY_COMMIT": COMMIT, "SHOP_DIRECTORY_BUILT_AT": BUILT_AT}
KNOWN: Final = (200, None, COMMIT, BUILT_AT)
UNKNOWN: Final = (503, "version_unknown", None, None)
_GIT: Final = ("git", "-c", "user.name=tester", "-c", "user.email=tester@shop.example", "-c", "commit.gpgsign=false")
# Status, code, commit and time that /version answers, once for each environment.
_ASK: Final = """
import json, os, sys
from starlette.testclient import TestClient
from service.app import create_app
from service.settings.service import Settings

for variables in json.loads(sys.argv[1]):
    os.environ.update(variables)
    reply = TestClient(create_app(Settings())).get("/version")
    print(json.dumps([reply.status_code, *(reply.json().get(name) for name in ("code", "commit", "builtAt"))]))
    for name in variables:
        del os.environ[name]
"""


def stamp_in(wheels: Path) -> object:
    """The stamp that the one wheel of a folder holds; None where it holds none."""
    (wheel,) = wheels.glob("*.whl")
    with ZipFile(wheel) as archive:
        found = [name for name in archive.namelist() if name == "shop_directory/build_stamp.json"]
        return json.loads(archive.read(found[0])) if found else None


@pytest.fixture(scope="module")
def stamped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stamped")
    build_wheel(copy_sources(folder), folder / "wheels", **GIVEN)
    return folder / "wheels"


@pytest.mark.rule("I74", "I75")
def test_a_wheel_made_with_commit_and_time_answers_version_and_the_environment_comes_first(
    stamped: Path, tmp_path: Path
) -> None:
    installed = install(stamped, tmp_path / "target")
    other = {"SHOP_DIRECTORY_COMMIT": "0" * 40, "SHOP_DIRECTORY_BUILT_AT": "2030-01-31T00:00:00Z"}
    # An image made without build arguments has them in its environment, empty.
    empty = {"SHOP_DIRECTORY_COMMIT": "", "SHOP_DIRECTORY_BUILT_AT": ""}
    halves = [{name: value} for name, value in other.items()]
    done = subprocess.run(
        [installed.python, "-c", _ASK, json.dumps([{}, empty, other, *halves])],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "SHOP_DIRECTORY_DATA_DIR": str(tmp_path / "no-index")},
        capture_output=True,
        timeout=BOUND_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    # Half of it is not filled up from the wheel.
    assert answers == [KNOWN, KNOWN, (200, None, "0" * 40, "2030-01-31T00:00:00Z"), UNKNOWN, UNKNOWN]


@pytest.mark.rule("I75")
def test_a_wheel_made_without_git_and_variables_does_not_know_itself(tmp_path: Path) -> None:
    # A repository around it is another project's.
    run([*_GIT, "init", "--quiet"], tmp_path)
    run([*_GIT, "commit", "--quiet", "--allow-empty", "--message", "not ours"], tmp_path)
    build_wheel(copy_sources(tmp_path), tmp_path / "wheels")
    assert stamp_in(tmp_path / "wheels") is None


@pytest.mark.rule("I74")
def test_a_wheel_made_from_a_checkout_or_from_its_source_archive_knows_the_checkouts_commit(tmp_path: Path) -> None:
    source, unpacked, archives = copy_sources(tmp_path), tmp_path / "unpacked", tmp_path / "archives"
    run([*_GIT, "init", "--quiet"], source)
    run([*_GIT, "add", "."], source)
    run([*_GIT, "commit", "--quiet", "--message", "a checkout"], source)
    commit = subprocess.run([*_GIT, "rev-parse", "HEAD"], cwd=source, capture_output=True, text=True, check=True).stdout
    made = {"SOURCE_DATE_EPOCH": "1795599000"}
    run([sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(archives)], source, **made)
    unpacked.mkdir()
    (archive,) = archives.glob("*.tar.gz")
    run(["tar", "--extract", "--strip-components=1", "--file", str(archive), "--directory", str(unpacked)], tmp_path)
    expected = {"commit": commit.strip(), "built_at": "2026-11-25T09:30:00Z"}
    build_wheel(source, tmp_path / "from-checkout", **made)
    build_wheel(unpacked, tmp_path / "from-archive")
    for wheels in ("from-checkout", "from-archive"):
        assert stamp_in(tmp_path / wheels) == expected


@pytest.mark.rule("I75")
@pytest.mark.parametrize("given", [{"SHOP_DIRECTORY_COMMIT": COMMIT}, {**GIVEN, "SHOP_DIRECTORY_BUILT_AT": "today"}])
def test_a_build_with_half_of_the_stamp_or_a_wrong_one_fails(tmp_path: Path, given: dict[str, str]) -> None:
    with pytest.raises(AssertionError, match="SHOP_DIRECTORY_COMMIT and SHOP_DIRECTORY_BUILT_AT go together"):
        build_wheel(copy_sources(tmp_path), tmp_path / "wheels", **given)
    assert not list(tmp_path.glob("wheels/*"))


def test_a_wheel_holds_every_file_of_the_page_the_docs_and_the_sample(stamped: Path) -> None:
    (wheel,) = stamped.glob("*.whl")
    web = REPOSITORY / "service" / "web"
    folders = tuple(f"service/web/{folder}/" for folder in ("page", "widget", "site"))
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        found = {name: archive.read(name) for name in names if name.startswith(folders)}
    assert found == {
        f"{folder}{file.name}": file.read_bytes() for folder in folders for file in (REPOSITORY / folder).iterdir()
    }
    docs = {f"service/web/reference/{file.name}" for file in (web / "reference").iterdir()}
    sample = {f"indexer/sample/{file.name}" for file in SAMPLE.glob("*.ndjson")}
    assert docs | sample | {"service/rest/openapi/examples.json"} <= names
