"""The command `shop-directory`. Its subcommands come from entry points, so that no module imports both sides.

A subcommand is imported when it is called, and imports its engines when it runs: help and completion stay fast. Every
exit code is one of `ExitCode`, and a problem is reported as a sentence, not as a traceback.
"""

import errno
import json
import os
import sys
from collections.abc import MutableMapping, Sequence
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from shop_directory.build_stamp import stamp_of_build
from shop_directory.settings.commands import ExitCode, JsonOption, end_command, loaded, problem, problems_as_json
from shop_directory.status import status

GROUP: Final = "shop_directory.commands"
NAME: Final = "shop-directory"

_HELP: Final = """\
An open directory of online shops: build its indices, serve it over HTTP and MCP.

Examples:
  shop-directory index build
  shop-directory serve --port 8080 --hints

Options, examples and exit codes of a command: --help or -h."""
_PROBLEMS: Final = """\
Answers go to standard output, problems to standard error; with --json a
problem is an object {"error": {"code": ..., "message": ...}}."""
_OPERATE: Final = "Operate"
_PANELS: Final = {
    **dict.fromkeys(("serve", "mcp", "check"), "Serve and check"),
    **dict.fromkeys(("catalogue", "index", "token", "rechecks", "status", "insights", "export"), _OPERATE),
}
_OWN_PANEL: Final = "Look at the program"


def main() -> None:
    """Run the command line and exit with its exit code."""
    sys.exit(_run(sys.argv[1:]))


def command_line() -> typer.Typer:
    """The program with all installed subcommands."""
    codes = "\n".join(f"  {exit_code.value:<4} {exit_code.meaning}" for exit_code in ExitCode)
    commands = typer.Typer(
        cls=_Installed,
        help=_HELP,
        epilog=f"Exit codes of every command:\n{codes}\n\n{_PROBLEMS}",
        no_args_is_help=True,
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
    )

    @commands.callback()
    def _root(
        *,
        _version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
        ] = False,
    ) -> None:
        pass

    commands.command("status", rich_help_panel=_OPERATE)(status)
    commands.command("config", rich_help_panel=_OWN_PANEL)(config)
    commands.command("version", rich_help_panel=_OWN_PANEL)(version_command)
    return commands


def config(
    *,
    as_json: JsonOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/settings.md instead.")] = False,
) -> None:
    """Print the effective settings of service and indexer, and the source of each.

    Secrets are hidden. Unknown variables are reported on standard error.

    Examples:
      shop-directory config
      shop-directory config --json

    Exit codes: 0 done, 1 a part is not installed, 2 a setting is wrong.
    """
    from shop_directory.settings.reading import as_lines, effective, installed_sides, settings_page, unknown_variables

    try:
        sides = installed_sides()
    except ImportError as error:
        end_command(ExitCode.BAD_INPUT, _missing(error))
    if markdown:
        typer.echo(settings_page(sides), nl=False)
        return
    found = {side: effective(loaded(kind)) for side, kind in sides.items()}
    for line in {line for kind in sides.values() for line in unknown_variables(kind)}:
        typer.echo(line, err=True)
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    typer.echo("\n\n".join(f"{side}:\n{as_lines(shown)}" for side, shown in found.items()))


def version_command(*, as_json: JsonOption = False) -> None:
    """Print the version, and the commit and time of the build where they are known.

    Examples:
      shop-directory version
      shop-directory version --json

    Exit codes: 0 done.
    """
    given = (os.environ.get(f"SHOP_DIRECTORY_{name}") or None for name in ("COMMIT", "BUILT_AT"))
    stamp = stamp_of_build(*given)
    commit, built_at = (None, None) if stamp is None else (stamp.commit, stamp.built_at)
    if as_json:
        typer.echo(json.dumps({"name": NAME, "version": version(NAME), "commit": commit, "built_at": built_at}))
        return
    build = "" if commit is None else f" (commit {commit}, built at {built_at})"
    typer.echo(f"{NAME} {version(NAME)}{build}")


def _print_version(*, asked: bool) -> None:
    if asked:
        version_command()
        raise typer.Exit


class _Installed(TyperGroup):
    """Own commands and those of the entry points, each imported on first use."""

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """All commands; reading this property imports them all."""
        for name in _entries():
            self.get_command(None, name)
        return self._loaded

    @commands.setter
    def commands(self, own: MutableMapping[str, Any]) -> None:
        self._loaded = own

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - Typer's signature
        """All names in the order of the help."""
        names = {*_entries(), *self._loaded}
        return [name for name in dict.fromkeys([*_PANELS, *sorted(names)]) if name in names]

    def get_command(self, ctx: object, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - Typer's own type is private
        entries = _entries()
        if cmd_name in entries and cmd_name not in self._loaded:
            self._loaded[cmd_name] = _mounted(entries[cmd_name])
        return self._loaded.get(cmd_name)


def _entries() -> dict[str, EntryPoint]:
    return {found.name: found for found in entry_points(group=GROUP)}


def _mounted(entry_point: EntryPoint) -> Any:  # noqa: ANN401 - Typer's own type is private
    """The command of an entry point; where its part is not installed, a command that reports this."""
    name = entry_point.name
    panel = _PANELS.get(name, _OPERATE)
    holder = typer.Typer(add_completion=False)
    try:
        found = entry_point.load()
    except ImportError as error:
        missing = _missing(error)

        @holder.command(name, help=missing, rich_help_panel=panel)
        def _broken() -> None:
            end_command(ExitCode.BAD_INPUT, f"{NAME} {name}: {missing}")
    else:
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=name, rich_help_panel=panel)
        else:
            holder.command(name, rich_help_panel=panel)(found)
    return get_group(holder).commands[name]


def _missing(error: ImportError) -> str:
    return f"Not usable: {error.name or 'a part of it'} is not installed."


def _run(arguments: Sequence[str]) -> int:
    problems_as_json(asked=False)
    try:
        code = command_line()(list(arguments), prog_name=NAME, standalone_mode=False) or ExitCode.DONE
        sys.stdout.flush()
    except typer.TyperException as error:
        return _report_usage(error, as_json="--json" in arguments)
    except (typer.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except (OSError, SystemExit) as error:
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            _discard_output()
            return ExitCode.CLOSED_PIPE
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            _discard_output()
            typer.echo(problem(ExitCode.UNAVAILABLE, f"The output can't be written: {error.strerror}."), err=True)
            return ExitCode.UNAVAILABLE
        if isinstance(error, SystemExit) or error.filename is None:
            raise
        typer.echo(problem(ExitCode.BAD_INPUT, f"{error.filename}: {error.strerror}."), err=True)
        return ExitCode.BAD_INPUT
    if code == ExitCode.INTERRUPTED and "--json" in arguments:
        typer.echo(problem(ExitCode.INTERRUPTED, "Interrupted."), err=True)
    return int(code)


def _discard_output() -> None:
    """Keep the interpreter from flushing the buffer of standard output at exit, which would print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _report_usage(error: typer.TyperException, *, as_json: bool) -> int:
    problems_as_json(asked=as_json)
    if as_json:
        typer.echo(problem(ExitCode.USAGE, error.format_message()), err=True)
    else:
        # It takes a quarter of the time in which a command starts.
        from typer import rich_utils

        rich_utils.rich_format_error(error)  # type: ignore[arg-type]  # Typer raises its own ClickException
    return error.exit_code
