"""How a command ends: its exit code says what to do next, and its text says why."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn

import typer

from indexer.build import ShrinkError
from indexer.golden import GoldenQueriesFailedError
from indexer.problems import LISTED, CatalogueError, ProblemLog
from indexer.sinks.lease import LeaseHeldError
from indexer.sinks.protocol import SinkError


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    CATALOGUE = 1  # the catalogue, its changes or the state are not usable
    USAGE = 2
    ENGINE = 3  # the engine failed
    LEASE = 4  # another job has the lease
    REFUSED = 5  # a generation was built and is not fit to be published
    DIFFERENT = 6  # index and source differ, and nothing was repaired


@contextmanager
def told(nothing: str) -> Iterator[None]:
    """End the command with the right code when something fails.

    Args:
        nothing: what has not happened then, as a sentence's beginning.
    """
    try:
        yield
    except (ShrinkError, GoldenQueriesFailedError) as error:
        stop(Exit.REFUSED, f"{nothing}: {error}.")
    except LeaseHeldError as error:
        stop(Exit.LEASE, f"{nothing}: {error}.")
    except CatalogueError as error:
        problems = getattr(error, "problems", None)
        if isinstance(problems, ProblemLog):
            list_problems(problems)
        stop(Exit.CATALOGUE, f"{nothing}: {error}.")
    except SinkError as error:
        stop(Exit.ENGINE, f"{nothing}: {error}.")


def stop(code: Exit, message: str) -> NoReturn:
    """End the command."""
    print(message, file=sys.stderr)
    raise typer.Exit(code)


def tell(line: str) -> None:
    """Say something that is not the answer."""
    print(line, file=sys.stderr)


def list_problems(problems: ProblemLog) -> None:
    """Print what is wrong with records."""
    for problem in problems.listed:
        print(problem, file=sys.stderr)
    if problems.count > LISTED:
        print(f"... and {problems.count - LISTED} more problems", file=sys.stderr)
