"""docs/mcp.md, made from the MCP server: `python -m tests.rules.mcp.page > docs/mcp.md`.

Lists and arguments come from the registries, so that the page lists exactly what exists.
"""

import sys
from typing import Final

from service.mcp_server.prompts import MAX_VALUES, PROMPTS
from service.mcp_server.resources import CATEGORIES, SHOP
from service.mcp_server.server import CACHED_LISTS, CACHED_SECONDS
from service.tools.registry import REGISTRY
from shop_directory.search.bounds import MAX_Q, MAX_SUGGESTIONS

_INTRODUCTION: Final = """\
# Over MCP

Made by `python -m tests.rules.mcp.page > docs/mcp.md`: change the code, not this file.

`POST /mcp` and `shop-directory mcp` (on stdio) speak the handshake revisions up to 2025-11-25 and 2026-07-28. There are
no sessions: one message, one JSON answer. [Clients](clients.md) has the settings for common hosts. With
`SHOP_DIRECTORY_PUBLIC_URL`, `serverInfo` names the page of the service (`websiteUrl`) and its icon (`icons`). With
[an OAuth issuer](running.md#sign-in-by-oauth), `POST /mcp/oauth` is the same for callers who have its tokens."""
_READING: Final = """\
Reading a resource is calling its tool: the same quota, deadline, log and data, and the text is the tool's answer, byte
for byte; `_meta` says which data it comes from. What follows `shop://` is percent-decoded and then taken as
`shop_domain` is. No list names the shops: use `find_shop`, or complete the template.

A URI at which there is nothing, a shop that the directory does not know included, is error -32602 (-32002 up to
2025-11-25), which repeats nothing of what was sent. What can't be read now is error -32603 with the problem object as
`data`; `detail` says how long to wait."""
_PROMPTS: Final = """\
A prompt is text that leads an agent through the tools; it reads no data itself. Arguments are checked as the tools
check them; wrong ones are error -32602 with the problem object as `data`. They stand in the text as JSON."""
# What arguments are completed to, by their names.
_COMPLETED: Final = {
    "shop_domain": "domains of shops",
    "category": "slugs of categories",
    "country": "codes of countries",
}
_COMPLETION: Final = f"""\
`completion/complete` takes an argument of a prompt, or `{{domain}}` of the template. The protocol has none for the
arguments of tools: complete the prompt's `shop_domain` and `category` instead.

- Shops come as on `/suggest`, typing errors forgiven: domains, at most {MAX_SUGGESTIONS}. `hasMore` says whether there
  are more; they are not counted, so there is no `total`.
- Categories are those of `list_categories` whose display name or slug has a word that begins so: slugs, at most
  {MAX_VALUES}, with `total`.
- Countries are the codes that `country` takes, at most {MAX_VALUES}, with `total`.

At most {MAX_Q} characters can be completed. A completion counts in the quota of `/suggest`. Where the directory can't
be asked the answer is error -32603, never an empty completion."""
_CACHING: Final = f"""\
{", ".join(f"`{method}`" for method in CACHED_LISTS)}: `ttlMs` {CACHED_SECONDS * 1_000}, `public`; they change with the
program only. `resources/read`: `ttlMs` 0, `private`, as everything that the data say is `no-store`. With
`SHOP_DIRECTORY_MCP_ANONYMOUS_TOOLS=usable`, `tools/list` leaves out what needs a token for callers without a valid one;
it is `ttlMs` 0, `private` then."""


def mcp_page() -> str:
    """The whole page, in Markdown."""
    tools = f"The {len(REGISTRY)} [tools](tools.md) of REST, with the same answers."
    rows = [(CATEGORIES.uri, CATEGORIES.description), (SHOP.uri_template, SHOP.description)]
    resources = "\n".join(["| URI | what it is |", "|---|---|", *(f"| `{uri}` | {text} |" for uri, text in rows)])
    parts = [_INTRODUCTION, "## Tools", tools, "## Resources", resources, _READING, "## Prompts", _PROMPTS]
    parts += [_prompts(), _arguments(), "## Completion", _COMPLETION, "## Caching", _CACHING]
    return "\n\n".join(parts) + "\n"


def _prompts() -> str:
    return "\n".join(f"- `{prompt.name}`: *{prompt.title}.* {prompt.description}" for prompt in PROMPTS)


def _arguments() -> str:
    rows = [
        f"| `{prompt.name}` | `{argument.name}` | {'yes' if argument.required else 'no'} | {argument.description} "
        f"| {_COMPLETED.get(argument.name, '')} |"
        for prompt in PROMPTS
        for argument in prompt.arguments or ()
    ]
    heads = "| prompt | argument | required | what it is | is completed to |"
    return "\n".join([heads, "|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(mcp_page())
