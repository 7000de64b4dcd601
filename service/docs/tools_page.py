"""docs/tools.md, made from the registry: `python -m service.docs.tools_page > docs/tools.md`.

The page is made from the tools themselves, so that no description exists twice or gets stale (I5).
"""

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from service.errors import ServiceError
from service.tools.registry import REGISTRY
from service.tools.resolve_conflict import RESOLVE_CONFLICT, SIMILAR, Kind
from service.tools.shop_view import ShopView
from service.tools.tool import COMMON, CREDENTIALS, TokenRule, Tool, request_schema, response_schema

JsonSchema = dict[str, Any]

_AS_ANSWER: Final = " With the fields of the answer above."
_AS_GET_SHOP: Final = " With the fields of [`get_shop`](#get_shop)."

_INTRODUCTION: Final = """\
# The tools

Made from the registry by `python -m service.docs.tools_page > docs/tools.md`: change the tools, not this file.

Each tool is `POST /tool/<name>` with a JSON object as body, and a tool of the same name and the same answers over MCP,
at `POST /mcp` and on stdio. `null` and `""` in a parameter that is not required are the same as leaving it out; an
unknown parameter is an error. Times are RFC 3339 in UTC, amounts are decimal numbers as strings.

A token goes into the header `x-api-token`; over stdio, into the variable `SHOP_DIRECTORY_API_TOKEN`. Where it is
optional it raises the quotas.

The calls below work on the sample catalogue. What is answered to them, and a real example of each error that a tool has
of its own, is at `GET /docs`, to read and to try, and for programs in `GET /openapi.json`."""
_PROBLEMS: Final = """\
An error is a problem document (RFC 9457) with `type`, `title`, `status`, `detail` and `code`, and for wrong input with
`errors`, one entry a field. Over MCP it is the text of a result with `isError`; a missing or wrong token is a JSON-RPC
error with the same object as its `data`. On 429 and 503, `Retry-After` says how many seconds to wait."""
_PATHS: Final = (
    ("`GET /suggest`", "typeahead, for each keystroke: popular shops and categories, with tolerance for typing errors"),
    ("`POST /mcp`", "the tools over MCP"),
    ("`GET /docs`, `/openapi.json`, `/llms.txt`", "the interface for people, for programs and for agents"),
    ("`GET /health`, `/ready`, `/version`", "probes"),
    ("`GET /widget.js`", "a search field for any page; `/widget.html` shows it"),
)
_SUGGEST: Final = """\
```sh
curl 'localhost:8080/suggest?q=lumn'
```"""
_HEADERS: Final = (
    (
        "`x-api-token`",
        "requests",
        "the token; a wrong one is refused where a token is required, and ignored elsewhere; two are 400",
    ),
    (
        "`x-request-id`",
        "every answer",
        "the id of the request in the operator's log; over MCP this and the next two are in `_meta`",
    ),
    (
        "`x-generation`, `x-data-as-of`",
        "answers from the data",
        "which data the answer comes from, and when they were last changed",
    ),
    (
        "`RateLimit-Policy`, `RateLimit`",
        "answers that count in a quota",
        "the quota, what remains of it, and the seconds until it resets",
    ),
    ("`Retry-After`", "429 and 503", "the seconds to wait"),
    ("`Accept-Encoding: gzip`", "requests", "compresses answers of 1,024 bytes or more, except those of `/suggest`"),
    (
        "`ETag`",
        "`/suggest`, the start page, files of pages, `/widget.js`",
        "to be sent back in `If-None-Match`; answers of tools, probes and `/mcp` are `no-store`",
    ),
)
_EVIDENCE: Final[dict[Kind, str]] = {
    "registrable_domain": "the domains have the same part that somebody registers",
    "main_label": "the domains are alike but for what stands around their main label",
    "name_similarity": f"the folded names are at least {SIMILAR:.0f}% alike",
    "shared_alias": "a name or an alias of the one is a name or an alias of the other",
    "stated_redirect": "the source saw one domain lead to the other",
    "categories": "they carry a category in common",
    "markets": "they state a market in common, or one of them sells world-wide",
}
_VERDICTS: Final = {
    "likely_same": (
        "A redirect is stated; or the registrable domain and a name as both sources state it (spelling folded, nothing "
        "transliterated) are the same, no third shop without that name is on that domain, and their stated markets are "
        "not disjoint. World-wide and unstated markets are never disjoint."
    ),
    "likely_different": "Registrable domain, main label, names, aliases and redirects all disagree.",
    "insufficient_evidence": (
        "Everything else: one name on two domains, or one domain with two names, is mostly two companies or two brands."
    ),
}


