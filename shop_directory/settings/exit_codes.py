"""Exit codes of all commands, and the output of problems.

A code means the same in every command, so that scripts can act on it. With `--json` a problem is one JSON object, the
last line on standard error; standard output has only the answer.
"""

import json
import os
import re
from collections.abc import Mapping
from contextvars import ContextVar
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NoReturn

import typer


class ExitCode(IntEnum):
    """The exit codes; their names in lower case are the codes of problems in JSON."""

    DONE = 0
    BAD_INPUT = 1
    USAGE = 2
    UNAVAILABLE = 3
    BUSY = 4
    REFUSED = 5
    DIFFERENT = 6
    INTERRUPTED = 130
    CLOSED_PIPE = 141


MEANINGS: Final[Mapping[ExitCode, str]] = MappingProxyType(
    {
        ExitCode.DONE: "done",
        ExitCode.BAD_INPUT: "the input can't be used, such as a faulty catalogue or an unknown id",
        ExitCode.USAGE: "an unknown command or option, or a wrong value or setting",
        ExitCode.UNAVAILABLE: "an engine, a store or a service does not answer, or failed",
        ExitCode.BUSY: "another job is at work",
        ExitCode.REFUSED: "what was built is not fit to be published",
        ExitCode.DIFFERENT: "index and source differ, and nothing was repaired",
        ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
        ExitCode.CLOSED_PIPE: "the reader of the output closed the pipe",
    }
)

# `make run` sets this variable: the user typed variables of make instead of options.
RUN_BY_MAKE: Final = "RUN_BY_MAKE"
_MAKE_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {"--host": "HOST", "--port": "PORT", "--data-dir": "INDEX", "--catalogue": "CATALOGUE"}
)

_as_json: ContextVar[bool] = ContextVar("problems_as_json", default=False)


def problems_as_json(*, asked: bool) -> bool:
    """Set whether problems are printed as JSON from now on; returns its argument, as callbacks of options must."""
    _as_json.set(asked)
    return asked


def problem(exit_code: ExitCode, message: str) -> str:
    """The output of a problem: what is wrong and what to do, for people.

    With `--json` it is the object `{"error": {"code": ..., "message": ...}}`.
    """
    if not _as_json.get():
        return _as_typed(message)
    return json.dumps({"error": {"code": exit_code.name.lower(), "message": message}}, ensure_ascii=False)


def end_command(exit_code: ExitCode, message: str) -> NoReturn:
    """Print a problem on standard error and end the command."""
    typer.echo(problem(exit_code, message), err=True)
    raise typer.Exit(exit_code)


def is_run_by_make() -> bool:
    """Whether `make run` runs this command."""
    return bool(os.environ.get(RUN_BY_MAKE))


def _as_typed(message: str) -> str:
    """The message; under `make run` with make's variables instead of options."""
    if not is_run_by_make():
        return message
    return re.sub(r"--[a-z-]+", lambda match: _variable(match[0]), message)


def _variable(option: str) -> str:
    name = _MAKE_VARIABLES.get(option)
    return option if name is None else f"{name}= ({option})"
