"""Examples of the OpenAPI document: recorded calls of a service on the sample catalogue.

`make examples` records them again; nothing in them is written by hand.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import Any, Final

Schema = dict[str, Any]

FILE: Final = "examples.json"
_SUCCESS: Final = 200
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its answer.

    Attributes:
        operation: the operationId.
        name: unique among the exchanges of an operation with one status and media type.
        summary: what the example shows.
        asked: the body, or the query parameters; None where the operation has no input, or the input was malformed.
        status: the HTTP status.
        media_type: the media type of the answer.
        answer: the answer's JSON value, or its text.
    """

    operation: str
    name: str
    summary: str
    asked: Any
    status: int
    media_type: str
    answer: Any


def recorded() -> tuple[Exchange, ...]:
    """All exchanges in the package's file."""
    return tuple(Exchange(**each) for each in json.loads(files(__package__).joinpath(FILE).read_bytes()))


def with_examples(document: Schema, exchanges: Iterable[Exchange]) -> Schema:
    """A copy of a document with examples of its requests and answers.

    Examples of unknown operations are ignored, so that the service still starts, and can record new ones, after an
    operation was removed.
    """
    by_operation = {
        name: tuple(group) for name, group in groupby(sorted(exchanges, key=_operation_of), key=_operation_of)
    }
    paths = {
        path: {
            method: _with_examples(operation, by_operation.get(operation["operationId"], ()))
            for method, operation in on.items()
        }
        for path, on in document["paths"].items()
    }
    return {**document, "paths": paths}


def _operation_of(exchange: Exchange) -> str:
    return exchange.operation


def _with_examples(operation: Schema, exchanges: tuple[Exchange, ...]) -> Schema:
    result = {
        **operation,
        "responses": {
            status: _response(status, response, exchanges) for status, response in operation["responses"].items()
        },
    }
    successes = [exchange for exchange in exchanges if exchange.status == _SUCCESS]
    if "requestBody" in operation:
        examples = {each.name: {"summary": each.summary, "value": each.asked} for each in successes}
        body = operation["requestBody"]
        content = {**body["content"], _JSON: {**body["content"][_JSON], "examples": examples}}
        result["requestBody"] = {**body, "content": content}
    if "parameters" in operation:
        result["parameters"] = [_parameter(parameter, successes) for parameter in operation["parameters"]]
    return result


def _parameter(parameter: Schema, exchanges: list[Exchange]) -> Schema:
    values = {
        each.name: {"summary": each.summary, "value": each.asked[parameter["name"]]}
        for each in exchanges
        if parameter["name"] in each.asked
    }
    return {**parameter, "examples": values} if values else parameter


def _response(status: str, response: Schema, exchanges: tuple[Exchange, ...]) -> Schema:
    if "content" not in response:
        return response
    content = {
        media_type: {**part, "examples": examples} if examples else part
        for media_type, part in response["content"].items()
        for examples in [_examples(exchanges, int(status), media_type)]
    }
    return {**response, "content": content}


def _examples(exchanges: tuple[Exchange, ...], status: int, media_type: str) -> Schema:
    return {
        each.name: {"summary": each.summary, **_input_of(each), "value": each.answer}
        for each in exchanges
        if (each.status, each.media_type) == (status, media_type)
    }


def _input_of(exchange: Exchange) -> Schema:
    """The input of an error as a description; the input of a success is an example of the request."""
    if exchange.status == _SUCCESS or exchange.asked is None:
        return {}
    return {"description": f"Asked with `{json.dumps(exchange.asked, ensure_ascii=False)}`."}
