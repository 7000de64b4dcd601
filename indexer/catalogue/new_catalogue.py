"""Writes the files of a catalogue: the starter into an empty directory, or one file in place of an older one."""

import gzip
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Final, TextIO

from indexer.disk_space import synchronise
from indexer.records.problems import CatalogueError
from indexer.records.related import RECORDS

STARTER: Final = Path(__file__).parent / "starter_files"
# A folder for each set of categories that a catalogue may begin with: their names, and the licence of these.
CATEGORY_SETS: Final = Path(__file__).parent / "category_sets"
_SUFFIXES: Final = (".ndjson", ".ndjson.gz")
# Of a file that is being written, and of the one that it replaced.
_PART: Final = ".part"
_PREVIOUS: Final = ".previous"


def write_starter(folder: Path, categories: str | None = None) -> tuple[str, ...]:
    """Write a small catalogue with one file of each kind, and a README.md that explains them; returns their names.

    `categories` names a set whose files take the place of the starter's; a directory that has shops only gets these.
    Raises CatalogueError if the directory has something else, or names of categories already, or can't be written.
    """
    files = sorted((CATEGORY_SETS / categories).iterdir()) if categories else []
    held = {path.name for path in folder.glob("*") if path.name in _file_names(("shops", "categories"))}
    if files and (taken := held & _file_names(("categories",))):
        raise CatalogueError(f"{folder / min(taken)} is there: remove it, or name another directory")
    with _folder(folder, may_hold=_file_names(("shops",)) if files else ()):
        if not held:
            files = [path for path in STARTER.iterdir() if path.name not in {file.name for file in files}] + files
        for file in files:
            shutil.copyfile(file, folder / file.name)
        return tuple(sorted(file.name for file in files))


def _file_names(kinds: Iterable[str]) -> frozenset[str]:
    return frozenset(f"{kind}{suffix}" for kind in kinds for suffix in _SUFFIXES)


def file_of(folder: Path, kind: str) -> Path:
    """The file of a kind in a directory: the one that is there, gzipped or not, else `KIND.ndjson`."""
    named = [folder / f"{kind}{suffix}" for suffix in _SUFFIXES]
    return next(filter(Path.exists, named), named[0])


@contextmanager
def catalogue_file(folder: Path, kind: str) -> Iterator[TextIO]:
    """A file that becomes `KIND.ndjson` of a directory when the block succeeds, and is removed otherwise.

    The other files of a catalogue stay. A file that is replaced is kept as `KIND.ndjson.previous`, and one that is
    gzipped by another one that is. At every moment the directory has the whole old file or the whole new one, also when
    the process is killed or power is lost. Raises CatalogueError if the directory holds something else than a
    catalogue, or can't be written.
    """
    with _folder(folder, may_hold=_file_names(RECORDS)):
        path = file_of(folder, kind).resolve()  # the file itself, where its name is a link
        part, spare = (path.with_name(f"{path.name}.{token_hex(4)}{_PART}") for _ in range(2))
        try:
            opened = gzip.open if path.suffix == ".gz" else open
            with opened(part, "xt", encoding="utf-8") as file:
                yield file
            if path.exists():
                shutil.copy(path, spare)
                shutil.copymode(path, part)
                _replace(spare, path.with_name(f"{path.name}{_PREVIOUS}"))
            _replace(part, path)
        finally:
            part.unlink(missing_ok=True)
            spare.unlink(missing_ok=True)


def _replace(fresh: Path, path: Path) -> None:
    """Give a whole file its name, so that it survives a loss of power."""
    synchronise(fresh)
    fresh.replace(path)
    synchronise(path.parent)


@contextmanager
def _folder(folder: Path, may_hold: Collection[str] = ()) -> Iterator[None]:
    """Make a directory where it is missing, and remove it again if it stays empty.

    Raises CatalogueError if it holds files and none of `may_hold`.
    """
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = {path.name for path in folder.iterdir() if path.suffix != _PART}
        if held and held.isdisjoint(may_hold):
            reason = "holds files that are no catalogue" if may_hold else "is not empty"
            raise CatalogueError(f"{folder} {reason}: name another directory")
        yield
    except OSError as error:
        raise CatalogueError(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()  # does nothing unless the directory is empty
