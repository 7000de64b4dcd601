"""The service's commands: `shop-directory serve` and `shop-directory mcp`.

Their modules are imported when they run, so that `--help` is fast. Exit codes: 0 done, 2 a wrong setting,
3 it can't start or listen, 130 interrupted.
"""

import errno
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from shop_directory.settings.commands import (
    DataDirOption,
    EngineOption,
    ExitCode,
    end_command,
    json_option,
    setting_option,
)

if TYPE_CHECKING:
    from service.settings.service import Settings


HostOption = Annotated[str | None, setting_option("HOST", "127.0.0.1", "Address to listen on.")]
PortOption = Annotated[int | None, setting_option("PORT", "8080", "Port; 0 takes a free one.")]
WorkersOption = Annotated[
    int | None, setting_option("WORKERS", "1", "Processes that serve; more than one needs Redis.")
]
PrintConfigOption = Annotated[
    bool, typer.Option("--print-config", help="Print the settings in effect, with secrets hidden, and end.")
]
AddressAsJsonOption = Annotated[
    bool, json_option("Print the address, or with --print-config the settings, as one JSON document; no hints.")
]


def serve(
    host: HostOption = None,
    port: PortOption = None,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    workers: WorkersOption = None,
    *,
    hints: Annotated[
        bool, typer.Option("--hints", help="Print things to try once it is ready, and until then what it waits for.")
    ] = False,
    print_config: PrintConfigOption = False,
    as_json: AddressAsJsonOption = False,
) -> None:
    """Serve the directory over HTTP: the tools, /suggest, MCP at /mcp, and the probes.

    It prints its address once it listens, or with --hints once it is ready, and
    serves until a signal stops it.

    Examples:
      shop-directory serve --port 8080 --hints
      shop-directory serve --port 0 --json
      shop-directory serve --print-config

    Exit codes: 0 ended by SIGTERM, 2 a wrong setting, 3 it can't start or listen,
    130 ended by Ctrl-C.
    """
    from shop_directory.settings.reading import as_lines, effective

    options = {"host": host, "port": port, "engine": engine, "data_dir": data_dir, "workers": workers}
    settings = _settings(**options)
    if print_config:
        shown = effective(settings, [name for name, given in options.items() if given is not None])
        print(json.dumps(shown, ensure_ascii=False) if as_json else as_lines(shown))
        return

    from service.observability.logs import configure_logging_from
    from service.runtime.caller import is_loopback
    from service.server.run import inherited_listener, serve_until_signal
    from shop_directory.settings.reading import PREFIX

    inherited = inherited_listener()
    if inherited is not None:
        host, port, *_ = inherited.getsockname()
        settings = settings.model_copy(update={"host": host, "port": port})
    if settings.ops_key is None and not settings.open_operations and not is_loopback(settings.host):
        end_command(
            ExitCode.USAGE,
            f"{PREFIX}HOST is {settings.host}, so other machines would read /metrics, /metrics/resources and "
            f"/api/ops/state: set a key for them in {PREFIX}OPS_KEY, or {PREFIX}OPEN_OPERATIONS=true if that is meant.",
        )
    configure_logging_from(settings)
    try:
        serve_until_signal(settings, inherited, hints=hints, as_json=as_json)
    except SystemExit as ended:
        if not ended.code:
            raise
        end_command(ExitCode.UNAVAILABLE, _not_served(settings, ended.__context__))


def _not_served(settings: "Settings", cause: BaseException | None) -> str:
    address = f"{settings.host} port {settings.port}"
    if isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE:
        return (
            f"Nothing is served at {address}: another program listens there. Choose another port by --port; 0 takes a "
            "free one."
        )
    return f"Nothing is served at {address}: the log says why. The address comes from --host and --port."


def mcp(engine: EngineOption = None, data_dir: DataDirOption = None) -> None:
    """Serve MCP on stdin and stdout, for a client that starts this command.

    It ends when its standard input does.

    Examples:
      shop-directory mcp --data-dir var/index

    Exit codes: 0 done, 2 a wrong setting, 130 ended by Ctrl-C.
    """
    settings = _settings(engine=engine, data_dir=data_dir)

    import anyio

    from service.observability.logs import configure_logging_from
    from service.stdio import run_stdio

    configure_logging_from(settings)
    anyio.run(lambda: run_stdio(settings))


def _settings(**given: object) -> "Settings":
    from service.settings.service import Settings
    from shop_directory.settings.reading import SettingsError, unknown_variables

    try:
        settings = Settings.load(**given)
    except SettingsError as error:
        end_command(ExitCode.USAGE, str(error))
    for line in (*unknown_variables(Settings), *settings.cautions()):
        print(line, file=sys.stderr)
    return settings


if __name__ == "__main__":
    commands = typer.Typer(
        no_args_is_help=True, add_completion=False, context_settings={"help_option_names": ["--help", "-h"]}
    )
    commands.command()(serve)
    commands.command()(mcp)
    commands()
