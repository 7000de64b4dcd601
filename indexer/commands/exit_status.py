"""How a command ends: its exit code says what to do next, and its text says why."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from shop_directory.settings.exit_codes import ExitCode, problem

if TYPE_CHECKING:
    from indexer.records.problems import ProblemLog


@contextmanager
def told(nothing: str) -> Iterator[None]:
    """End the command with the right code when something fails.

    Args:
        nothing: what has not happened then, as a sentence's beginning.
    """
    from indexer.disk_space import DiskFullError, full_disk_as_error
    from indexer.jobs.acceptance import AcceptanceFailedError
    from indexer.jobs.build import ShrinkError
    from indexer.records.problems import CatalogueError, ProblemLog
    from indexer.sinks.failures import SinkError
    from indexer.sinks.lease import LeaseHeldError

    try:
        with full_disk_as_error():
            yield
    except (ShrinkError, AcceptanceFailedError) as error:
        stop(ExitCode.REFUSED, f"{nothing}: {error}.")
    except LeaseHeldError as error:
        stop(ExitCode.BUSY, f"{nothing}: {error}.")
    except CatalogueError as error:
        problems = getattr(error, "problems", None)
        if isinstance(problems, ProblemLog):
            list_problems(problems)
        stop(ExitCode.BAD_INPUT, f"{nothing}: {error}.")
    except (SinkError, DiskFullError) as error:
        stop(ExitCode.UNAVAILABLE, f"{nothing}: {error}.")


def stop(exit_code: ExitCode, message: str) -> NoReturn:
    """End the command."""
    print(problem(exit_code, message), file=sys.stderr)
    raise typer.Exit(exit_code)


def tell(line: str) -> None:
    """Say something that is not the answer."""
    print(line, file=sys.stderr)


def list_problems(problems: "ProblemLog") -> None:
    """Print what is wrong with records."""
    from indexer.records.problems import LISTED

    for found in problems.listed:
        print(found, file=sys.stderr)
    if problems.count > LISTED:
        print(f"... and {problems.count - LISTED} more problems", file=sys.stderr)
