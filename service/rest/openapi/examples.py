"""Examples of the OpenAPI document: calls of the sample catalogue and what was really answered.

`make examples` writes them anew, by calling the service; nothing in them was written by hand.
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
        name: the same for no two with one status and media type of an operation.
        summary: what is special about it.
        asked: the body, or the parameters of a query; None where the operation takes nothing, or was asked wrongly.
        status: of HTTP.
        media_type: of the answer.
        answer: its JSON value, or its text.
    """

    operation: str
    name: str
    summary: str
    asked: Any
    status: int
    media_type: str
    answer: Any


def recorded() -> tuple[Exchange, ...]:
    """All exchanges that the package carries."""
    return tuple(Exchange(**each) for each in json.loads(files(__package__).joinpath(FILE).read_bytes()))


def with_examples(document: Schema, exchanges: Iterable[Exchange]) -> Schema:
    """The document with the exchanges of its operations in their places.

    Args:
        document: an OpenAPI document without examples of requests and answers.
        exchanges: those of operations that the document does not have are left out, so that the service starts, and can
            record new ones, after an operation was taken away.
    """
    of_operation = {name: tuple(own) for name, own in groupby(sorted(exchanges, key=_operation_of), key=_operation_of)}
    paths = {
        path: {
            method: _shown(operation, of_operation.get(operation["operationId"], ()))
            for method, operation in on.items()
        }
        for path, on in document["paths"].items()
    }
    return {**document, "paths": paths}


def _operation_of(exchange: Exchange) -> str:
    return exchange.operation


def _shown(operation: Schema, exchanges: tuple[Exchange, ...]) -> Schema:
    shown = {
        **operation,
        "responses": {status: _response(status, told, exchanges) for status, told in operation["responses"].items()},
    }
    good = [exchange for exchange in exchanges if exchange.status == _SUCCESS]
    if "requestBody" in operation:
        asked = {each.name: {"summary": each.summary, "value": each.asked} for each in good}
        body = operation["requestBody"]
        content = {**body["content"], _JSON: {**body["content"][_JSON], "examples": asked}}
        shown["requestBody"] = {**body, "content": content}
    if "parameters" in operation:
        shown["parameters"] = [_parameter(parameter, good) for parameter in operation["parameters"]]
    return shown


def _parameter(parameter: Schema, exchanges: list[Exchange]) -> Schema:
    values = {
        each.name: {"summary": each.summary, "value": each.asked[parameter["name"]]}
        for each in exchanges
        if parameter["name"] in each.asked
    }
    return {**parameter, "examples": values} if values else parameter


def _response(status: str, told: Schema, exchanges: tuple[Exchange, ...]) -> Schema:
    if "content" not in told:
        return told
    content = {
        media_type: {**part, "examples": examples} if examples else part
        for media_type, part in told["content"].items()
        for examples in [_examples(exchanges, int(status), media_type)]
    }
    return {**told, "content": content}


def _examples(exchanges: tuple[Exchange, ...], status: int, media_type: str) -> Schema:
    return {
        each.name: {"summary": each.summary, **_asked(each), "value": each.answer}
        for each in exchanges
        if (each.status, each.media_type) == (status, media_type)
    }


def _asked(exchange: Exchange) -> Schema:
    """What an error was the answer to; what a good answer was one to stands beside it under the same name."""
    if exchange.status == _SUCCESS or exchange.asked is None:
        return {}
    return {"description": f"Asked with `{json.dumps(exchange.asked, ensure_ascii=False)}`."}
