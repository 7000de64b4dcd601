"""Writes a new catalogue into an empty directory: the starter, or the shops of another source."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from indexer.records.problems import CatalogueError

STARTER: Final = Path(__file__).parent / "starter_files"
SHOPS: Final = "shops.ndjson"
_PART: Final = f"{SHOPS}.part"


def write_starter(folder: Path) -> tuple[str, ...]:
    """Write a small catalogue with one file of each kind, and a README.md that explains them; returns their names.

    Raises CatalogueError if the directory is not empty, or can't be written.
    """
    with _new_folder(folder):
        files = sorted(path for path in STARTER.iterdir() if path.is_file())
        for file in files:
            shutil.copyfile(file, folder / file.name)
        return tuple(file.name for file in files)


@contextmanager
def new_shops_file(folder: Path) -> Iterator[TextIO]:
    """A file that becomes `shops.ndjson` of a directory when the block succeeds, and is removed otherwise.

    Raises CatalogueError if the directory is not empty, or can't be written.
    """
    with _new_folder(folder):
        part = folder / _PART
        try:
            with part.open("x", encoding="utf-8") as file:
                yield file
            part.rename(folder / SHOPS)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """Make a directory where it is missing, and remove it again if it stays empty."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CatalogueError(f"{folder} is not empty: name another directory")
        yield
    except OSError as error:
        raise CatalogueError(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()  # does nothing unless the directory is empty
