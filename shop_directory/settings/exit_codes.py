"""How every command of both sides ends: one table of exit codes, and how a problem is told.

A code means the same in every command, so that a script can act on it. With `--json` a problem is one JSON object, the
last line on standard error; standard output has nothing but the answer.
"""

import json
import os
import re
from collections.abc import Mapping
from contextvars import ContextVar
from enum import IntEnum
from types import MappingProxyType
from typing import Final


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
        ExitCode.BAD_INPUT: "what is there does not do, such as an unusable catalogue",
        ExitCode.USAGE: "an unknown command or option, a wrong value or setting",
        ExitCode.UNAVAILABLE: "an engine, a store or a service does not answer, or failed",
        ExitCode.BUSY: "another job is at work",
        ExitCode.REFUSED: "what was built is not fit to be published",
        ExitCode.DIFFERENT: "index and source differ, and nothing was repaired",
        ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
        ExitCode.CLOSED_PIPE: "whoever read the output has stopped reading",
    }
)

# `make run` says that it runs a command, as people typed its variables then and no options.
RUN_BY_MAKE: Final = "RUN_BY_MAKE"
_MAKE_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {"--host": "HOST", "--port": "PORT", "--data-dir": "INDEX", "--catalogue": "CATALOGUE"}
)

_as_json: ContextVar[bool] = ContextVar("problems_as_json", default=False)


def problems_as_json(*, asked: bool) -> bool:
    """Remember whether problems are told as JSON from now on; returns what it was given, as callbacks of options do."""
    _as_json.set(asked)
    return asked


def problem(exit_code: ExitCode, message: str) -> str:
    """What standard error says of a problem.

    Args:
        exit_code: how the command ends.
        message: a sentence for people that says what to do.

    Returns:
        The message; as JSON, where the command was asked for it, `{"error": {"code": ..., "message": ...}}`.
    """
    if not _as_json.get():
        return _as_typed(message)
    return json.dumps({"error": {"code": exit_code.name.lower(), "message": message}}, ensure_ascii=False)


def is_run_by_make() -> bool:
    """Whether `make run` runs this command."""
    return bool(os.environ.get(RUN_BY_MAKE))


def _as_typed(message: str) -> str:
    """The message, with make's variables in the place of options where these were typed."""
    if not is_run_by_make():
        return message
    return re.sub(r"--[a-z-]+", lambda found: _variable(found[0]), message)


def _variable(option: str) -> str:
    name = _MAKE_VARIABLES.get(option)
    return option if name is None else f"{name}= ({option})"
