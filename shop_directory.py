"""The one command, `shop-directory`: its subcommands come from entry points, so that nothing imports both sides."""

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import typer

GROUP: Final = "shop_directory.commands"

_BROKEN_EXIT: Final = 1


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

    for entry_point in sorted(entry_points(group=GROUP), key=lambda found: found.name):
        _mount(commands, entry_point)
    return commands


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
