"""The workflow files follow their published schema, and do what the project says of itself."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it says nothing of its types
from jsonschema import Draft7Validator

from tests.support.real.sources import REPOSITORY

WORKFLOWS = tuple(sorted((REPOSITORY / ".github" / "workflows").iterdir()))


def _read(path: Path) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def _steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_follows_the_published_schema(path: Path) -> None:
    schemas = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "github-workflows.json").read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as a truth value.
    workflow = {"on" if key is True else key: value for key, value in _read(path).items()}
    assert [error.message for error in Draft7Validator(schema).iter_errors(workflow)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_unless_a_job_says_so_and_ends_in_time(path: Path) -> None:
    workflow = _read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    checkouts = [step for step in _steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_every_program_of_the_project_that_a_workflow_runs_is_there() -> None:
    commands = "\n".join(step.get("run", "") for path in WORKFLOWS for step in _steps(_read(path)))
    assert ".ci/run" in commands
    assert "python -m tests.people.publishing.try_wheel dist" in commands
    assert (REPOSITORY / ".ci" / "run").exists()


def test_the_release_publishes_the_wheel_the_image_and_the_registry_entry_with_provenance() -> None:
    jobs = _read(REPOSITORY / ".github" / "workflows" / "release.yml")["jobs"]
    used = {name: [step.get("uses", "").partition("@")[0] for step in job["steps"]] for name, job in jobs.items()}
    for name in ("publish-packages", "image"):
        assert "actions/attest-build-provenance" in used[name]
        assert jobs[name]["permissions"]["id-token"] == "write"
        assert jobs[name]["environment"] == "release"
    assert "pypa/gh-action-pypi-publish" in used["publish-packages"]
    (build,) = (step["with"] for step in jobs["image"]["steps"] if step.get("uses", "").startswith("docker/build-push"))
    assert (build["provenance"], build["sbom"], build["push"]) == ("mode=max", True, True)
    assert jobs["registry-entry"]["needs"] == "publish-packages"
