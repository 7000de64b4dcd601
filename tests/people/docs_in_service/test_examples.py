"""The examples of the OpenAPI document are what the service really answers: complete, valid, without hidden shops."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from service.rest.openapi.document import openapi_document
from service.tools.registry import REGISTRY
from service.tools.tool import own_errors
from tests.people.docs_in_service.recording import FILE, record, written
from tests.support.sample import SAMPLE, records

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
    own = [error.code for tool in REGISTRY if tool.name == operation for error in own_errors(tool)]
    examples = {
        status: [*content["examples"]]
        for status, response in described["responses"].items()
        for content in response.get("content", {}).values()
        if "examples" in content
    }
    assert examples.pop("200") == ["example_1"]
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
