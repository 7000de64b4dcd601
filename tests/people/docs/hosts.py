"""What a host of MCP makes of the snippets that are written for it: where it connects to, with which header.

The keys are those of the hosts' own formats; one that none of them has is an error here, and would be overlooked there.
"""

import argparse
import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.people.docs.pages import PAGES, Block

TOKEN: Final = "SHOP_DIRECTORY_API_TOKEN"
_LANGUAGES: Final = ("json", "toml", "bash")
_ON_HTTP: Final = {"type", "url", "serverUrl", "headers", "env_http_headers"}
_ON_STDIO: Final = {"command", "args", "env"}
_TYPES: Final = (None, "http", "streamableHttp")
_INPUT: Final = re.compile(r"\$\{input:([\w-]+)\}")
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Z_]+)\}")


@dataclass(frozen=True, slots=True)
class Server:
    """One server of a snippet: over HTTP it has a URL and headers, over stdio a command with variables."""

    block: Block
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.block.location} {'http' if self.url else 'stdio'}"


def servers(token: str) -> list[Server]:
    """All servers of all snippets on the pages; `token` is what their user would put in."""
    blocks = [block for page in PAGES if page.path in {"README.md", "docs/clients.md"} for block in page.blocks]
    return [_read(block, token) for block in blocks if block.language in _LANGUAGES]


def _read(block: Block, token: str) -> Server:
    if block.language == "bash":
        return _of_command(block, shlex.split(block.text.replace("$TOKEN", token)))
    if block.language == "toml":
        (given,) = tomllib.loads(block.text)["mcp_servers"].values()
        return _of_entry(block, given, token)
    document = json.loads(block.text)
    asked = {one["id"] for one in document.pop("inputs", ()) if one["type"] == "promptString" and one["password"]}
    (listed,) = document.values()
    assert set(document) <= {"mcpServers", "servers"}, block.location
    (given,) = listed.values()
    named = set(_INPUT.findall(json.dumps(given)))
    assert named == asked, f"{block.location}: an input that is not asked for, or asked for in vain"
    return _of_entry(block, given, token)


def _of_entry(block: Block, given: Mapping[str, Any], token: str) -> Server:
    if "command" in given:
        assert set(given) <= _ON_STDIO, block.location
        variables = {name: _filled(value, token) for name, value in given["env"].items()}
        return Server(block, command=(given["command"], *given["args"]), variables=variables)
    assert set(given) <= _ON_HTTP, block.location
    assert given.get("type") in _TYPES, block.location
    headers = {name: _filled(value, token) for name, value in given.get("headers", {}).items()}
    for name, variable in given.get("env_http_headers", {}).items():
        headers[name] = _filled(f"${{{variable}}}", token)
    return Server(block, url=given.get("url") or given["serverUrl"], headers=headers)


def _filled(value: str, token: str) -> str:
    """A value as the host fills it in: what it asked for, its environment's variable, or what its user wrote there."""
    filled = _VARIABLE.sub(lambda found: {TOKEN: token}[found[1]], _INPUT.sub(token, value))
    return token if filled == "<the token>" else filled


def _of_command(block: Block, words: list[str]) -> Server:
    """`claude mcp add` by its own syntax: options, a name, a URL."""
    assert words[:3] == ["claude", "mcp", "add"], block.location
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["http"], required=True)
    parser.add_argument("--header", action="append", required=True)
    parser.add_argument("name")
    parser.add_argument("url")
    given = parser.parse_args(words[3:])
    return Server(block, url=given.url, headers=dict(header.split(": ", 1) for header in given.header))
