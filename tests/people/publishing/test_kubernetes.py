"""Files of Kubernetes and of the workflows on GitHub: what they name is there, and they can be run."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml  # type: ignore[import-untyped]  # it says nothing of its types
from jsonschema import Draft7Validator

from indexer.settings import IndexerSettings
from service.settings.service import Settings
from tests.support.real.sources import REPOSITORY

MANIFESTS: Final = tuple(sorted((REPOSITORY / "kubernetes").glob("*.yaml")))
OBJECTS: Final = [
    document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document
]
# What a cluster of the last two years runs.
VERSIONS: Final = ("1.29", "1.33")
SECRETS: Final = {"opensearch_password", "redis_password", "ops_key"}
WORKFLOWS = tuple(sorted((REPOSITORY / ".github" / "workflows").iterdir()))


def _pods() -> dict[str, dict[str, Any]]:
    found = {}
    for one in OBJECTS:
        spec = one.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template:
            found[one["metadata"]["name"]] = template["spec"]
    return found


def _variables(container: dict[str, Any]) -> dict[str, str]:
    shared: dict[str, str]
    (shared,) = (one["data"] for one in OBJECTS if one["kind"] == "ConfigMap")
    assert container["envFrom"] == [{"configMapRef": {"name": "shop-directory"}}]
    return shared | {one["name"]: one["value"] for one in container.get("env", ())}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", OBJECTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_object_follows_the_schema_of_its_kind(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("name", sorted(_pods()))
def test_every_variable_is_a_setting_of_its_side_and_its_value_is_accepted(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,  # noqa: ANN401 - pytest's own path
) -> None:
    (container,) = _pods()[name]["containers"]
    side = Settings if container["args"] == ["serve"] else IndexerSettings
    variables = _variables(container)
    secret = tmp_path / "secret"
    secret.write_text("s" * 40, encoding="utf-8")
    for variable, value in variables.items():
        assert variable.startswith("SHOP_DIRECTORY_")
        assert variable.removeprefix("SHOP_DIRECTORY_").removesuffix("_FILE").lower() in {
            field.removesuffix("_file") for field in side.model_fields
        }
        of_secret = variable.endswith("_FILE") and value.startswith("/run/shop-directory/")
        monkeypatch.setenv(variable, str(secret) if of_secret else value)
    side()


@pytest.mark.parametrize("name", sorted(_pods()))
def test_a_pod_has_no_rights_bounded_memory_and_a_read_only_root(name: str) -> None:
    pod = _pods()[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("name", sorted(_pods()))
def test_every_secret_file_is_a_key_that_the_page_says_to_make_and_every_folder_is_mounted(name: str) -> None:
    pod = _pods()[name]
    (container,) = pod["containers"]
    page = (REPOSITORY / "kubernetes" / "README.md").read_text(encoding="utf-8")
    assert {key for key in SECRETS if f"--from-literal={key}=" in page} == SECRETS
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    for variable, value in _variables(container).items():
        if variable.endswith(("_FILE", "_DIR")):
            folder, _, file = value.rpartition("/")
            assert any(value.startswith(f"{path}/") for path in mounted), variable
            assert folder != "/run/shop-directory" or file in SECRETS


def test_the_service_has_time_to_drain_and_is_asked_where_it_answers() -> None:
    pod = _pods()["shop-directory"]
    (container,) = pod["containers"]
    drain = float(_variables(container)["SHOP_DIRECTORY_DRAIN_SECONDS"])
    assert pod["terminationGracePeriodSeconds"] == drain + 15
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["ports"] == [{"name": "http", "containerPort": 8080}]
    # A busy node is no reason to replace a pod: as the health checks of the image and the composition.
    probes = {name: container[f"{name}Probe"] for name in ("startup", "liveness", "readiness")}
    assert {probe["timeoutSeconds"] for probe in probes.values()} == {10}
    assert probes["startup"]["periodSeconds"] * probes["startup"]["failureThreshold"] == 120
    assert probes["liveness"]["failureThreshold"] == 6


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


def test_the_release_attests_what_it_publishes_and_the_pods_have_their_network() -> None:
    release = REPOSITORY / ".github" / "workflows" / "release.yml"
    jobs = yaml.safe_load(release.read_text(encoding="utf-8"))["jobs"]
    for name in ("publish-packages", "image"):
        assert "actions/attest-build-provenance" in {
            step.get("uses", "").partition("@")[0] for step in jobs[name]["steps"]
        }
        assert (jobs[name]["permissions"]["id-token"], jobs[name]["environment"]) == ("write", "release")
    (image,) = (step["with"] for step in jobs["image"]["steps"] if "build-push" in step.get("uses", ""))
    assert (image["provenance"], image["sbom"]) == ("mode=max", True)
    assert {"NetworkPolicy", "PodDisruptionBudget"} <= {one["kind"] for one in OBJECTS}
