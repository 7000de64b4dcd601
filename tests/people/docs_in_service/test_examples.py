"""The examples of the OpenAPI document are what the service really answers: complete, valid, without hidden shops."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from service.rest.openapi.document import openapi_document
from service.rest.openapi.examples import Exchange, with_examples
from service.tools.registry import REGISTRY
from tests.people.docs_in_service.recording import FILE, written
from tests.support.sample import SAMPLE, records

DOCUMENT: Final[dict[str, Any]] = openapi_document(REGISTRY)
OPERATIONS: Final[dict[str, dict[str, Any]]] = {
    on["operationId"]: on for methods in DOCUMENT["paths"].values() for on in methods.values()
}
STALE: Final = f"{FILE.name} is not what the service answers; renew it by `make examples`"


@pytest.mark.rule("I84", "I42")
def test_the_examples_are_what_the_service_answers(answered: tuple[Exchange, ...]) -> None:
    assert FILE.read_text(encoding="utf-8") == written(answered), STALE


@pytest.mark.rule("I42", "E1")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_and_error_of_an_operation_has_an_example(operation: str) -> None:
    described = OPERATIONS[operation]
    without = [
        f"{status} {media_type}"
        for status, response in described["responses"].items()
        for media_type, content in response.get("content", {}).items()
        if not content.get("examples")
    ]
    assert without == []
    for status, response in described["responses"].items():
        if problem := response.get("content", {}).get("application/problem+json"):
            codes = {example["value"]["code"] for example in problem["examples"].values()}
            assert codes == set(problem["schema"]["properties"]["code"]["enum"]), status
    asked = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("examples")
    good = described["responses"]["200"]["content"]
    if asked is not None:
        assert asked.keys() == good["application/json"]["examples"].keys()
    for parameter in described.get("parameters", ()):
        assert parameter["examples"]


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


def test_examples_of_an_operation_that_is_gone_are_left_out() -> None:
    operation = {"operationId": "here", "responses": {"200": {"content": {"application/json": {"schema": {}}}}}}
    found = [
        Exchange(name, "example_1", "Once", None, 200, "application/json", {"at": name}) for name in ("gone", "here")
    ]
    completed = with_examples({"paths": {"/here": {"get": operation}}}, found)["paths"]["/here"]["get"]
    content = {"schema": {}, "examples": {"example_1": {"summary": "Once", "value": {"at": "here"}}}}
    assert completed == {"operationId": "here", "responses": {"200": {"content": {"application/json": content}}}}


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    whole = {**schema, "components": DOCUMENT["components"]}
    return Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER)


def _examples(operation: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    for parameter in operation.get("parameters", ()):
        yield from ((parameter["schema"], example["value"]) for example in parameter["examples"].values())
    bodies = [operation["requestBody"]] if "requestBody" in operation else []
    for part in (*bodies, *operation["responses"].values()):
        for content in part.get("content", {}).values():
            yield from ((content["schema"], example["value"]) for example in content["examples"].values())