def tools_page() -> str:
    """The whole page, in Markdown."""
    rows = [(f"[`{tool.name}`](#{tool.name})", tool.title, tool.token.value) for tool in REGISTRY]
    parts = [_INTRODUCTION, _table(("tool", "what it is for", "token"), rows)]
    parts += ["## Errors of every tool", _PROBLEMS, _error_table((*COMMON, *CREDENTIALS))]
    parts += ["## Paths and headers", _table(("path", "what it is"), _PATHS), _SUGGEST]
    parts.append(_table(("header", "of", "meaning"), _HEADERS))
    for tool in REGISTRY:
        parts += _tool(tool)
    return "\n\n".join(parts) + "\n"


def _tool(tool: Tool[Any]) -> Iterator[str]:
    yield f"## {tool.name}"
    yield f"**{tool.title}.** {tool.description}"
    if tool.note:
        yield tool.note
    yield f"Token: {tool.token.value}." + ("" if tool.read_only else " It writes: it appends a report.")
    schema = request_schema(tool.request)
    required = schema.get("required", [])
    rows = [
        (f"`{name}`", _type(part), "yes" if name in required else _default(part), part["description"])
        for name, part in schema["properties"].items()
    ]
    yield _table(("parameter", "type", "required", "what it is"), rows)
    for given, model in zip(("", " to shop_domains"), tool.responses, strict=False):
        yield f"The answer{given}:"
        yield _table(("field", "type", "what it is"), _fields(response_schema(model), set(tool.response.model_fields)))
    if tool.errors:
        yield "Errors besides those of every tool:"
        yield _error_table(tool.errors)
    yield _curl(tool)
    if tool is RESOLVE_CONFLICT:
        yield from _audit()


def _audit() -> Iterator[str]:
    yield "### Evidence and verdict"
    yield _table(("kind", "agrees when"), [(f"`{kind}`", when) for kind, when in _EVIDENCE.items()])
    yield _table(("verdict", "when"), [(f"`{verdict}`", when) for verdict, when in _VERDICTS.items()])
    yield "The similarity of names, categories and markets in common are shown and decide nothing."


def _curl(tool: Tool[Any]) -> str:
    example = tool.examples[0]
    token = ' -H "x-api-token: $TOKEN"' if tool.token is TokenRule.REQUIRED else ""
    body = shlex.quote(json.dumps(example.arguments, ensure_ascii=False))
    command = f"curl localhost:8080/tool/{tool.name} -H 'content-type: application/json'{token} \\\n  -d {body}"
    return f"{example.summary}:\n\n```sh\n{command}\n```"


def _fields(schema: JsonSchema, answer: set[str], above: str = "") -> Iterator[tuple[str, str, str]]:
    for name, part in schema["properties"].items():
        path = f"{above}{name}"
        by_name = part.get("additionalProperties") or {}
        inner = by_name or part.get("items", part)
        fields = inner.get("properties", {})
        # A shop may have more fields than those of every shop.
        known, described = "", set[str]()
        if ShopView.model_fields.keys() <= fields.keys():
            known, described = _AS_GET_SHOP, set(ShopView.model_fields)
        elif fields.keys() == answer:
            known, described = _AS_ANSWER, answer
        yield f"`{path}`", _type(part), part["description"] + known
        own = {field: fields[field] for field in fields if field not in described}
        below = f"{path}[]." if "items" in part else f"{path}.*." if by_name else f"{path}."
        yield from _fields({"properties": own}, answer, below)


def _type(part: JsonSchema) -> str:
    if "const" in part or "enum" in part:
        values = part.get("enum", [part.get("const")])
        return " or ".join(
            "null" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`" for value in values
        )
    types = part["type"] if isinstance(part["type"], list) else [part["type"]]
    return " or ".join(f"array of {_type(part['items'])}" if kind == "array" else str(kind) for kind in types)


def _default(part: JsonSchema) -> str:
    return f"no, {json.dumps(part['default'])}" if "default" in part else "no"


def _error_table(errors: Iterable[type[ServiceError]]) -> str:
    ordered = sorted(errors, key=lambda error: error.status)
    rows = [(str(error.status), f"`{error.code}`", error.default_detail) for error in ordered]
    return _table(("status", "code", "detail"), rows)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(tools_page())
