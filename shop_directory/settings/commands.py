"""What all commands share: exit codes, problems (one JSON object with `--json`), and options of both sides."""

import json
from contextvars import ContextVar
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, Self, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shop_directory.settings.reading import EnvironmentSettings

SettingsT = TypeVar("SettingsT", bound="EnvironmentSettings")

# The panel of `--help` for options that name an index.
WHERE: Final = "Where the index is"
_ENGINES: Final = ("embedded", "opensearch")


class ExitCode(IntEnum):
    """The exit codes with their meanings; their names in lower case are the codes of problems in JSON."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """The member of a code."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = 0, "done"
    BAD_INPUT = 1, "the input can't be used, such as a faulty catalogue or an unknown id"
    USAGE = 2, "an unknown command or option, or a wrong value or setting"
    UNAVAILABLE = 3, "an engine, a store or a service does not answer, or failed"
    BUSY = 4, "another job is at work"
    REFUSED = 5, "what was built is not fit to be published"
    DIFFERENT = 6, "index and source differ, and nothing was repaired"
    INCOMPLETE = 7, "changes are missing, as they were rotated away before they were read"
    INTERRUPTED = 130, "interrupted by Ctrl-C"
    CLOSED_PIPE = 141, "the reader of the output closed the pipe"


_as_json: ContextVar[bool] = ContextVar("problems_as_json", default=False)


def problems_as_json(*, asked: bool) -> bool:
    """Set whether problems are printed as JSON from now on; returns its argument, as callbacks of options must."""
    _as_json.set(asked)
    return asked


def problem(exit_code: ExitCode, message: str) -> str:
    """The output of a problem: its message, or with `--json` the object `{"error": {"code": ..., "message": ...}}`."""
    if not _as_json.get():
        return message
    return json.dumps({"error": {"code": exit_code.name.lower(), "message": message}}, ensure_ascii=False)


def end_command(exit_code: ExitCode, message: str) -> NoReturn:
    """Print a problem on standard error and end the command."""
    typer.echo(problem(exit_code, message), err=True)
    raise typer.Exit(exit_code)


def loaded(kind: type[SettingsT], options: "Mapping[str, str] | None" = None, /, **values: Any) -> SettingsT:  # noqa: ANN401 - any setting
    """The settings as `load` reads them; a wrong one ends the command."""
    from shop_directory.settings.reading import SettingsError

    try:
        return kind.load(options, **values)
    except SettingsError as error:
        end_command(ExitCode.USAGE, str(error))


def setting_option(setting: str, default: str, text: str, *names: str, **more: Any) -> Any:  # noqa: ANN401 - what Typer takes, and its own type
    """An option that overrides a setting, which its help names, with the default of that setting."""
    return typer.Option(*names, show_default=default, help=rf"{text} \[env: SHOP_DIRECTORY_{setting}]", **more)


def json_option(text: str) -> Any:  # noqa: ANN401 - Typer's own type
    """The option --json of a command, which also sets how problems are printed."""
    return typer.Option("--json", callback=problems_as_json, is_eager=True, help=text)


def _engines(incomplete: str) -> list[str]:
    return [name for name in _ENGINES if name.startswith(incomplete)]


EngineOption = Annotated[
    str | None,
    setting_option(
        "ENGINE", "embedded", "embedded or opensearch.", "--engine", autocompletion=_engines, rich_help_panel=WHERE
    ),
]
DataDirOption = Annotated[
    Path | None,
    setting_option("DATA_DIR", "var/index", "The embedded engine's directory.", "--data-dir", rich_help_panel=WHERE),
]
JsonOption = Annotated[bool, json_option("Print one JSON document instead.")]
