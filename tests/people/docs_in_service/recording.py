"""The answers among the examples of the OpenAPI document: a service on the sample is asked, and answers as it does.

The first example of each request is sent, and what leads to each error that a tool has of its own. What differs from
one time to the next is replaced.
"""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import service.rest.openapi
from service.limits.policy import ANONYMOUS, DEFAULT_CLASS, WITH_TOKEN
from service.rest.openapi.document import EXAMPLES_FILE, openapi_document
from service.tools.registry import REGISTRY
from tests.rules.transports.conftest import BUILT_AT, COMMIT
from tests.support.sample import SampleService, sample_service
from tests.support.served import ask

FILE: Final = Path(str(files(service.rest.openapi).joinpath(EXAMPLES_FILE)))
# What leads to an error that a tool has of its own.
REFUSED: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "page_too_deep": ("A page that nobody reads", {"query": "", "offset": 100_000, "limit": 10}),
    "unknown_category": ("A slug that is not of list_categories", {"query": "", "category": "lightning"}),
    "too_many_coupons": ("All shops, where the operator has set a bound", {}),
    "offer_not_found": ("An offer that there is not", {"offer_id": "off_unknown"}),
    "no_valid_checkout_url": ("An offer whose URL is not safe", {"offer_id": "off_invalid-ftp"}),
    "shop_not_found": ("A shop that the directory does not have", {"shop_domain": "no-such-shop.internal"}),
}

_TIMESTAMP: Final = "2030-01-31T09:30:00Z"
_GENERATION: Final = "20300131t093000000000-0a1b2c"
# Of the operators' state and of MCP's _meta; no answer of a tool has such a field.
_VOLATILE: Final[dict[str, Any]] = {
    "asked_at": _TIMESTAMP,
    "started_at": _TIMESTAMP,
    "built_at": _TIMESTAMP,
    "x-data-as-of": _TIMESTAMP,
    "generation": _GENERATION,
    "x-generation": _GENERATION,
    "x-request-id": "0123456789abcdef0123456789abcdef",
    "age_seconds": 12.5,
    "pid": 42,
}
# The metrics that say the same at any time.
_METRICS: Final = re.compile(
    r"^(# \w+ )?(shopdir_engine_up|shopdir_documents|shopdir_generation_readable|shopdir_recheck_queue_up|"
    r"shopdir_resource_accounts_known|shopdir_resource_used|shopdir_resource_limit)(_total)?[ {]"
)


def record(folder: Path) -> list[dict[str, Any]]:
    quotas = {"quota_anonymous": ANONYMOUS, "quota_classes": {DEFAULT_CLASS: WITH_TOKEN}}
    with sample_service(folder, commit=COMMIT, built_at=BUILT_AT, most_coupons_rest=10, **quotas) as sample:
        return [*_answers(sample), *_refusals(sample)]


def written(examples: list[dict[str, Any]]) -> str:
    return json.dumps(examples, indent=1, ensure_ascii=False) + "\n"


def _answers(sample: SampleService) -> Iterator[dict[str, Any]]:
    for path, methods in openapi_document(REGISTRY)["paths"].items():
        for method, operation in methods.items():
            query = {parameter["name"]: parameter["example"] for parameter in operation.get("parameters", ())}
            target = f"{path}?{urlencode(query)}" if query else path
            for name, summary, body in _requests(operation):
                for media_type in operation["responses"]["200"]["content"]:
                    answered = _asked(sample, method.upper(), target, body, media_type)
                    yield {"operation": operation["operationId"], "name": name, "summary": summary, **answered}


def _requests(operation: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Name, summary and body of the requests whose answers are recorded: the first, and that for several shops."""
    if "requestBody" not in operation:
        yield "example_1", "What the service answers", None
        return
    for name, example in operation["requestBody"]["content"]["application/json"]["examples"].items():
        if name == "example_1" or "shop_domains" in example["value"]:
            yield name, example["summary"], example["value"]


def _refusals(sample: SampleService) -> Iterator[dict[str, Any]]:
    for tool in REGISTRY:
        for error in tool.errors:
            summary, arguments = REFUSED[error.code]
            if "from_shop_id" in tool.request.model_fields:
                arguments = {"from_shop_id": arguments["shop_domain"]}
            elif error.code == "shop_not_found":
                arguments = tool.examples[0].arguments | arguments
            answered = _asked(sample, "POST", f"/tool/{tool.name}", arguments)
            yield {"operation": tool.name, "name": error.code, "summary": summary, **answered}


def _asked(
    sample: SampleService, method: str, path: str, body: Mapping[str, Any] | None, accept: str = "application/json"
) -> dict[str, Any]:
    headers = {"content-type": "application/json", "accept": accept, "x-api-token": sample.token}
    # A persistent connection could be answered by the fast path, which only suggest requests have.
    headers["connection"] = "close"
    reply = ask(sample.base, method, path, None if body is None else json.dumps(body).encode(), headers)
    media_type = reply.headers["content-type"].partition(";")[0]
    text = reply.body.decode()
    answer: Any = "".join(line for line in text.splitlines(keepends=True) if _METRICS.match(line))
    if media_type.endswith("json"):
        answer = _settled(json.loads(text))
    return {"status": reply.status, "media_type": media_type, "answer": answer}


def _settled(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: _known(name, part) for name, part in value.items()}
    return [_settled(part) for part in value] if isinstance(value, list) else value


def _known(name: str, part: Any) -> Any:  # noqa: ANN401 - any JSON value
    if name in _VOLATILE and part is not None and not isinstance(part, dict | list):
        return _VOLATILE[name]
    return _settled(part)
