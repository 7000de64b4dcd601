"""The service's commands: `shop-directory serve` and `shop-directory mcp`.

Exit codes: 0 done, 2 a wrong setting.
"""

import logging
import sys
from pathlib import Path
from socket import socket
from typing import Annotated, Final, NoReturn

import anyio
import typer
import uvicorn

from service.app import create_app, run_stdio
from service.server import server_config
from service.settings import Settings, SettingsError, load_settings

_USAGE_EXIT: Final = 2

EngineOption = Annotated[str | None, typer.Option(help="embedded or opensearch. [env: SHOP_DIRECTORY_ENGINE]")]
DataDirOption = Annotated[
    Path | None, typer.Option(help="The embedded engine's directory. [env: SHOP_DIRECTORY_DATA_DIR]")
]


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [env: SHOP_DIRECTORY_HOST]")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one. [env: SHOP_DIRECTORY_PORT]")] = None,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    *,
    hints: Annotated[bool, typer.Option("--hints", help="Print three things to try once it serves.")] = False,
) -> None:
    """Serve the directory over HTTP: the tools, /suggest, MCP at /mcp, and the probes.

    Example: shop-directory serve --port 8080 --hints
    """
    settings = _settings(host=host, port=port, engine=engine, data_dir=data_dir)
    _log_to_stderr(settings)
    config = server_config(create_app(settings), settings.host, settings.port)
    _AnnouncingServer(config, hints=hints).run()


def mcp(engine: EngineOption = None, data_dir: DataDirOption = None) -> None:
    """Serve MCP on stdin and stdout, for a client that starts this command.

    Example: shop-directory mcp --data-dir var/index
    """
    settings = _settings(engine=engine, data_dir=data_dir)
    _log_to_stderr(settings)
    anyio.run(lambda: run_stdio(settings))


class _AnnouncingServer(uvicorn.Server):
    """Says where it listens, once it does."""

    def __init__(self, config: uvicorn.Config, *, hints: bool) -> None:
        super().__init__(config)
        self._hints = hints

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        if not self.started:
            return
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        print(f"Shop Directory serves at {url}", flush=True)
        if self._hints:
            print(_hints(url), flush=True)


def _hints(url: str) -> str:
    return "\n".join(
        [
            "",
            "Three things to try:",
            f"  curl '{url}/suggest?q=boo'",
            f"  curl {url}/tool/list_categories -H 'content-type: application/json' -d '{{}}'",
            f"  an MCP client at {url}/mcp",
            "",
        ]
    )


def _settings(**given: object) -> Settings:
    try:
        return load_settings(**given)
    except SettingsError as error:
        _stop(str(error))


def _stop(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(_USAGE_EXIT)


def _log_to_stderr(settings: Settings) -> None:
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    # Its lines below a warning tell of every request, some with what was sent.
    logging.getLogger("mcp").setLevel(logging.WARNING)


if __name__ == "__main__":
    commands = typer.Typer(no_args_is_help=True, add_completion=False)
    commands.command()(serve)
    commands.command()(mcp)
    commands()
