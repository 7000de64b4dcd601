"""Tries an installed wheel as a user would: `python -m tests.people.publishing.try_wheel dist`.

Makes a virtual environment with the Python that runs this, installs the wheel of the folder in it, and tries the
command in an empty folder: it indexes the sample, serves it, and answers a call over stdio. Needs no test dependency.
"""

import http.client
import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.support.real.process import free_ports

# The first build compiles the kernel of the typeahead, which takes half a minute of a processor.
_BUILD_S: Final = 360.0
_START_S: Final = 120.0
_VERSION: Final = "2025-11-25"


def try_command(command: Path, folder: Path) -> dict[str, Any]:
    """Index the sample in an empty folder, serve it, and call it over stdio, with the installed `shop-directory`.

    Returns the body of `/suggest?q=lum`, and the structured result of the same search over stdio, as `suggest` and
    `found`.
    """
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("SHOP_DIRECTORY_", "PYTHON"))
    }
    subprocess.run([command, "index", "build"], cwd=folder, env=variables, timeout=_BUILD_S, check=True)
    return {"suggest": _served(command, folder, variables), "found": _over_stdio(command, folder, variables)}


def _served(command: Path, folder: Path, variables: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    (port,) = free_ports(1)
    service = subprocess.Popen([command, "serve", "--port", str(port)], cwd=folder, env=variables)
    try:
        until = time.monotonic() + _START_S
        while (answer := _get(port, "/ready")) is None or answer[0] != http.client.OK:
            if service.poll() is not None or time.monotonic() > until:
                raise TimeoutError(f"the service did not become ready: {answer}")
            time.sleep(0.1)
        found = _get(port, "/suggest?q=lum")
    finally:
        service.terminate()
        service.wait(timeout=_START_S)
    if found is None or found[0] != http.client.OK:
        raise RuntimeError(f"/suggest answered {found}")
    return found[1]


def _get(port: int, path: str) -> tuple[int, Any] | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except OSError:
        return None
    finally:
        connection.close()


def _over_stdio(command: Path, folder: Path, variables: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    client = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "try", "version": "1"}}
    call = {"name": "find_shop", "arguments": {"query": "lum"}}
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    )
    lines = "".join(f"{json.dumps(message)}\n" for message in messages)
    done = subprocess.run(
        [command, "mcp"],
        cwd=folder,
        env=variables,
        input=lines,
        capture_output=True,
        text=True,
        timeout=_START_S,
        check=True,
    )
    (result,) = (
        answer["result"]
        for answer in map(json.loads, done.stdout.splitlines())
        if answer.get("id") == messages[2]["id"]
    )
    return result["structuredContent"]


def main() -> None:
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    with TemporaryDirectory() as scratch:
        environment = Path(scratch, "environment")
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
        subprocess.run(install, check=True)
        folder = Path(scratch, "empty")
        folder.mkdir()
        tried = try_command(python.with_name("shop-directory"), folder)
    shops = [shop["name"] for shop in tried["suggest"]["shops"]]
    print(  # noqa: T201 - what a command prints is its answer
        f"{wheel.name} on Python {sys.version.split()[0]}: /suggest found {shops}, stdio {len(tried['found'])} fields"
    )


if __name__ == "__main__":
    main()
