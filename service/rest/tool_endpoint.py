"""POST /tool/<name>: takes the body and the caller, and leaves the call to the dispatcher (R5)."""

from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.types import Scope

from service.calls.dispatch import Dispatcher
from service.errors import FieldError, ServiceError, UnsupportedMediaTypeError
from service.http.messages import (
    BODY,
    JSON,
    Answer,
    Endpoint,
    header,
    http_caller,
    is_json,
    problem_answer,
    stamp_headers,
)
from service.runtime.caller import Channel, Proxies
from service.tools.request import invalid, shown_name


def tool_endpoint(name: str, dispatcher: Dispatcher, trusted: Proxies) -> Endpoint:
    """The endpoint of one tool."""

    async def answer(request: Request) -> Answer:
        scope = request.scope
        outcome = await dispatcher.call(name, _body(scope), http_caller(scope, Channel.REST, trusted))
        headers = (*stamp_headers(outcome.stamp), *outcome.headers)
        if outcome.error is not None:
            return problem_answer(outcome.error, headers, outcome.body)
        return Answer(200, outcome.body, JSON, headers)

    return Endpoint(("POST",), answer)


def _body(scope: Scope) -> bytes | ServiceError:
    if not is_json(header(scope["headers"], b"content-type")):
        return UnsupportedMediaTypeError()
    body: bytes | ServiceError = scope[BODY]
    if isinstance(body, ServiceError) or not (query_string := scope["query_string"]):
        return body
    # Ignoring arguments in the query string could ignore a filter (R3).
    names = dict.fromkeys(
        shown_name(name) for name, _ in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)
    )
    message = "is in the query string, where this path takes nothing; send it in the JSON body"
    return invalid(tuple(FieldError(name, message) for name in names or ("(a field)",)))
