"""The service's commands: `shop-directory serve` and `shop-directory mcp`.

Exit codes: 0 done, 2 a wrong setting.
"""

import sys
from pathlib import Path
from typing import Annotated, Final, NoReturn

import anyio
import typer

from index_mappings.environment.showing import as_lines, effective
from index_mappings.environment.sides import unknown_variables
from service.app import run_stdio
from service.observing.logs import log_by
from service.serving import serve_alone, serve_with_workers
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
    workers: Annotated[
        int | None, typer.Option(help="Processes that serve; more than one needs Redis. [env: SHOP_DIRECTORY_WORKERS]")
    ] = None,
    *,
    hints: Annotated[bool, typer.Option("--hints", help="Print three things to try once it serves.")] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the settings in effect, with secrets hidden, and end.")
    ] = False,
) -> None:
    """Serve the directory over HTTP: the tools, /suggest, MCP at /mcp, and the probes.

    Example: shop-directory serve --port 8080 --hints
    """
    options = {"host": host, "port": port, "engine": engine, "data_dir": data_dir, "workers": workers}
    settings = _settings(**options)
    if print_config:
        print(as_lines(effective(settings, [name for name, given in options.items() if given is not None])))
        return
    log_by(settings)
    if settings.workers == 1:
        serve_alone(settings, hints=hints)
    else:
        serve_with_workers(settings, hints=hints)


def mcp(engine: EngineOption = None, data_dir: DataDirOption = None) -> None:
    """Serve MCP on stdin and stdout, for a client that starts this command.

    Example: shop-directory mcp --data-dir var/index
    """
    settings = _settings(engine=engine, data_dir=data_dir)
    log_by(settings)
    anyio.run(lambda: run_stdio(settings))


def _settings(**given: object) -> Settings:
    try:
        settings = load_settings(**given)
    except SettingsError as error:
        _stop(str(error))
    for line in (*unknown_variables(Settings), *settings.cautions()):
        print(line, file=sys.stderr)
    return settings


def _stop(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(_USAGE_EXIT)


if __name__ == "__main__":
    commands = typer.Typer(no_args_is_help=True, add_completion=False)
    commands.command()(serve)
    commands.command()(mcp)
    commands()
