"""Ends commands with an exit code and a message."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from shop_directory.settings.commands import ExitCode, problem

if TYPE_CHECKING:
    from indexer.records.problems import ProblemLog


@contextmanager
def exit_on_failure(outcome: str) -> Iterator[None]:
    """End the command with the exit code and the message of a failure.

    Args:
        outcome: of the command in that case, as the start of the message, such as "Nothing was published".
    """
    from indexer.disk_space import DiskFullError, full_disk_as_error
    from indexer.jobs.build_summary import AcceptanceFailedError, ShrinkError
    from indexer.records.problems import CatalogueError, ProblemLog
    from indexer.sinks.failures import SinkError
    from indexer.sinks.lease import LeaseHeldError

    try:
        with full_disk_as_error():
            yield
    except (ShrinkError, AcceptanceFailedError) as error:
        stop(ExitCode.REFUSED, f"{outcome}: {error}.")
    except LeaseHeldError as error:
        stop(ExitCode.BUSY, f"{outcome}: {error}.")
    except CatalogueError as error:
        problems = getattr(error, "problems", None)
        if isinstance(problems, ProblemLog):
            list_problems(problems)
        stop(ExitCode.BAD_INPUT, f"{outcome}: {error}.")
    except (SinkError, DiskFullError) as error:
        stop(ExitCode.UNAVAILABLE, f"{outcome}: {error}.")


def stop(exit_code: ExitCode, message: str) -> NoReturn:
    """End the command with a message on standard error."""
    print(problem(exit_code, message), file=sys.stderr)
    raise typer.Exit(exit_code)


def list_problems(problems: "ProblemLog") -> None:
    """Print the problems of records to standard error."""
    from indexer.records.problems import LISTED

    for found in problems.listed:
        print(found, file=sys.stderr)
    if problems.count > LISTED:
        print(f"... and {problems.count - LISTED} more problems", file=sys.stderr)
