"""The operator's acceptance queries: read from a file before a build, asked of the new generation before it is live.

Wrong lines and failed queries are reported by file, line and field, never by a value: an operator may expect a shop
that has become secret since (V1).
"""

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from indexer.jobs.acceptance_line import AcceptanceLine
from indexer.records.problems import CatalogueError, Problem, ProblemLog
from indexer.records.shop import reasons
from indexer.sinks.failures import SinkError
from shop_directory.acceptance import (
    ANSWERS_ENTRY,
    ANSWERS_GROUP,
    AcceptanceFailure,
    AcceptanceQuery,
    Answers,
    AnswersUnavailableError,
    OpenAnswers,
)

MAX_QUERIES: Final = 10_000
MAX_BYTES: Final = 16 * 1024 * 1024

_NAMED: Final = 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
# Advice in the reasons of a catalogue's record; this file has no such option.
_LENIENT: Final = " (--lenient passes over unknown fields)"


class AcceptanceFileError(CatalogueError):
    """The file of acceptance queries has wrong lines; `problems` lists them."""

    def __init__(self, problems: ProblemLog) -> None:
        super().__init__(f"{problems.records} acceptance queries are wrong: correct them")
        self.problems = problems


class AcceptanceFailedError(SinkError):
    """Answers of the new generation fail acceptance queries; `failures` has all, the text the first."""

    def __init__(self, failures: Sequence[AcceptanceFailure], asked: int) -> None:
        failed = len({failure.location for failure in failures})
        named = "; ".join(f"{failure.location}: {failure.reason}" for failure in failures[:_NAMED])
        more = f"; and {len(failures) - _NAMED} more" if len(failures) > _NAMED else ""
        super().__init__(f"{failed} of {asked} acceptance queries failed: {named}{more}")
        self.failures = tuple(failures)


def read_acceptance(path: Path) -> tuple[AcceptanceQuery, ...]:
    """Read a file of acceptance queries: NDJSON, one query a line.

    Raises:
        AcceptanceFileError: lines are wrong; the whole file was checked.
        CatalogueError: the file cannot be read, or holds no query or too many.
    """
    problems = ProblemLog()
    queries: list[AcceptanceQuery] = []
    for number, raw in _lines(path):
        try:
            queries.append(AcceptanceLine.model_validate(strict_loads(raw)).to_query(f"{path.name}:{number}"))
        except NotStrictJsonError as error:
            problems.add(Problem(path.name, number, None, f"the line {error}"))
        except ValidationError as error:
            found = [(field, reason.removesuffix(_LENIENT)) for field, reason in reasons(error)]
            problems.add(*(Problem(path.name, number, field, reason) for field, reason in found))
    if problems.count:
        raise AcceptanceFileError(problems)
    return tuple(queries)


def installed_answers(entry: str = ANSWERS_ENTRY) -> OpenAnswers:
    """The function of the read side that opens the answers of a generation, found by its entry point.

    Raises:
        SinkError: it or a part of it is not installed.
    """
    found = tuple(entry_points(group=ANSWERS_GROUP, name=entry))
    if not found:
        raise SinkError("acceptance queries can't be asked: install the service's package alongside the indexer")
    try:
        opened: OpenAnswers = found[0].load()
    except ImportError as error:
        name = error.name or "a part of the service"
        raise SinkError(f"acceptance queries can't be asked: {name} is not installed") from error
    return opened


def check_acceptance(queries: Sequence[AcceptanceQuery], answers: Answers) -> None:
    """Ask the acceptance queries of a generation.

    Raises:
        AcceptanceFailedError: an answer fails its query.
        SinkError: the generation did not answer, so no query has passed or failed.
    """
    try:
        failures = answers.ask(queries)
    except AnswersUnavailableError as error:
        raise SinkError(f"the acceptance queries were not answered: {error}") from error
    if failures:
        raise AcceptanceFailedError(failures, len(queries))


def _lines(path: Path) -> list[tuple[int, bytes]]:
    """The lines that are not blank, each with its number."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > MAX_BYTES:
        raise CatalogueError(f"{path} is larger than {MAX_BYTES} bytes")
    every = raw.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    lines = [(number, line) for number, line in enumerate(every, 1) if line.strip()]
    if not 1 <= len(lines) <= MAX_QUERIES:
        raise CatalogueError(f"{path} holds {len(lines)} acceptance queries: it may hold 1 to {MAX_QUERIES}")
    return lines
