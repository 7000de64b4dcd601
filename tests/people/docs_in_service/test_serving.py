"""What the service says of itself: /docs, /tools.md, /llms.txt, server.json, and examples that it really answers."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from service.app import create_app
from service.identity import VERSION
from service.limits.policy import DEFAULT_CLASS, QuotaClass
from service.rest.openapi.document import openapi_document
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from service.tools.tool import TokenRule
from service.web.pages import docs_files
from shop_directory.settings.reading import PREFIX
from tests.people.docs_in_service.recording import FILE, record, written
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE, records
from tests.support.served import get, post, served
from tests.support.worlds import reference_world

FEW: Final = QuotaClass(reads=2, suggest=3, reports=0)
USUAL: Final = QuotaClass(reads=4_321, suggest=5, reports=7)
SETTINGS: Final = Settings(quota_anonymous=FEW, quota_classes={DEFAULT_CLASS: USUAL})
MEDIA_TYPES: Final = {
    "/docs": "text/html; charset=utf-8",
    "/docs/assets/docs.js": "text/javascript; charset=utf-8",
    "/docs/assets/docs.css": "text/css; charset=utf-8",
    "/docs/assets/swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "/docs/assets/swagger-ui.css": "text/css; charset=utf-8",
    "/tools.md": "text/markdown; charset=utf-8",
    "/llms.txt": "text/plain; charset=utf-8",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NO_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
TOOLS_PAGE: Final = (REPOSITORY / "docs" / "tools.md").read_text(encoding="utf-8")
_LINK: Final = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(create_app(SETTINGS, search=reference_world(tmp_path_factory.mktemp("docs")))) as url:
        yield url


@pytest.fixture(scope="module")
def text(base: str) -> str:
    return get(base, "/llms.txt").body.decode()


@pytest.mark.rule("C1.http")
@pytest.mark.parametrize("path", MEDIA_TYPES)
def test_a_file_has_its_type_and_only_the_page_may_run_anything_and_only_what_is_served_here(
    base: str, path: str
) -> None:
    headers = get(base, path).headers
    assert (headers["content-type"], headers["cache-control"]) == (MEDIA_TYPES[path], "no-cache")
    assert headers["content-security-policy"] == (POLICY if path == "/docs" else NO_POLICY)


def test_the_page_loads_nothing_but_files_of_the_service_that_there_are(base: str) -> None:
    page = get(base, "/docs").body.decode()
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    paths = {f"/{path.removeprefix('./')}" for path in loaded}
    assert paths == {
        *(path for path in MEDIA_TYPES if path != "/docs"), "/", "/assets/icon.svg", "/openapi.json",
    }  # fmt: skip
    # The start page is made of calls, which count for the quota.
    assert [path for path in paths - {"/"} if get(base, path).status != 200] == []


@pytest.mark.rule("Q2")
def test_reading_it_costs_no_quota(base: str) -> None:
    for _ in range(FEW.reads + 1):
        assert [get(base, path).status for path in MEDIA_TYPES] == [200] * len(MEDIA_TYPES)
    reply = post(base, "/tool/list_categories", {})
    assert (reply.status, reply.headers["ratelimit"].split(";")[1]) == (200, f"r={FEW.reads - 1}")


def test_each_file_has_a_label_in_the_log_and_the_metrics(base: str) -> None:
    words = {file.path: file.label for file in docs_files(SETTINGS)}
    assert words.keys() == MEDIA_TYPES.keys()
    assert set(words.values()) == {"docs", "docs_asset", "tools_page", "llms"}
    for path in MEDIA_TYPES:
        get(base, path)
    exposed = get(base, "/metrics").body.decode()
    assert [word for word in set(words.values()) if f'route="{word}"' not in exposed] == []


@pytest.mark.rule("I1", "I3")
def test_the_page_of_the_tools_is_that_of_the_docs(base: str) -> None:
    assert get(base, "/tools.md").body.decode() == TOOLS_PAGE


def test_llms_txt_has_the_form_of_the_convention(text: str) -> None:
    head, *sections = text.split("\n## ")
    title, quotation, *paragraphs = head.strip().split("\n\n")
    assert title == "# Shop Directory"
    assert [line for line in quotation.splitlines() if not line.startswith("> ")] == []
    assert paragraphs
    assert "\n#" not in "\n\n".join(paragraphs)
    assert [section.splitlines()[0] for section in sections] == ["Interface", "Tools", "Optional"]
    for section in sections:
        lines = section.strip().splitlines()[2:]
        assert lines
        assert [line for line in lines if not _LINK.match(line)] == []


@pytest.mark.rule("I78")
def test_llms_txt_names_every_tool_with_its_sentence_and_its_token_rule(text: str) -> None:
    section = text.partition("\n## Tools\n\n")[2].partition("\n\n## ")[0]
    found = [match.groups() for line in section.splitlines() if (match := _LINK.match(line))]
    assert [(name, link) for name, link, _ in found] == [(tool.name, f"/tools.md#{tool.name}") for tool in REGISTRY]
    for tool, (_, _, note) in zip(REGISTRY, found, strict=True):
        sentence, _, rule = note.rpartition(" Token: ")
        assert tool.description.startswith(sentence)
        assert rule == f"{tool.token.value}."
    required = [tool.name for tool in REGISTRY if tool.token is TokenRule.REQUIRED]
    assert f"Needed for {', '.join(f'`{name}`' for name in required)};" in text


@pytest.mark.rule("Q2")
def test_llms_txt_states_the_quotas_that_are_set(text: str) -> None:
    assert "Without a token: 2 reads and 3 suggestions a minute, no reports." in text
    assert "With one: 4,321 reads and 5 suggestions a minute, 7 reports an hour" in text


def test_every_link_of_llms_txt_leads_to_something_here(base: str, text: str) -> None:
    links = [match[2] for line in text.splitlines() if (match := _LINK.match(line))]
    assert [link for link in links if not link.startswith("/")] == []
    answers = {link: get(base, link.partition("#")[0]).status for link in links}
    unlike = {link: status for link, status in answers.items() if status != 200}
    assert unlike == {"/mcp": 405, "/version": 503}
    headings = set(re.findall(r"^## (\w+)$", TOOLS_PAGE, re.MULTILINE))
    assert {link.partition("#")[2] for link in links if "#" in link} <= headings


ROOT: Final = Path(__file__).parents[3]
ENTRY: Final[dict[str, Any]] = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_entry_of_the_registry_fits_its_schema_and_its_linter_finds_nothing(tmp_path: Path) -> None:
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


DOCUMENT: Final[dict[str, Any]] = openapi_document(REGISTRY)
OPERATIONS: Final[dict[str, dict[str, Any]]] = {
    on["operationId"]: on for methods in DOCUMENT["paths"].values() for on in methods.values()
}
STALE: Final = f"{FILE.name} is not what the service answers; renew it by `make examples`"


@pytest.mark.rule("I84", "I42")
def test_the_examples_are_what_the_service_answers(tmp_path: Path) -> None:
    assert FILE.read_text(encoding="utf-8") == written(record(tmp_path)), STALE


@pytest.mark.rule("I42", "E1")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_answer_and_each_error_of_a_tools_own_has_an_example(operation: str) -> None:
    described = OPERATIONS[operation]
    tools = [tool for tool in REGISTRY if tool.name == operation]
    own = [error.code for tool in tools for error in tool.errors]
    several = [f"example_{len(tool.examples)}" for tool in tools if tool.several]
    examples = {
        status: [*content["examples"]]
        for status, response in described["responses"].items()
        for content in response.get("content", {}).values()
        if "examples" in content
    }
    assert examples.pop("200") == ["example_1", *several]
    assert sorted(code for codes in examples.values() for code in codes) == own
    without = [part["name"] for part in described.get("parameters", ()) if "example" not in part]
    assert without == []


@pytest.mark.rule("I42", "I84")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_example_fits_its_schema(operation: str) -> None:
    examples = list(_examples(OPERATIONS[operation]))
    assert examples
    for schema, value in examples:
        _validator(schema).validate(value)


@pytest.mark.rule("E1")
def test_an_example_with_another_code_does_not_fit() -> None:
    content = OPERATIONS["get_shop"]["responses"]["404"]["content"]["application/problem+json"]
    problem = content["examples"]["shop_not_found"]["value"]
    validator = _validator(content["schema"])
    assert validator.is_valid(problem)
    assert not validator.is_valid({**problem, "code": "offer_not_found"})
    assert not validator.is_valid({**problem, "status": 400})
    assert not validator.is_valid({**problem, "note": "more"})


@pytest.mark.rule("O1", "I84")
def test_the_document_is_valid_openapi_3_1() -> None:
    validate(DOCUMENT, cls=OpenAPIV31SpecValidator)
    broken = {**DOCUMENT, "paths": {**DOCUMENT["paths"], "health": {}}}
    assert [error.message for error in OpenAPIV31SpecValidator(broken).iter_errors()] != []


@pytest.mark.rule("V1", "V2")
def test_no_example_holds_anything_of_a_hidden_shop() -> None:
    hidden = [shop for shop in records(SAMPLE / "shops.ndjson") if shop["visibility"] != "public"]
    ids = {shop["id"] for shop in hidden}
    words = {shop[field] for shop in hidden for field in ("id", "name", "domain")}
    words |= {alias for shop in hidden for alias in shop.get("aliases", ())}
    for name, field in (("coupons", "code"), ("offers", "id")):
        found = records(SAMPLE / f"{name}.ndjson")
        elsewhere = {record[field] for record in found if record["shop_id"] not in ids}
        words |= {record[field] for record in found if record["shop_id"] in ids} - elsewhere
    text = json.dumps(DOCUMENT, ensure_ascii=False)
    assert len(words) > 60
    assert [word for word in sorted(words) if word in text] == []


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    whole = {**schema, "components": DOCUMENT["components"]}
    return Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER)


def _examples(operation: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    for parameter in operation.get("parameters", ()):
        yield parameter["schema"], parameter["example"]
    bodies = [operation["requestBody"]] if "requestBody" in operation else []
    for part in (*bodies, *operation["responses"].values()):
        for content in part.get("content", {}).values():
            yield from ((content["schema"], example["value"]) for example in content.get("examples", {}).values())
