"""The one command, `shop-directory`: its subcommands come from entry points, so that nothing imports both sides."""

import json
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Final, NoReturn

import typer

from index_mappings.environment.page import settings_page
from index_mappings.environment.reading import SettingsError
from index_mappings.environment.showing import as_lines, as_wire, effective
from index_mappings.environment.sides import installed_sides, unknown_variables

GROUP: Final = "shop_directory.commands"

_BROKEN_EXIT: Final = 1
_USAGE_EXIT: Final = 2


def main() -> None:
    """Run the command line."""
    command_line()()


def command_line() -> typer.Typer:
    """All subcommands that are installed."""
    commands = typer.Typer(
        help="An open directory of online shops: build its indices, serve it over HTTP and MCP.",
        no_args_is_help=True,
        add_completion=False,
    )

    @commands.callback()
    def _whole() -> None:
        """An open directory of online shops: build its indices, serve it over HTTP and MCP."""

    commands.command("config")(config)
    for entry_point in sorted(entry_points(group=GROUP), key=lambda found: found.name):
        _mount(commands, entry_point)
    return commands


def config(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/settings.md instead.")] = False,
) -> None:
    """Print the settings of the service and the indexer that are in effect, and where each comes from.

    Secrets are hidden. Exit code 2 when one is wrong.
    """
    try:
        sides = installed_sides()
    except ImportError as error:
        _stop(_BROKEN_EXIT, f"Not usable: {error.name or 'a part of it'} is not installed.")
    if markdown:
        typer.echo(settings_page(sides), nl=False)
        return
    try:
        found = {side: effective(kind.load()) for side, kind in sides.items()}
    except SettingsError as error:
        _stop(_USAGE_EXIT, str(error))
    for line in {line for kind in sides.values() for line in unknown_variables(kind)}:
        typer.echo(line, err=True)
    if as_json:
        typer.echo(json.dumps({side: as_wire(shown) for side, shown in found.items()}, ensure_ascii=False))
        return
    typer.echo("\n\n".join(f"{side}:\n{as_lines(shown)}" for side, shown in found.items()))


def _stop(code: int, message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


def _mount(commands: typer.Typer, entry_point: EntryPoint) -> None:
    try:
        found = entry_point.load()
    except ImportError as error:
        _mount_broken(commands, entry_point.name, error.name or "a part of it")
        return
    if isinstance(found, typer.Typer):
        commands.add_typer(found, name=entry_point.name)
    else:
        commands.command(entry_point.name)(found)


def _mount_broken(commands: typer.Typer, name: str, missing: str) -> None:
    message = f"Not usable: {missing} is not installed."

    @commands.command(name, help=message)
    def _broken() -> None:
        print(f"shop-directory {name}: {message}", file=sys.stderr)  # noqa: T201 - what a command says
        raise typer.Exit(_BROKEN_EXIT)


if __name__ == "__main__":
    main()
