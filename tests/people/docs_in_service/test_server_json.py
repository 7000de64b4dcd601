"""server.json fits the registries' schema, and says what the project and its settings say."""

import json
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from jsonschema import Draft7Validator

from service.rest.openapi.document import VERSION, openapi_document
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from shop_directory.settings.reading import PREFIX

ROOT: Final = Path(__file__).parents[3]
ENTRY: Final[dict[str, Any]] = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# The schema as it was published, which the linter carries.
SCHEMA: Final[dict[str, Any]] = json.loads(
    files("skillsaw").joinpath("schemas", "mcp_registry", "v2025_12_11", "server.schema.json").read_bytes()
)
VALIDATOR: Final = Draft7Validator(SCHEMA, format_checker=Draft7Validator.FORMAT_CHECKER)


def test_it_fits_the_schema_that_it_names() -> None:
    assert ENTRY["$schema"] == SCHEMA["$id"]
    VALIDATOR.validate(ENTRY)


def test_the_linter_of_registry_entries_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps(ENTRY), encoding="utf-8")
    program = Path(sys.executable).with_name("skillsaw")
    options = ["--strict", "--no-plugins", "--no-custom-rules", "--no-progress", "--format", "json"]
    done = subprocess.run([program, "lint", *options, tmp_path], capture_output=True, timeout=60, check=False)
    report = json.loads(done.stdout)
    assert (done.returncode, report["violations"]) == (0, [])


@pytest.mark.rule("O1")
def test_name_and_version_are_the_projects() -> None:
    (package,) = ENTRY["packages"]
    assert (package["registryType"], package["identifier"]) == ("pypi", PROJECT["name"])
    assert {ENTRY["version"], package["version"], PROJECT["version"]} == {VERSION}
    assert f"<!-- mcp-name: {ENTRY['name']} -->" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.rule("I4")
def test_the_package_is_started_over_stdio_with_variables_that_there_are() -> None:
    (package,) = ENTRY["packages"]
    (argument,) = package["packageArguments"]
    assert package["transport"] == {"type": "stdio"}
    assert argument == {"type": "positional", "value": "mcp"}
    assert "mcp" in PROJECT["entry-points"]["shop_directory.commands"]
    fields = {f"{PREFIX}{name.upper()}": field for name, field in Settings.model_fields.items()}
    for variable in package["environmentVariables"]:
        field = fields[variable["name"]]
        assert variable["description"] == field.title
        assert variable.get("isSecret", False) == ("SecretStr" in str(field.annotation))
        if "choices" in variable:
            assert (variable["choices"], variable["default"]) == ([*get_args(field.annotation)], field.default)


@pytest.mark.rule("I3", "I78")
def test_the_remote_is_the_endpoint_with_the_token_as_a_secret_that_no_one_must_have() -> None:
    (remote,) = ENTRY["remotes"]
    document = openapi_document(REGISTRY)
    assert (remote["type"], remote["url"]) == ("streamable-http", "https://{host}/mcp")
    assert "/mcp" in document["paths"]
    assert list(remote["variables"]) == ["host"]
    (header,) = remote["headers"]
    assert header["name"] == document["components"]["securitySchemes"]["token"]["name"]
    assert (header["isSecret"], header["isRequired"]) == (True, False)
