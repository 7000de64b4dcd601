"""Where a tool appears: `python -m tests.people.contributing.everywhere NAME` serves a small world and asks it.

Prints a JSON object: for each transport and page, whether the tool is there.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client

from service.app import create_app
from service.settings.service import Settings
from tests.support.served import get, post, served
from tests.support.transports import mcp_transports
from tests.support.worlds import embedded_world


async def appearances(tool: str, folder: Path) -> dict[str, Any]:
    """What the tool answers by REST and, where it is listed, by each transport of MCP; and which pages name it."""
    index = embedded_world(folder)
    with served(create_app(Settings(data_dir=index, request_timeout=10.0))) as base:
        answer = post(base, f"/tool/{tool}", {})
        found: dict[str, Any] = {"REST": answer.json}
        async with mcp_transports(base, index) as transports:
            for name, client in transports.items():
                found[name] = await _over_mcp(client, tool)
        document = get(base, "/openapi.json").json
        found["OpenAPI"] = document["paths"][f"/tool/{tool}"]["post"]["operationId"] == tool
        found["tools.md"] = f"\n## {tool}\n" in get(base, "/tools.md").body.decode()
        found["llms.txt"] = f"[{tool}](/tools.md#{tool})" in get(base, "/llms.txt").body.decode()
    return found


async def _over_mcp(client: Client, tool: str) -> Any:  # noqa: ANN401 - the tool's answer
    listed = {one.name for one in (await client.list_tools()).tools}
    return (await client.call_tool(tool, {})).structured_content if tool in listed else None


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        json.dump(asyncio.run(appearances(sys.argv[1], Path(made))), sys.stdout)
